import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, metric, shared


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
    sizes = [row["value"] for row in first_objects(trace).iter_rows(named=True) if row["bin"] <= 2]
    if not sizes:
        raise Missing("no first object of a connection arrived within two round trips")
    return float(max(sizes))


@object_size_per_rtt_bin.distribution
@shared
def first_objects(trace: Trace) -> Frame:
    """One row per connection: ``bin``, ``url``, ``value`` in bytes as transferred."""
    connections = trace("connection").select(
        "connection", "min_rtt", "encrypted", connection_protocol="protocol"
    )
    objects = (
        trace("object")
        .filter(pl.col("first_on_connection") & pl.col("failed").is_null())
        .join(connections, on="connection")
        .filter(
            (pl.col("min_rtt") > 0)
            & (pl.col("last_byte") > pl.col("sent"))
            & pl.col("encoded_bytes").is_not_null()
        )
    )
    if objects.is_empty():
        raise Missing("no connection has a first object with known times and minimum RTT")
    return objects.select(
        "connection",
        "encrypted",
        protocol="connection_protocol",
        bin=(pl.col("last_byte") - pl.col("sent") + pl.col("min_rtt") - 1) // pl.col("min_rtt"),
        url="url",
        value="encoded_bytes",
    )
