from __future__ import annotations

from wirepaint.metrics import Missing, Trace, metric
from wirepaint.metrics._flow import goodputs


@metric(
    title="Jain's index of the flows",
    unit="1",
    better="higher",
    source="RFC 5166 section 2.3",
    needs=("flow",),
    over="run",
)
def jain_index(trace: Trace) -> float:
    """Fairness among the goodputs of all flows of the run: 1 if they are equal, 1/n if one of n has all."""
    rates = goodputs(trace)["value"]
    if len(rates) < 2:
        raise Missing("the run has a single flow")
    squares = float((rates * rates).sum())
    if not squares:
        raise Missing("no flow received a byte")
    return float(rates.sum()) ** 2 / (len(rates) * squares)
