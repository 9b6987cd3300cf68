from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import known, visit


@metric(title="Speed index", unit="ms", better="lower", source="WebPageTest", needs=("page",))
def speed_index(trace: Trace) -> float:
    """Mean time at which the parts of the first viewport reach their final look, from screencast frames."""
    return known(visit(trace), "speed_index")
