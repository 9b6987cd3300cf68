from wirepaint.metrics._bottleneck import delay_percentile
from wirepaint.metrics._metric import Trace, metric


@metric(
    title="Queueing delay p99",
    unit="ms",
    better="lower",
    source="RFC 7928 section 2",
    needs=("page", "flow", "link"),
)
def queueing_delay_p99(trace: Trace) -> float:
    """Time that a packet waits at the bottleneck towards the client, 99th percentile.

    From samples of the queue during the page load, weighted by the packets that arrived.
    """
    return delay_percentile(trace, 0.99)
