from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import known, visit


@metric(title="Surplus connections", unit="1", better="lower", source="RFC 9113 section 9.1", needs=("page",))
def surplus_connections(trace: Trace) -> float:
    """Connections that were opened and never carried a request.

    Chromium opens several to a new host until it knows that the host speaks HTTP/2.
    """
    return known(visit(trace), "surplus_connections")
