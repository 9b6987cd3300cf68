from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._page import used


@metric(title="Page type", unit="", label=True, source="FLD Figure 5", needs=("connection",))
def page_type(trace: Trace) -> str:
    """``encrypted`` when over 90 % of connections are, ``plain`` when over 90 % are not, else ``mixed``."""
    encrypted = [each for (each,) in used(trace, "encrypted")]
    if None in encrypted:
        raise Missing("it is not known whether a connection is encrypted")
    if 10 * sum(encrypted) > 9 * len(encrypted):
        return "encrypted"
    return "plain" if 10 * sum(encrypted) < len(encrypted) else "mixed"
