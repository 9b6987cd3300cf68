from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._page import NS_PER_MS, known, visit
from wirepaint.metrics._receiving import objects


@metric(
    title="Fully loaded", unit="ms", better="lower", source="WebPageTest", needs=("page", "object", "chunk")
)
def fully_loaded(trace: Trace) -> float:
    """Navigation start to the last byte of the last request, also of requests after the load event.
    A request that never ended does not count."""
    row = visit(trace)
    ended = [each.last for each in objects(trace) if each.failed is None and each.last is not None]
    if not ended:
        raise Missing("no request has a last byte")
    return (max(ended) - known(row, "navigation_start")) / NS_PER_MS
