from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import NS_PER_MS
from wirepaint.metrics._receiving import busy


@metric(
    title="Page net transfer time",
    unit="ms",
    better="lower",
    source="FLD section 4",
    needs=("page", "object", "chunk"),
)
def page_net_transfer_time(trace: Trace) -> float:
    """Page load time minus idle time: the time in which at least one object is being received."""
    return busy(trace) / NS_PER_MS
