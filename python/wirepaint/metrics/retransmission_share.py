import math

from wirepaint.metrics._metric import Missing, Trace, metric, rows
from wirepaint.metrics._page import used_connections


@metric(
    title="Retransmission share", unit="%", better="lower", source="RFC 4898 section 3", needs=("connection",)
)
def retransmission_share(trace: Trace) -> float:
    """Segments that the server sent again, of all data segments that it sent.

    First transmissions are counted as the bytes that a connection received, in full segments.
    """
    columns = ["retransmitted_segments", "bytes_received", "mss"]
    connections = used_connections(trace)
    for column in columns:
        if connections[column].null_count():
            raise Missing(f"a connection has no {column}")
    if (connections["mss"] <= 0).any():
        raise Missing("a connection has no mss")
    again = int(connections["retransmitted_segments"].sum())
    once = sum(math.ceil(received / mss) for received, mss in rows(connections, "bytes_received", "mss"))
    if once + again == 0:
        raise Missing("the server sent no data")
    return 100 * again / (once + again)
