"""The largest first object of a connection that arrived within so many round trips (of the connection's
smallest round-trip time): what the window had grown to by then."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style
from wirepaint.figures._values import by_condition, in_shown_unit

TITLE = "Object size by round trips"
SOURCE = "FLD section 4, Figure 11"
MOST_BINS = 12
"""Later bins hold objects that waited for something other than the window."""


def data(evidence: Evidence) -> pl.DataFrame:
    """One row per ``condition``, ``series`` and ``bin``: ``value`` in kB, ``objects`` in the bin."""
    metric = metrics.get("object-size-per-rtt-bin")
    items = evidence.distribution(metric.name)
    if items.is_empty():
        return items
    bins = (
        items.filter(pl.col("bin") <= MOST_BINS)
        .group_by("condition", "series", "bin", maintain_order=True)
        .agg(pl.col("value").max(), objects=pl.len())
        .sort("condition", "series", "bin")
    )
    labelled = in_shown_unit(bins, metric).with_columns(axis=pl.lit("Largest first object, kB"))
    what = pl.format("{}, {}, {} round trips: ", "series", "condition", "bin")
    return labelled.with_columns(label=what + pl.format("{} kB", pl.col("value").round(1)))


def chart(frame: pl.DataFrame, style: Style) -> Any:
    base = alt.Chart(frame).encode(
        x=alt.X("bin:O", title="Round trips", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=frame["axis"][0], scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=3)),
        color=style.colour(),
    )
    line = base.mark_line(strokeWidth=1.5).encode(strokeDash=style.dash(legend=False))
    points = base.mark_point(filled=True, size=44, opacity=1).encode(
        shape=style.shape(), description="label:N"
    )
    return by_condition(alt.layer(line, points), frame, style, height=150)
