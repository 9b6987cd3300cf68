from __future__ import annotations

from wirepaint.metrics import Trace, metric
from wirepaint.metrics._flow import goodputs


@metric(
    title="Goodput",
    unit="Mbit/s",
    better="higher",
    source="RFC 5166 section 2.1.1; Heracles section 4",
    needs=("flow",),
    over="flow",
)
def goodput(trace: Trace) -> float:
    """Rate at which a flow's payload was received, from its start to its last byte or the end of the run.

    Of equal flows the mean.
    """
    value = goodputs(trace)["value"].mean()
    assert isinstance(value, float)
    return value
