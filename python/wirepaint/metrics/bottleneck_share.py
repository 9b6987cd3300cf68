from wirepaint.metrics._bottleneck import increase, samples
from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._receiving import received_bytes


@metric(
    title="Share of the bottleneck",
    unit="%",
    source="HTTP-AE Figure 10",
    needs=("page", "chunk", "link"),
)
def bottleneck_share(trace: Trace) -> float:
    """Bytes that the browser received while the page loaded, as a share of those that the bottleneck carried.

    A user alone has less than 100 %: headers of packets and retransmissions are no bytes of the browser's.
    """
    part = samples(trace)
    carried = increase(part, "delivered_bytes")
    if not carried:
        raise Missing("the bottleneck carried nothing while the page loaded")
    times = part.column("time")
    return 100 * received_bytes(trace, times[0], times[-1]) / carried
