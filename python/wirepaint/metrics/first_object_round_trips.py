from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics.object_size_per_rtt_bin import first_objects


@metric(
    title="Round trips of first objects",
    unit="1",
    better="lower",
    source="FLD section 4, Figure 11",
    needs=("object", "connection"),
)
def first_object_round_trips(trace: Trace) -> float:
    """Round trips that the first object of a connection takes, rounded up; the mean over connections."""
    bins = [first.bin for first in first_objects(trace)]
    return sum(bins) / len(bins)
