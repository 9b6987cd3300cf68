from __future__ import annotations

from wirepaint.metrics import Trace, metric
from wirepaint.metrics._flow import flows


@metric(
    title="Flow retransmissions",
    unit="segments",
    better="lower",
    source="RFC 4898 (SegsRetrans)",
    needs=("flow",),
    over="flow",
)
def flow_retransmissions(trace: Trace) -> float:
    """Segments that a flow's sender sent again. Of equal flows the mean."""
    value = flows(trace)["retransmitted"].mean()
    assert isinstance(value, float)
    return value
