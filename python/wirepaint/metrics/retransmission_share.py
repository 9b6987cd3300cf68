import math

from wirepaint.metrics._metric import Missing, Trace, metric
from wirepaint.metrics._page import used


@metric(
    title="Retransmission share", unit="%", better="lower", source="RFC 4898 section 3", needs=("connection",)
)
def retransmission_share(trace: Trace) -> float:
    """Segments that the server sent again, of all data segments that it sent.

    First transmissions are counted as the bytes that a connection received, in full segments.
    """
    columns = ("retransmitted_segments", "bytes_received", "mss")
    connections = used(trace, *columns)
    for column, values in zip(columns, zip(*connections, strict=True), strict=True):
        if None in values:
            raise Missing(f"a connection has no {column}")
    if any(mss <= 0 for _, _, mss in connections):
        raise Missing("a connection has no mss")
    again = sum(segments for segments, _, _ in connections)
    once = sum(math.ceil(received / mss) for _, received, mss in connections)
    if once + again == 0:
        raise Missing("the server sent no data")
    return 100 * again / (once + again)
