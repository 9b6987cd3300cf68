"""Each page in each set of conditions, as the testbed measured it (across) and as the simulator found
it (up): medians of the visits. On the line both agree; the band around it is 10 % wide each way."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import MUTED, RULE, Style
from wirepaint.figures._values import SHOWN
from wirepaint.statistics.agreement import REAL, SIMULATED, pairs
from wirepaint.statistics.losses import with_timeouts

TITLE = "Simulator against testbed"
SOURCE = "Bland and Altman, Lancet 327 (1986), on plots of two methods of measurement"
NEEDS = 'results of both back ends (backend = "both")'
BAND = 0.1
SIZE = 420


def data(evidence: Evidence, metric: str = "page-load-time") -> pl.DataFrame:
    """One row per point: ``series``, ``condition``, ``page``, ``testbed``, ``simulator``; empty unless the
    results hold both back ends."""
    if {REAL, SIMULATED} - set(evidence.levels["backend"]):
        return pl.DataFrame()
    chosen = metrics.get(metric)
    divisor, unit = SHOWN.get(chosen.unit, (1.0, chosen.unit))
    visits = evidence.in_words(with_timeouts(evidence.results, evidence.table))
    points = pairs(visits, chosen).drop_nulls([REAL, SIMULATED])
    axes = [axis for axis in evidence.condition_axes if axis != "backend"]
    condition = pl.concat_str([pl.col(axis).cast(pl.String) for axis in axes], separator=" · ")
    by_backend = evidence.factor == "backend"
    series = pl.lit(SIMULATED) if by_backend else pl.col(evidence.factor).cast(pl.String)
    return points.select(
        series.alias("series"),
        (condition if axes else pl.lit("all visits")).alias("condition"),
        "page",
        pl.col(REAL) / divisor,
        pl.col(SIMULATED) / divisor,
        axis=pl.lit(f"{chosen.title}, {unit}" if unit else chosen.title),
    )


def chart(frame: pl.DataFrame, style: Style) -> Any:
    title = frame["axis"][0]
    values = [*frame["testbed"], *frame["simulator"]]
    low, high = min(values), max(values)
    log = low > 0
    reach = [low * 0.9, high * 1.1] if log else [low, high]
    scale = alt.Scale(type="log" if log else "linear", domain=reach, nice=False)
    under, over = ([end * factor for end in reach] for factor in (1 - BAND, 1 + BAND))
    ends = pl.DataFrame({"x": reach, "y": reach, "under": under, "over": over})
    across = alt.X("x:Q", scale=scale, title=f"{title}: testbed")
    band = alt.Chart(ends).mark_area(color=RULE, opacity=0.6, clip=True)
    band = band.encode(across, alt.Y("under:Q", scale=scale, title=f"{title}: simulator"), alt.Y2("over:Q"))
    line = alt.Chart(ends).mark_line(color=MUTED, strokeWidth=1).encode(across, alt.Y("y:Q", scale=scale))
    both = [pl.col(side).round(3) for side in (REAL, SIMULATED)]
    label = pl.format("{}, {}, {}: testbed {}, simulator {}", "series", "condition", "page", *both)
    points = (
        alt.Chart(frame.with_columns(label=label))
        .mark_point(filled=True, size=45, opacity=0.8)
        .encode(
            alt.X("testbed:Q", scale=scale),
            alt.Y("simulator:Q", scale=scale),
            color=style.colour(),
            shape=style.shape(),
            description="label:N",
        )
    )
    return alt.layer(band, line, points).properties(width=SIZE, height=SIZE)
