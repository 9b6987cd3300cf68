from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import known, visit


@metric(title="Bytes transferred", unit="bytes", source="HTTP-AE Figure 6", needs=("page",))
def bytes_transferred(trace: Trace) -> float:
    """Response bytes of the page as transferred, headers included."""
    return known(visit(trace), "encoded_bytes")
