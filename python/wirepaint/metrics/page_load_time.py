from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import since_navigation


@metric(
    title="Page load time", unit="ms", better="lower", source="FLD section 4; HTTP-AE III-B", needs=("page",)
)
def page_load_time(trace: Trace) -> float:
    """Navigation start to the load event, at which all embedded objects are loaded."""
    return since_navigation(trace, "load_event")
