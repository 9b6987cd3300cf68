from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._receiving import Interval, busy, covered, receiving


@metric(
    title="Effective concurrency",
    unit="1",
    source="FLD section 4, Figure 8",
    needs=("page", "object", "chunk"),
)
def effective_concurrency(trace: Trace) -> float:
    """Connections in use at a time, on average over the page net transfer time.

    The sum over connections of the time in which an object is being received through them, divided
    by the page net transfer time. Objects that share a connection at the same time count once.
    """
    duration = busy(trace)
    if duration == 0:
        raise Missing("nothing was received")
    through: dict[int, list[Interval]] = {}
    for interval in receiving(trace):
        through.setdefault(interval.connection, []).append(interval)
    return sum(map(covered, through.values())) / duration
