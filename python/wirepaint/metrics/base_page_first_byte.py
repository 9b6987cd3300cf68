from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import since_first_request


@metric(
    title="Base page first byte", unit="ms", better="lower", source="HTTP-AE III-B", needs=("page", "object")
)
def base_page_first_byte(trace: Trace) -> float:
    """First request sent to the first byte of the base document; redirects before it count."""
    return since_first_request(trace, "base_first_byte")
