import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, metric
from wirepaint.metrics._page import NS_PER_MS, used_connections


@metric(
    title="Connection duration",
    unit="ms",
    better="lower",
    source="FLD section 4, Figures 9 and 10",
    needs=("connection",),
)
def connection_duration(trace: Trace) -> float:
    """SYN sent to the last response byte received; the median over the connections with a request."""
    values = durations(trace)["value"]
    if values.null_count():
        raise Missing("the last byte of a connection is not known")
    return float(values.median())  # type: ignore[arg-type]


@connection_duration.distribution
def durations(trace: Trace) -> Frame:
    """One row per connection: ``encrypted``, ``protocol``, ``value`` in ms."""
    connections = used_connections(trace)
    # Polars divides a column by a column of one value in other digits than by a number.
    values = (connections["last_byte"] - connections["opened"]) / pl.Series([NS_PER_MS])
    return connections[["connection", "encrypted", "protocol"]].hstack([values.alias("value")])
