"""Times in which objects are received: from the first to the last byte of each (FLD section 4)."""

from __future__ import annotations

import numpy as np
import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, shared
from wirepaint.metrics._page import known, visit


@shared
def with_chunks(trace: Trace) -> Frame:
    """Table ``object`` with ``first_chunk`` and ``last_chunk``, the times of its first and last chunk.

    They are null for an object without chunks. DevTools' own times are late by up to one TLS record.
    """
    time = pl.col("time")
    chunks = trace("chunk").group_by("request").agg(first_chunk=time.min(), last_chunk=time.max())
    return trace("object").join(chunks, on="request", how="left", maintain_order="left")


@shared
def receiving(trace: Trace) -> Frame:
    """One row per object received through a connection: ``connection``, ``start``, ``end`` in ns.

    Cut to the page load, [navigation start, load event]. Objects from a cache do not count.
    The last byte comes from the table ``chunk`` if the object has chunks, else from the table ``object``.
    """
    row = visit(trace)
    navigation, load = known(row, "navigation_start"), known(row, "load_event")
    start = pl.min_horizontal("first_byte", "first_chunk")
    failed = pl.when(pl.col("failed").is_not_null()).then("first_byte")
    received = with_chunks(trace).filter(pl.col("connection").is_not_null() & (start < load))
    objects = received.select(
        "connection",
        start=start.clip(navigation, load),
        end=pl.coalesce("last_chunk", "last_byte", failed).clip(navigation, load),
    )
    if objects["end"].null_count():
        endless = received["url"][objects["end"].is_null().arg_true()[0]]
        raise Missing(f"the last byte of {endless} is not known")
    return objects.filter(pl.col("end") > pl.col("start"))


def covered(intervals: Frame) -> int:
    """Length in ns of the union of the intervals [``start``, ``end``]."""
    return union(intervals["start"].to_numpy(), intervals["end"].to_numpy())


def union(starts: np.ndarray, ends: np.ndarray) -> int:
    """Length in ns of the union of intervals."""
    if starts.size == 0:
        return 0
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)
    gaps = np.maximum(starts[1:] - reached[:-1], 0)
    return int(reached[-1] - starts[0] - gaps.sum())


def load_duration(trace: Trace) -> int:
    """Length in ns of [navigation start, load event]."""
    row = visit(trace)
    return known(row, "load_event") - known(row, "navigation_start")
