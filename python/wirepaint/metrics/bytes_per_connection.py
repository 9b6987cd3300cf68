import statistics

import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, metric, rows, shared
from wirepaint.metrics._page import used, used_connections


@metric(
    title="Bytes per connection",
    unit="bytes",
    source="FLD section 3.1, Figure 3",
    needs=("connection", "object"),
)
def bytes_per_connection(trace: Trace) -> float:
    """Response bytes of a connection as transferred; the median over the connections with a request."""
    return float(statistics.median(sizes(trace)))


@shared
def sizes(trace: Trace) -> list[int]:
    """Response bytes of each connection with a request."""
    carried: dict[int, int] = {}
    for failed, connection, size in rows(trace("object"), "failed", "connection", "encoded_bytes"):
        if failed is None:
            if size is None:
                raise Missing("the size of an object is not known")
            carried[connection] = carried.get(connection, 0) + size
    return [carried.get(connection, 0) for (connection,) in used(trace, "connection")]


@bytes_per_connection.distribution
def every(trace: Trace) -> Frame:
    """One row per connection: ``encrypted``, ``protocol``, ``value`` in bytes."""
    values = pl.Series("value", sizes(trace), pl.Int64)
    return used_connections(trace).select("connection", "encrypted", "protocol", values)


def share_below(trace: Trace, limit: int) -> float:
    """Percent of the connections with less than ``limit`` response bytes."""
    below = [size < limit for size in sizes(trace)]
    return 100 * (sum(below) / len(below))
