"""Congestion window, slow-start threshold and segments in flight of one connection's sender; of each series
the connection that received most in the first counted visit of the page."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from wirepaint.errors import UsageError, show
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style
from wirepaint.figures._values import by_condition, span, spanned
from wirepaint.reading import nearest

TITLE = "Congestion window over time"
SOURCE = "RFC 5681 section 2"


def data(evidence: Evidence, page: str | None = None, host: str | None = None) -> pl.DataFrame:
    """One row per sample: ``condition``, ``series``, ``run_key``, ``connection``, ``time`` in s since
    navigation start, and ``cwnd``, ``ssthresh``, ``in_flight`` in segments.

    ``page`` is the first of the evaluation unless named; ``host`` limits the choice of connections.
    """
    page = page or next(iter(evidence.pages), None)
    if page not in evidence.pages:
        raise UsageError("page", show(page), nearest(str(page), evidence.pages))
    there = evidence.results.with_trace(evidence.table)
    first = there.filter(pl.col("page") == page).unique(["condition", "series"], maintain_order=True)
    frames = [
        _samples(evidence, run["run_key"], host).with_columns(
            condition=pl.lit(run["condition"]), series=pl.lit(run["series"]), run_key=pl.lit(run["run_key"])
        )
        for run in first.iter_rows(named=True)
    ]
    found = pl.concat(frames) if frames else pl.DataFrame()
    return (
        found.with_columns(axis=pl.lit("Congestion window, segments"), page=pl.lit(page)) if frames else found
    )


def _samples(evidence: Evidence, run_key: str, host: str | None) -> pl.DataFrame:
    """Samples of the server's side of the busiest connection of a run."""
    connections = evidence.results.trace(run_key, "connection")
    if host is not None:
        connections = connections.filter(pl.col("host") == host)
    busiest = connections.sort("bytes_received", descending=True, nulls_last=True).head(1)
    start = evidence.results.trace(run_key, "page")["navigation_start"].first()
    return (
        evidence.results.trace(run_key, "tcp")
        .filter((pl.col("side") == "server") & pl.col("cwnd").is_not_null())
        .join(busiest.select("connection"), on="connection")
        .sort("time")
        .select("connection", "cwnd", "ssthresh", "in_flight", time=(pl.col("time") - start) / 1e9)
    )


def chart(frame: pl.DataFrame, style: Style) -> Any:
    frame = spanned(frame, "time")
    first = f"busiest connection of the first visit of {frame['page'][0]}"
    title = f"Time since navigation start, s: {first}; thin lines: ssthresh"
    base = alt.Chart(frame).encode(x=alt.X("time:Q", title=title), color=style.colour())
    window = base.mark_line(interpolate="step-after", strokeWidth=2).encode(
        y=alt.Y("cwnd:Q", title="Segments"), strokeDash=style.dash()
    )
    threshold = base.mark_line(interpolate="step-after", strokeWidth=1, opacity=0.6).encode(y="ssthresh:Q")
    plots = by_condition(alt.layer(window, threshold, span(frame, title)), frame, style, height=170)
    return plots.resolve_scale(x="independent")
