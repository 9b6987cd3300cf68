from __future__ import annotations

from wirepaint.metrics import Missing, Trace, metric
from wirepaint.metrics._flow import flows
from wirepaint.metrics._metric import EVERY_FLOW


@metric(
    title="Share of the flows' bytes",
    unit="%",
    source="Heracles section 4",
    needs=("flow",),
    over="flow",
)
def flow_share(trace: Trace) -> float:
    """Bytes of the flows of one name, as a share of those of all flows of the run."""
    everything = float(flows(lambda _: trace(EVERY_FLOW))["bytes"].sum())
    if not everything:
        raise Missing("no flow received a byte")
    return 100 * float(flows(trace)["bytes"].sum()) / everything
