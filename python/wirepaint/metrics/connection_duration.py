import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, metric
from wirepaint.metrics._page import NS_PER_MS, used, used_connections


@metric(
    title="Connection duration",
    unit="ms",
    source="FLD section 4, Figures 9 and 10",
    needs=("connection",),
)
def connection_duration(trace: Trace) -> float:
    """SYN sent to the last response byte received; the median over the connections with a request."""
    times = used(trace, "opened", "last_byte")
    if any(None in each for each in times):
        raise Missing("the last byte of a connection is not known")
    # By a column of one value, as in `durations`: Polars divides by a number in other digits.
    values = pl.Series([last - opened for opened, last in times]) / pl.Series([NS_PER_MS])
    return float(values.median())  # type: ignore[arg-type]


@connection_duration.distribution
def durations(trace: Trace) -> Frame:
    """One row per connection: ``encrypted``, ``protocol``, ``value`` in ms."""
    return used_connections(trace).select(
        "connection", "encrypted", "protocol", value=(pl.col("last_byte") - pl.col("opened")) / NS_PER_MS
    )
