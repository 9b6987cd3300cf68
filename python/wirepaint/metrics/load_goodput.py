from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._page import known, visit
from wirepaint.metrics._receiving import received_bytes


@metric(
    title="Goodput while loading",
    unit="Mbit/s",
    better="higher",
    source="HTTP-AE Figure 10; RFC 5166 section 2.1.1",
    needs=("page", "chunk"),
)
def load_goodput(trace: Trace) -> float:
    """Bytes that the browser received from the navigation start to the load event, over that time."""
    row = visit(trace)
    begin, end = known(row, "navigation_start"), known(row, "load_event")
    if end <= begin:
        raise Missing("the visit ended as it began")
    return 8e3 * received_bytes(trace, begin, end) / (end - begin)
