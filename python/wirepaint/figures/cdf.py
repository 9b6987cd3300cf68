"""Share of the visits whose value is at most the one on the axis: a curve further to the left has the
smaller values."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style
from wirepaint.figures._values import MOST_PAGES, cumulated, scaled, shares_by_value, span, spanned, width_of

TITLE = "Cumulative distribution"
SOURCE = "empirical distribution function"


def data(evidence: Evidence, metric: str = "page-load-time") -> pl.DataFrame:
    """One row per counted run: ``condition``, ``page``, ``series``, ``visit``, ``value``, ``share``.

    With more than ``MOST_PAGES`` pages all pages of a condition share one curve.
    """
    frame = scaled(evidence.table, metrics.get(metric))
    if frame["page"].n_unique() > MOST_PAGES:
        frame = frame.with_columns(page=pl.lit("all pages"))
    return cumulated(frame, ["condition", "page", "series"])


def chart(frame: pl.DataFrame, style: Style) -> Any:
    frame = spanned(frame, by=["page"])
    return (
        alt.layer(shares_by_value(frame, style), span(frame, frame["axis"][0]))
        .properties(width=width_of(frame, style), height=96)
        .facet(row=style.rows(), column=style.page_columns(), spacing={"row": 18, "column": 22})
        .resolve_scale(x="independent")
    )
