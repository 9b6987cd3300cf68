from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import NS_PER_MS
from wirepaint.metrics._receiving import busy, load_duration


@metric(title="Idle time", unit="ms", source="FLD section 4", needs=("page", "object", "chunk"))
def idle_time(trace: Trace) -> float:
    """Part of the page load time in which no object is being received.

    An object is being received from its first to its last byte.
    """
    return (load_duration(trace) - busy(trace)) / NS_PER_MS
