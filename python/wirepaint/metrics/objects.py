from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import known, visit


@metric(title="Objects", unit="1", source="HTTP-AE III-B", needs=("page",))
def objects(trace: Trace) -> float:
    """Objects that the page loaded."""
    return known(visit(trace), "objects")
