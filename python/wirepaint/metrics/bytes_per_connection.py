import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, metric, shared
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
    carried = trace("object").filter(pl.col("failed").is_null())
    if carried["encoded_bytes"].null_count():
        raise Missing("the size of an object is not known")
    per_connection = carried.group_by("connection").agg(value=pl.col("encoded_bytes").sum())
    return (
        used_connections(trace)
        .join(per_connection, on="connection", how="left")
        .select("connection", "encrypted", "protocol", pl.col("value").fill_null(0))
    )


def share_below(trace: Trace, limit: int) -> float:
    """Percent of the connections with less than ``limit`` response bytes."""
    return 100 * float((sizes(trace)["value"] < limit).mean())  # type: ignore[arg-type]
