"""Response bytes that a connection carried, over all connections with a request. Most carry little, so
most of them end while TCP is still in slow start."""

from __future__ import annotations

from typing import Any

import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style
from wirepaint.figures._values import by_condition, cumulated, in_shown_unit, shares_by_value

TITLE = "Bytes per connection"
SOURCE = "FLD section 3.1, Figure 3"


def data(evidence: Evidence) -> pl.DataFrame:
    """One row per connection: ``condition``, ``series``, ``page``, ``value`` in kB, ``share``."""
    metric = metrics.get("bytes-per-connection")
    items = evidence.distribution(metric.name)
    if items.is_empty():
        return items
    # A logarithmic axis has no place for zero.
    frame = items.filter(pl.col("value") > 0).select("condition", "series", "page", "value")
    return cumulated(in_shown_unit(frame, metric), ["condition", "series"])


def chart(frame: pl.DataFrame, style: Style) -> Any:
    return by_condition(shares_by_value(frame, style, log=True), frame, style, height=130)
