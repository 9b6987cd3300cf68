from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import since_navigation


@metric(title="First contentful paint", unit="ms", better="lower", source="W3C Paint Timing", needs=("page",))
def first_contentful_paint(trace: Trace) -> float:
    """Navigation start to the first paint of text or an image."""
    return since_navigation(trace, "first_contentful_paint")
