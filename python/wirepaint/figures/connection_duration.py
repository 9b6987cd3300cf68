"""From the SYN to the last response byte of every connection that carried a request, by protocol and
encryption."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style
from wirepaint.figures._values import WIDTH, cumulated, in_shown_unit, share_axis, value_axis

TITLE = "Duration of connections"
SOURCE = "FLD section 4, Figures 9 and 10"


def data(evidence: Evidence) -> pl.DataFrame:
    """One row per connection: ``condition``, ``series``, ``page``, ``kind``, ``value`` in s, ``share``."""
    metric = metrics.get("connection-duration")
    items = evidence.distribution(metric.name)
    if items.is_empty():
        return items
    sort = pl.when("encrypted").then(pl.lit("encrypted")).otherwise(pl.lit("plain"))
    kind = pl.concat_str(sort, pl.col("protocol").fill_null("nothing negotiated"), separator=" ")
    known = items.drop_nulls("value").with_columns(kind=kind)
    frame = in_shown_unit(known.select("condition", "series", "page", "kind", "value"), metric)
    return cumulated(frame, ["condition", "series", "kind"])


def chart(frame: pl.DataFrame, style: Style) -> Any:
    columns = frame["condition"].n_unique()
    header = alt.Header(labelAngle=0, labelAlign="left", labelAnchor="middle", labelFontWeight="normal")
    return (
        alt.Chart(frame)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=value_axis(frame), y=share_axis(), color=style.colour(), strokeDash=style.dash())
        .properties(width=(WIDTH - 90 - 40 * columns) // columns, height=120)
        .facet(row=alt.Row("kind:N", title=None, header=header), column=style.condition_columns(), spacing=24)
        .resolve_scale(x="independent")
    )
