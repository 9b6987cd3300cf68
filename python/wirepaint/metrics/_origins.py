"""Response bytes by where they came from."""

from __future__ import annotations

import polars as pl

from wirepaint.metrics._metric import Missing, Trace, shared


def byte_share(trace: Trace, served_by: str) -> float:
    """Bytes of the responses from there, as transferred, in per cent of those of all responses."""
    found = origins(trace)
    every = sum(found.values())
    if not every:
        raise Missing("no response came over the network")
    return 100 * found.get(served_by, 0) / every


@shared
def origins(trace: Trace) -> dict[str, int]:
    """Bytes of responses by where they came from."""
    objects = trace("object").drop_nulls("served_by").group_by("served_by")
    return dict(objects.agg(pl.col("encoded_bytes").sum()).iter_rows())
