from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import since_first_request


@metric(
    title="Base page latency", unit="ms", better="lower", source="HTTP-AE III-B", needs=("page", "object")
)
def base_page_latency(trace: Trace) -> float:
    """First request sent to the last byte of the base document; redirects before it count."""
    return since_first_request(trace, "base_last_byte")
