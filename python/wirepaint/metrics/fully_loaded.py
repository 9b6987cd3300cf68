import polars as pl

from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._page import NS_PER_MS, known, visit
from wirepaint.metrics._receiving import with_chunks


@metric(
    title="Fully loaded", unit="ms", better="lower", source="WebPageTest", needs=("page", "object", "chunk")
)
def fully_loaded(trace: Trace) -> float:
    """Navigation start to the last byte of the last request, also of requests after the load event.
    A request that never ended does not count."""
    row = visit(trace)
    ended = pl.coalesce("last_chunk", "last_byte").filter(pl.col("failed").is_null())
    last = with_chunks(trace).select(ended.max()).item()
    if last is None:
        raise Missing("no request has a last byte")
    return (last - known(row, "navigation_start")) / NS_PER_MS
