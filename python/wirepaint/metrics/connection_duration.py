import statistics

import polars as pl

from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._page import NS_PER_MS, used


@metric(
    title="Connection duration",
    unit="ms",
    source="FLD section 4, Figures 9 and 10",
    needs=("connection",),
)
def connection_duration(trace: Trace) -> float:
    """SYN sent to the last response byte received; the median over the connections with a request."""
    every = durations(trace)
    values = [value for *_, value in every if value is not None]
    if len(values) < len(every):
        raise Missing("the last byte of a connection is not known")
    return statistics.median(values)


@connection_duration.distribution(
    connection=pl.Int64, encrypted=pl.Boolean, protocol=pl.String, value=pl.Float64
)
def durations(trace: Trace) -> list[tuple[int, bool | None, str | None, float | None]]:
    """One row per connection; ``value`` in ms."""
    columns = ("connection", "encrypted", "protocol", "opened", "last_byte")
    return [
        (*whose, None if None in (opened, last) else (last - opened) / NS_PER_MS)
        for *whose, opened, last in used(trace, *columns)
    ]
