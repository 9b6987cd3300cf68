"""From the SYN to the last response byte of every connection that carried a request, by protocol and
encryption."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from wirepaint import metrics
from wirepaint.evaluation import axes
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style
from wirepaint.figures._values import by_condition, cumulated, in_shown_unit, shares_by_value, span, spanned

TITLE = "Duration of connections"
SOURCE = "FLD section 4, Figures 9 and 10"
PROTOCOLS = {negotiated: axes.HTTP_WORDS[version] for version, negotiated in axes.HTTP_VERSIONS.items()}


def data(evidence: Evidence) -> pl.DataFrame:
    """One row per connection: ``condition``, ``series``, ``page``, ``kind``, ``value`` in s, ``share``."""
    metric = metrics.get("connection-duration")
    items = evidence.distribution(metric.name)
    if items.is_empty():
        return items
    sort = pl.when("encrypted").then(pl.lit("encrypted")).otherwise(pl.lit("plain"))
    protocol = pl.col("protocol").replace(PROTOCOLS).fill_null("nothing negotiated")
    kind = pl.concat_str(sort, protocol, separator=" ")
    known = items.drop_nulls("value").with_columns(kind=kind)
    frame = in_shown_unit(known.select("condition", "series", "page", "kind", "value"), metric)
    return cumulated(frame, ["condition", "series", "kind"])


def chart(frame: pl.DataFrame, style: Style) -> Any:
    kinds = frame["kind"].unique(maintain_order=True)
    frame = spanned(frame, by=["kind"])
    plot = alt.layer(shares_by_value(frame, style), span(frame, frame["axis"][0]))
    if len(kinds) == 1:
        title = alt.Title(kinds[0], anchor="start", fontSize=12)
        plots = by_condition(plot, frame, style, height=120).properties(title=title)
    else:
        sized = plot.properties(width=max((style.width - 90) // len(kinds) - 40, 60), height=120)
        plots = sized.facet(row=style.rows(), column=alt.Column("kind:N", title=None), spacing=24)
    return plots.resolve_scale(x="independent")
