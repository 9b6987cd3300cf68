from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._origins import byte_share


@metric(title="Cache hits", unit="%", source="RFC 9211 section 2.1", needs=("object",))
def cache_hit_share(trace: Trace) -> float:
    """Response bytes of the page that a proxy's cache answered with, as a share of all."""
    return byte_share(trace, "cache hit")
