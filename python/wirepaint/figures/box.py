"""Every single value as a point, with a box from the lower to the upper quartile, the median as its
line, and whiskers to the smallest and largest value."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import MUTED, Style
from wirepaint.figures._values import MOST_PAGES, by_condition, scaled, span, spanned, width_of

TITLE = "Every value"
SOURCE = "Tukey, Exploratory Data Analysis (1977)"


def data(evidence: Evidence, metric: str = "page-load-time") -> pl.DataFrame:
    """One row per counted run: ``condition``, ``page``, ``series``, ``visit``, ``value``, ``unit``."""
    return scaled(evidence.table, metrics.get(metric))


def chart(frame: pl.DataFrame, style: Style) -> Any:
    if frame["page"].n_unique() > MOST_PAGES:
        return _pages_as_rows(frame, style)
    frame = spanned(frame, by=["page"])
    boxes = _boxes(frame, style, alt.Y("series:N", sort=list(style.series), title=None, axis=None))
    return (
        boxes.properties(width=width_of(frame, style), height=alt.Step(26))
        .facet(row=style.rows(), column=style.page_columns(), spacing={"row": 18, "column": 22})
        .resolve_scale(x="independent")
    )


def _pages_as_rows(frame: pl.DataFrame, style: Style) -> Any:
    """Many pages share one axis of values per condition."""
    frame = spanned(frame)
    page = alt.Y("page:N", title=None, sort=list(style.pages), axis=alt.Axis(domain=False, ticks=False))
    boxes = _boxes(frame, style, page, alt.YOffset("series:N", sort=list(style.series)))
    band = alt.Step(18 * len(style.series) + 6, **{"for": "position"})
    return by_condition(boxes, frame, style, height=band).resolve_scale(x="independent")


def _boxes(frame: pl.DataFrame, style: Style, y: alt.Y, offset: alt.YOffset | None = None) -> Any:
    base = alt.Chart(frame).encode(y=y)
    if offset is not None:
        base = base.encode(yOffset=offset)
    title = frame["axis"][0]
    axis = alt.X("value:Q", title=title, scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(tickCount=5))
    whisker = base.mark_rule(color=MUTED).encode(alt.X("min(value):Q", title=title), alt.X2("max(value):Q"))
    box = base.mark_bar(size=14, fillOpacity=0.2, strokeWidth=1).encode(
        alt.X("q1(value):Q", title=title), alt.X2("q3(value):Q"), color=style.colour()
    )
    middle = base.mark_tick(size=14, thickness=2.5).encode(
        alt.X("median(value):Q", title=title), color=style.colour()
    )
    points = base.mark_point(filled=True, size=30, opacity=0.8, strokeWidth=0).encode(
        axis, color=style.colour(), shape=style.shape(), description="label:N"
    )
    return alt.layer(span(frame, title), whisker, box, middle, points)
