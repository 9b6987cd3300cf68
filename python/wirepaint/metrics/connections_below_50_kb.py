from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics.bytes_per_connection import share_below


@metric(title="Connections below 50 kB", unit="%", source="FLD section 3.1", needs=("connection", "object"))
def connections_below_50_kb(trace: Trace) -> float:
    """Share of the connections that carried fewer than 50,000 response bytes."""
    return share_below(trace, 50_000)
