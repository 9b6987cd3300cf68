from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._receiving import busy, load_duration


@metric(title="Idle share", unit="%", source="FLD Figure 7", needs=("page", "object", "chunk"))
def idle_share(trace: Trace) -> float:
    """Idle time as a share of the page load time."""
    duration = load_duration(trace)
    if duration <= 0:
        raise Missing("the page load has no length")
    return 100 * (1 - busy(trace) / duration)
