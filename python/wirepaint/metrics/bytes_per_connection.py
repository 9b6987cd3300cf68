import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, metric, rows, shared
from wirepaint.metrics._page import used_connections


@metric(
    title="Bytes per connection",
    unit="bytes",
    source="FLD section 3.1, Figure 3",
    needs=("connection", "object"),
)
def bytes_per_connection(trace: Trace) -> float:
    """Response bytes of a connection as transferred; the median over the connections with a request."""
    return float(sizes(trace)["value"].median())  # type: ignore[arg-type]


@bytes_per_connection.distribution
@shared
def sizes(trace: Trace) -> Frame:
    """One row per connection: ``encrypted``, ``protocol``, ``value`` in bytes."""
    carried: dict[int, int] = {}
    for failed, connection, size in rows(trace("object"), "failed", "connection", "encoded_bytes"):
        if failed is None:
            if size is None:
                raise Missing("the size of an object is not known")
            carried[connection] = carried.get(connection, 0) + size
    connections = used_connections(trace)
    sizes = [carried.get(connection, 0) for connection in connections["connection"].to_list()]
    named = connections[["connection", "encrypted", "protocol"]]
    return named.hstack([pl.Series("value", sizes, pl.Int64)])


def share_below(trace: Trace, limit: int) -> float:
    """Percent of the connections with less than ``limit`` response bytes."""
    return 100 * float((sizes(trace)["value"] < limit).mean())  # type: ignore[arg-type]
