"""Tables of values and axes that several figures share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from wirepaint.figures._style import Style
from wirepaint.metrics import Metric
from wirepaint.statistics.agreement import REAL, SIMULATED

MOST_COLUMNS, LEAST_WIDTH = 4, 240
"""Conditions side by side, and the pixels that each needs."""
MOST_PAGES = 8
"""With more pages, a page has no plot of its own."""
SHOWN = {"ms": (1000.0, "s"), "bytes": (1000.0, "kB"), "1": (1.0, ""), "": (1.0, "")}
"""Divisor and name of the unit that an axis shows, by the unit of the metric."""


def scaled(table: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    """The values of a metric, one row per run, in the shown unit, with a label for each point."""
    frame = table.filter(pl.col(metric.column).is_not_null()).select(
        "condition", "page", "series", "visit", value=pl.col(metric.column)
    )
    frame = in_shown_unit(frame, metric)
    what = pl.format("{}, {}, {}, visit {}: ", "series", "condition", "page", "visit")
    return frame.with_columns(label=what + pl.format("{} {}", pl.col("value").round(3), "unit"))


def in_shown_unit(frame: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    """``value`` in the shown unit, with ``unit`` and the title of its ``axis``."""
    divisor, unit = SHOWN.get(metric.unit, (1.0, metric.unit))
    title = f"{metric.title}, {unit}" if unit else metric.title
    return frame.with_columns(pl.col("value") / divisor, unit=pl.lit(unit), axis=pl.lit(title))


def cumulated(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """``frame`` with ``share``: the share of its group's values up to ``value``; each group begins at 0."""
    ranked = frame.sort("value", maintain_order=True).with_columns(
        share=pl.int_range(1, pl.len() + 1).over(by) / pl.len().over(by)
    )
    start = ranked.group_by(by, maintain_order=True).first().with_columns(share=pl.lit(0.0))
    return pl.concat([start.select(ranked.columns), ranked]).sort(*by, "share", maintain_order=True)


def spanned(frame: pl.DataFrame, value: str = "value", by: Sequence[str] = ()) -> pl.DataFrame:
    """``frame`` with the ``low`` and ``high`` of ``value`` in each plot and that of the other back end.

    ``by`` are the columns that tell plots apart, beside the condition.
    """
    of_either = pl.col("condition").cast(pl.String).str.replace_all(f"{REAL}|{SIMULATED}", "")
    plots = [of_either, *by]
    return frame.with_columns(low=pl.col(value).min().over(plots), high=pl.col(value).max().over(plots))


def span(frame: pl.DataFrame, title: str) -> Any:
    """An invisible layer from ``low`` to ``high``, so that the axis of a plot reaches so far."""
    from_low, to_high = alt.X("min(low):Q", title=title), alt.X2("max(high):Q")
    return alt.Chart(frame).mark_rule(opacity=0).encode(from_low, to_high)


def width_of(frame: pl.DataFrame, style: Style) -> int:
    """Width of one plot when a row holds a plot per page."""
    columns = frame["page"].n_unique()
    return max(120, (style.width - 26 * columns) // columns)


def by_condition(plot: Any, frame: pl.DataFrame, style: Style, height: int | alt.Step) -> Any:
    """One plot per condition, side by side; those for which there is no room go into rows of equal length."""
    count = frame["condition"].n_unique()
    most = min(MOST_COLUMNS, max(style.width // LEAST_WIDTH, 1))
    columns = math.ceil(count / math.ceil(count / most))
    conditions = alt.Facet("condition:N", title=None, sort=list(style.conditions))
    return plot.properties(width=max(style.width // columns - 40, 60), height=height).facet(
        conditions, columns=columns, spacing=26
    )


def shares_by_value(frame: pl.DataFrame, style: Style, log: bool = False) -> Any:
    """A curve per series: the share of the values up to each value."""
    return (
        alt.Chart(frame)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=value_axis(frame, log), y=share_axis(), color=style.colour(), strokeDash=style.dash())
    )


def value_axis(frame: pl.DataFrame, log: bool = False) -> alt.X:
    scale = alt.Scale(type="log") if log else alt.Scale(zero=False)
    return alt.X("value:Q", title=frame["axis"][0], scale=scale, axis=alt.Axis(tickCount=3 if log else 5))


def share_axis() -> alt.Y:
    return alt.Y(
        "share:Q",
        title=None,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(labelExpr="100 * datum.value + ' %'", values=[0, 0.25, 0.5, 0.75, 1]),
    )
