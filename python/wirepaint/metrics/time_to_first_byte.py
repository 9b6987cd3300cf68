from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import since_navigation


@metric(
    title="Time to first byte", unit="ms", better="lower", source="W3C Navigation Timing", needs=("page",)
)
def time_to_first_byte(trace: Trace) -> float:
    """Navigation start to the first byte of the page's document; redirects, look-up, TCP and TLS count."""
    return since_navigation(trace, "base_first_byte")
