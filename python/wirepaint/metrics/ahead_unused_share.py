from wirepaint.metrics._metric import Missing, Trace, metric


@metric(title="Sent ahead in vain", unit="%", better="lower", source="HTTP-AE section IV-D", needs=("run",))
def ahead_unused_share(trace: Trace) -> float:
    """Bytes that a PEP sent ahead and no browser asked for, as a share of all that it sent ahead.

    Of all users of a run.
    """
    run = trace("run")
    sent = int(run["ahead_bytes"].sum())
    if not sent:
        raise Missing("nothing was sent ahead")
    return 100 * int(run["ahead_unused_bytes"].sum()) / sent
