"""Bytes that users and flows receive each second, stacked by their names, in the first counted run of each
scenario; where they have code points, also by those."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from wirepaint import metrics
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import SERIES, Style
from wirepaint.figures._values import by_condition

TITLE = "Share of the link over time"
SOURCE = "Heracles section 4; HTTP-AE Figure 10; RFC 5166 section 2.3"
NEEDS = "runs of several users, or of flows"
NS_PER_S = 10**9


def data(evidence: Evidence) -> pl.DataFrame:
    """One row per second and name: ``condition``, ``series``, ``flow``, ``time`` in s since the first byte,
    ``value`` in Mbit/s. Empty for runs of one user and no flow."""
    shared = evidence.table.unique(["run_key", "user_agent", "of_flows"]).group_by("run_key").len()
    several = shared.filter(pl.col("len") > 1)["run_key"].to_list()
    counted = evidence.table.filter(pl.col("of_flows") | pl.col("run_key").is_in(several))
    first = counted.unique("scenario", keep="first", maintain_order=True)
    axes = [axis for axis in evidence.condition_axes if axis != "user_agent"]
    frames = []
    for run in first.iter_rows(named=True):
        received = _received(evidence, run["run_key"])
        shown = " · ".join([*(str(run[axis]) for axis in axes), run["series"]])
        frames.append(_rates(received).with_columns(condition=pl.lit(shown), series=pl.lit(run["series"])))
        if received["class"].n_unique() > 1:
            of_classes = _rates(received.with_columns(flow=pl.col("class")))
            frames.append(
                of_classes.with_columns(condition=pl.lit(f"{shown}, by class"), series=pl.lit(run["series"]))
            )
    return pl.concat(frames).with_columns(axis=pl.lit("Goodput, Mbit/s")) if frames else pl.DataFrame()


def _received(evidence: Evidence, key: str) -> pl.DataFrame:
    """What each name received: ``flow`` (of users or flows), ``class``, ``time`` in ns, ``bytes``."""
    trace = partial(evidence.results.trace, key)
    of_flows = {metrics.group(flow["name"]): flow["dscp"] for flow in metrics.all_flows(evidence.results)}
    flows = trace("flow").select(flow=metrics.group_of("flow"), time="time", bytes="received_bytes")
    flows = flows.with_columns(dscp=pl.col("flow").replace_strict(of_flows, default=0, return_dtype=pl.Int64))
    users = (
        trace("chunk")
        .join(metrics.hosts(trace), on="visit")
        .join(trace("client").select("host", "dscp"), on="host", how="left")
        .select(flow="user_agent", time="time", bytes="bytes", dscp="dscp")
    )
    received = pl.concat([users, flows])
    return received.with_columns(pl.format("DSCP {}", pl.col("dscp").fill_null(0)).alias("class"))


def _rates(received: pl.DataFrame) -> pl.DataFrame:
    second = ((pl.col("time") - pl.col("time").min()) // NS_PER_S).clip(0)
    counted = received.select("bytes", "flow", time=second)
    seconds = pl.select(time=pl.int_range(pl.lit(counted["time"].max()) + 1))
    every = counted.select(pl.col("flow").unique(maintain_order=True)).join(seconds, how="cross")
    summed = counted.group_by("flow", "time").agg(value=pl.col("bytes").sum() * 8 / 1e6)
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
    return by_condition(area, frame, replace(style, conditions=conditions), height=170)
