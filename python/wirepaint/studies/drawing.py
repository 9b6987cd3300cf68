"""The figures of a study: the mean over the seeds, with its 95 % interval.

Rows of one seed that a point takes together, such as pages, are averaged first: the interval is that of
repetitions, not the spread of pages. A seed that lacks one of them is left out of the point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from wirepaint.figures import Style
from wirepaint.figures._style import finish
from wirepaint.statistics import Interval, mean
from wirepaint.studies.model import Figure
from wirepaint.studies.verdicts import averaged, select

SIZE = {"width": 480, "height": 270}
MOST_POINTS = 40
"""A curve with more points has no marks and intervals."""


def data(figure: Figure, sweeps: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row per series and x: ``x``, ``y``, ``low`` and ``high`` (null without an interval), ``seeds``."""
    by = [column for column in ("series", figure.facet, figure.x) if column]
    selected = select(figure, sweeps).drop_nulls(figure.y)
    dense = selected[figure.x].n_unique() > MOST_POINTS
    by_seed = selected.group_by(*by, "seed", maintain_order=True).agg(averaged(figure.y), rows=pl.len())
    complete = by_seed.filter(pl.col("rows") == pl.col("rows").max().over(by))
    rows = []
    for key, part in complete.group_by(by, maintain_order=True):
        values = part[figure.y].to_list()
        interval = Interval(sum(values) / len(values)) if dense else mean(values)
        own = {"y": interval.value, "low": interval.low, "high": interval.high, "seeds": len(values)}
        rows.append(dict(zip(by, key, strict=True)) | own)
    return pl.DataFrame(rows, infer_schema_length=None).rename({figure.x: "x"}).sort("x", maintain_order=True)


def chart(figure: Figure, frame: pl.DataFrame) -> dict[str, Any]:
    """The figure as a Vega-Lite specification; ``frame`` is its data."""
    if figure.facet is None:
        return finish(_panel(figure, frame).properties(**SIZE))
    panels = []
    for value in frame[figure.facet].unique(maintain_order=True):
        title = alt.Title(f"{figure.facet} {value}", anchor="start", fontSize=13)
        panel = _panel(figure, frame.filter(pl.col(figure.facet) == value))
        panels.append(panel.properties(width=SIZE["width"] * 0.92, height=SIZE["height"], title=title))
    return finish(alt.hconcat(*panels))


def _panel(figure: Figure, frame: pl.DataFrame) -> Any:
    style = Style(sorted(frame["series"].unique(), reverse=True), (), ())
    dense = frame["x"].n_unique() > MOST_POINTS
    x = alt.X("x:Q", title=figure.x_title, scale=alt.Scale(nice=False))
    scale = alt.Scale(type="log" if figure.log else "linear")
    y = alt.Y("y:Q", title=figure.y_title, scale=scale)
    base = alt.Chart(frame)
    line = base.mark_line(strokeWidth=2, interpolate="step-after" if dense else "linear")
    layers = [line.encode(x, y, color=style.colour(), strokeDash=style.dash(legend=dense))]
    if not dense:
        low = alt.Y("low:Q", title=figure.y_title, scale=scale)
        layers.append(base.mark_rule(strokeWidth=1.5).encode(x, low, alt.Y2("high:Q"), color=style.colour()))
        label = pl.format("{}: {} at {}", "series", pl.col("y").round(2), "x")
        points = alt.Chart(frame.with_columns(label=label)).mark_point(filled=True, size=45, opacity=1)
        layers.append(points.encode(x, y, color=style.colour(), shape=style.shape(), description="label:N"))
    return alt.layer(*layers)
