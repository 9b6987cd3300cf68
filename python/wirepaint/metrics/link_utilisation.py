from wirepaint.metrics._bottleneck import increase, samples
from wirepaint.metrics._metric import Missing, Trace, metric


@metric(
    title="Link utilisation",
    unit="%",
    better="higher",
    source="RFC 7928 section 2",
    needs=("page", "flow", "link"),
)
def link_utilisation(trace: Trace) -> float:
    """Wire bytes delivered of those that the bottleneck towards the client could have carried.

    Over the page load, idle time included.
    """
    part = samples(trace)
    capacity = increase(part, "capacity_bytes")
    if capacity <= 0:
        raise Missing("the link could carry nothing during the page load")
    return 100 * increase(part, "delivered_bytes") / capacity
