from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._origins import byte_share


@metric(title="Sent ahead", unit="%", source="HTTP-AE section IV-D", needs=("object",))
def ahead_share(trace: Trace) -> float:
    """Response bytes of the page that a PEP had sent ahead of the browser's requests, as a share of all."""
    return byte_share(trace, "ahead")
