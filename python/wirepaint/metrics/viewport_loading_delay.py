from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import since_navigation


@metric(title="Viewport loading delay", unit="ms", better="lower", source="HTTP-AE III-B", needs=("page",))
def viewport_loading_delay(trace: Trace) -> float:
    """Navigation start until the last object of the first viewport is loaded and painted."""
    return since_navigation(trace, "viewport_complete")
