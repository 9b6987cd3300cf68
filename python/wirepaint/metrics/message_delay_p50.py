from __future__ import annotations

from wirepaint.metrics import Trace, metric
from wirepaint.metrics._flow import delays


@metric(
    title="Message delay p50",
    unit="ms",
    better="lower",
    source="RFC 5166 section 2.1.2; TCP-CWV section IV",
    needs=("message",),
    over="flow",
)
def message_delay_p50(trace: Trace) -> float:
    """Time from the write of a message to its last byte at the reader: half of the messages took no longer.

    Of an exchange: from the request to the last byte of the answer.
    """
    value = delays(trace).quantile(0.5, "higher")
    assert value is not None
    return value
