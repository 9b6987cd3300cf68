from wirepaint.metrics._bottleneck import increase, samples
from wirepaint.metrics._metric import Missing, Trace, metric


@metric(title="Drop rate", unit="%", better="lower", source="CWV", needs=("page", "flow", "link"))
def drop_rate(trace: Trace) -> float:
    """Packets dropped of those offered at the bottleneck towards the client during the page load.

    Drops of the queue and of the loss model count alike.
    """
    part = samples(trace)
    offered = increase(part, "offered_packets")
    if offered == 0:
        raise Missing("no packet arrived at the bottleneck during the page load")
    return 100 * (increase(part, "queue_drops") + increase(part, "random_losses")) / offered
