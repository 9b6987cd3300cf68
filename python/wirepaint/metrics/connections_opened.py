from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._page import known, visit


@metric(title="Connections opened", unit="1", source="HTTP-AE Figure 6", needs=("page",))
def connections_opened(trace: Trace) -> float:
    """Connections that the browser opened, those that never carried a request included."""
    row = visit(trace)
    return known(row, "connections") + known(row, "surplus_connections")
