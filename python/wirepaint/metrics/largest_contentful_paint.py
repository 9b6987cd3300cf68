from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import since_navigation


@metric(
    title="Largest contentful paint",
    unit="ms",
    better="lower",
    source="W3C Largest Contentful Paint",
    needs=("page",),
)
def largest_contentful_paint(trace: Trace) -> float:
    """Navigation start to the paint of the largest text or image, the last candidate of the visit."""
    return since_navigation(trace, "largest_contentful_paint")
