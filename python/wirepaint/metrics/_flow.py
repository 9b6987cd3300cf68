"""Readings of the flows of a run."""

from __future__ import annotations

import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, shared

NS_PER_MS, NS_PER_S = 1e6, 1e9


def group(flow: str) -> str:
    """The name of the equal flows to which a flow belongs: that of its table in the evaluation."""
    return flow.partition(".")[0]


def groups(trace: Trace) -> list[str]:
    """The groups of flows of a run that began, in the order of their beginnings."""
    if trace("flow").is_empty():
        return []
    began = trace("flow").sort("started", maintain_order=True)["flow"].drop_nulls()
    return list(dict.fromkeys(map(group, began)))


@shared
def flows(trace: Trace) -> Frame:
    """One row per flow: ``flow``, ``started``, ``ended`` (null if it did not end), ``last`` (the end, or the
    last sample), ``bytes``, ``retransmitted``."""
    frame = trace("flow")
    if frame.is_empty():
        raise Missing("the run has no flow")
    return (
        frame.group_by("flow", "connection", maintain_order=True)
        .agg(
            pl.col("started", "ended").first(),
            pl.col("bytes", "retransmitted", "time").max(),
        )
        .with_columns(last=pl.coalesce("ended", "time"))
    )


def goodputs(trace: Trace) -> Frame:
    """The flows with ``value``, the rate of payload in Mbit/s from the start of each to its end."""
    found = flows(trace)
    if not found.filter(pl.col("last") <= pl.col("started")).is_empty():
        raise Missing("a flow ended as it began")
    rate = pl.col("bytes") * 8e3 / (pl.col("last") - pl.col("started"))
    return found.with_columns(value=rate)


def delays(trace: Trace) -> pl.Series:
    """Delays of the messages of constant-rate flows and exchanges in ms."""
    messages = trace("message")
    if messages.is_empty():
        raise Missing("the flow has no messages")
    return (messages["read"] - messages["due"]) / NS_PER_MS
