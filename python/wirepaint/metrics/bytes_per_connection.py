import statistics

import polars as pl

from wirepaint.metrics._metric import Missing, Trace, metric, rows, shared
from wirepaint.metrics._page import used


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


@bytes_per_connection.distribution(
    connection=pl.Int64, encrypted=pl.Boolean, protocol=pl.String, value=pl.Int64
)
def every(trace: Trace) -> list[tuple[int, bool | None, str | None, int]]:
    """One row per connection; ``value`` in bytes."""
    connections = used(trace, "connection", "encrypted", "protocol")
    return [(*each, size) for each, size in zip(connections, sizes(trace), strict=True)]


def share_below(trace: Trace, limit: int) -> float:
    """Percent of the connections with less than ``limit`` response bytes."""
    below = [size < limit for size in sizes(trace)]
    return 100 * (sum(below) / len(below))
