"""Connections in use at a time while anything is being received, over all visits: lower means that fewer
connections would do."""

from __future__ import annotations

from typing import Any

import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style
from wirepaint.figures._values import by_condition, cumulated, scaled, shares_by_value

TITLE = "Effective concurrency"
SOURCE = "FLD section 4, Figure 8"


def data(evidence: Evidence) -> pl.DataFrame:
    """One row per counted run: ``condition``, ``series``, ``page``, ``value``, ``share`` of the runs."""
    return cumulated(scaled(evidence.table, metrics.get("effective-concurrency")), ["condition", "series"])


def chart(frame: pl.DataFrame, style: Style) -> Any:
    return by_condition(shares_by_value(frame, style), frame, style, height=130)
