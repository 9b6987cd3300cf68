from typing import NamedTuple

import polars as pl

from wirepaint.metrics._metric import Missing, Trace, metric, rows, shared


@metric(
    title="Object size per RTT bin",
    unit="bytes",
    source="FLD section 4, Figure 11",
    needs=("object", "connection"),
)
def object_size_per_rtt_bin(trace: Trace) -> float:
    """Size of the largest first object of a connection that arrived within two round trips.

    The distribution gives every first object with its bin: the time from request sent to last byte
    in round trips of its connection's minimum RTT, rounded up.
    """
    sizes = [first.value for first in first_objects(trace) if first.bin <= 2]
    if not sizes:
        raise Missing("no first object of a connection arrived within two round trips")
    return float(max(sizes))


class FirstObject(NamedTuple):
    """The first object of a connection."""

    connection: int
    encrypted: bool | None
    protocol: str | None
    bin: int
    """Round trips from its request to its last byte, rounded up."""
    url: str
    value: int
    """Its size in bytes as transferred."""


@shared
def first_objects(trace: Trace) -> list[FirstObject]:
    """The first object of each connection, if its times and the minimum RTT are known."""
    columns = ("connection", "encrypted", "protocol", "min_rtt")
    connections = {connection: of_one for connection, *of_one in rows(trace("connection"), *columns)}
    found = []
    columns = ("first_on_connection", "failed", "connection", "sent", "last_byte", "url", "encoded_bytes")
    for first, failed, connection, sent, last, url, size in rows(trace("object"), *columns):
        if not first or failed is not None or connection not in connections or None in (sent, last, size):
            continue
        encrypted, protocol, min_rtt = connections[connection]
        if min_rtt and last > sent:
            bin = (last - sent + min_rtt - 1) // min_rtt
            found.append(FirstObject(connection, encrypted, protocol, bin, url, size))
    if not found:
        raise Missing("no connection has a first object with known times and minimum RTT")
    return found


object_size_per_rtt_bin.distribution(
    connection=pl.Int64, encrypted=pl.Boolean, protocol=pl.String, bin=pl.Int64, url=pl.String, value=pl.Int64
)(first_objects)
