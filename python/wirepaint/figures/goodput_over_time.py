"""Payload that the flows receive each second, stacked by their names, in the first counted run of each
scenario."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import SERIES, Style
from wirepaint.figures._values import by_condition

TITLE = "Share of the link over time"
SOURCE = "Heracles section 4; RFC 5166 section 2.3"
NS_PER_S = 10**9


def data(evidence: Evidence) -> pl.DataFrame:
    """One row per second and name of flows: ``condition``, ``series``, ``flow``, ``time`` in s since the
    first flow began, ``value`` in Mbit/s."""
    first = evidence.table.filter("of_flows").unique(["condition", "series"], maintain_order=True)
    frames = [
        _rates(evidence.results.trace(run["run_key"], "flow")).with_columns(
            condition=pl.concat_str(pl.lit(run["condition"]), pl.lit(run["series"]), separator=" · "),
            series=pl.lit(run["series"]),
        )
        for run in first.iter_rows(named=True)
    ]
    return pl.concat(frames).with_columns(axis=pl.lit("Goodput, Mbit/s")) if frames else pl.DataFrame()


def _rates(flow: pl.DataFrame) -> pl.DataFrame:
    began = pl.col("started").min()
    second = ((pl.col("time") - began - 1) // NS_PER_S).clip(0)
    counted = flow.select("received_bytes", flow=pl.col("flow").str.split(".").list.first(), time=second)
    seconds = pl.select(time=pl.int_range(pl.lit(counted["time"].max()) + 1))
    every = counted.select(pl.col("flow").unique(maintain_order=True)).join(seconds, how="cross")
    summed = counted.group_by("flow", "time").agg(value=pl.col("received_bytes").sum() * 8 / 1e6)
    return every.join(summed, on=["flow", "time"], how="left", maintain_order="left").with_columns(
        pl.col("value").fill_null(0.0)
    )


def chart(frame: pl.DataFrame, style: Style) -> Any:
    names = frame["flow"].unique(maintain_order=True).to_list()
    scale = alt.Scale(domain=names, range=[SERIES[n % len(SERIES)] for n in range(len(names))])
    area = (
        alt.Chart(frame)
        .mark_area(interpolate="step-after")
        .encode(
            x=alt.X("time:Q", title="Time, s"),
            y=alt.Y("value:Q", title="Goodput, Mbit/s", stack="zero"),
            color=alt.Color("flow:N", scale=scale, legend=alt.Legend(orient="top"), title=None),
        )
    )
    conditions = frame["condition"].unique(maintain_order=True).to_list()
    return by_condition(area, frame, Style(style.series, conditions, style.pages), height=170)
