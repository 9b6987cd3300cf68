"""Response bytes by where they came from."""

from __future__ import annotations

import polars as pl

from wirepaint.metrics._metric import Missing, Trace


def byte_share(trace: Trace, served_by: str) -> float:
    """Bytes of the responses from there, as transferred, in per cent of those of all responses."""
    objects = trace("object").filter(pl.col("served_by").is_not_null())
    every = int(objects["encoded_bytes"].sum())
    if not every:
        raise Missing("no response came over the network")
    return 100 * int(objects.filter(pl.col("served_by") == served_by)["encoded_bytes"].sum()) / every
