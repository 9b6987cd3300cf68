from __future__ import annotations

import polars as pl

from wirepaint.metrics import Missing, Trace, metric
from wirepaint.metrics._flow import NS_PER_MS, flows


@metric(
    title="Flow completion time",
    unit="ms",
    better="lower",
    source="RFC 5166 section 2.1.2; FLD section 3",
    needs=("flow",),
    over="flow",
)
def flow_completion_time(trace: Trace) -> float:
    """From the first SYN of a flow to its last byte at the receiver. Of equal flows the mean."""
    found = flows(trace)
    if late := found.filter(pl.col("ended").is_null()).height:
        raise Missing(f"{late} of {found.height} flows did not end")
    value = (found["ended"] - found["started"]).mean()
    assert isinstance(value, float)
    return value / NS_PER_MS
