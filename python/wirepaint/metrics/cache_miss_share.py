from wirepaint.metrics._metric import Trace, metric
from wirepaint.metrics._origins import byte_share


@metric(title="Cache misses", unit="%", source="RFC 9211 section 2.2", needs=("object",))
def cache_miss_share(trace: Trace) -> float:
    """Response bytes of the page that a proxy fetched from a server, as a share of all.

    Bytes in a tunnel are neither hit nor miss.
    """
    return byte_share(trace, "cache miss")
