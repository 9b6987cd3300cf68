"""Share of the page load in which no object is being received, over all visits: the browser computes, or
waits for servers and round trips."""

from __future__ import annotations

from typing import Any

import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style
from wirepaint.figures._values import by_condition, cumulated, scaled, shares_by_value

TITLE = "Idle share of the page load"
SOURCE = "FLD section 4, Figure 7"


def data(evidence: Evidence) -> pl.DataFrame:
    """One row per counted run: ``condition``, ``series``, ``page``, ``value``, ``share`` of the runs."""
    return cumulated(scaled(evidence.table, metrics.get("idle-share")), ["condition", "series"])


def chart(frame: pl.DataFrame, style: Style) -> Any:
    return by_condition(shares_by_value(frame, style), frame, style, height=130)
