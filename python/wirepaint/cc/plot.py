"""The window over time on the standard path, as a picture.

The path (10 Mbit/s, 100 ms, a drop-tail queue of one bandwidth-delay product) and what happens on it
are those of crates/congestion-native/src/standard_path.rs; the sender is the native one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from wirepaint import dataplane
from wirepaint.errors import UsageError
from wirepaint.figures._style import MUTED, RULE, SERIES, finish

FORMATS = (".svg", ".png", ".pdf")
EVENTS = ((12.0, "one segment lost"), (17.0, "nothing to send"), (24.0, "all in flight lost"))
"""Seconds; they are those of the standard path."""


def save(name: str, path: Path) -> None:
    """Draws an algorithm, by name or file, into ``path``; the format is that of its ending."""
    if path.suffix not in FORMATS:
        raise UsageError("--plot", str(path), f"a file that ends in {', '.join(FORMATS)}")
    shown = dataplane.call("cc", "standard-path", name)
    chart(shown, Path(name).stem).save(path, **({"ppi": 144} if path.suffix == ".png" else {}))


def chart(shown: dict[str, Any], title: str) -> Any:
    """The chart of what ``wirepaint-dataplane cc standard-path`` prints."""
    frame = pl.DataFrame(shown["samples"], infer_schema_length=None).with_columns(
        time=pl.col("time_us") / 1e6, ssthresh=pl.col("ssthresh").cast(pl.Int64)
    )
    x = alt.X("time:Q", title="Time, s")
    base = alt.Chart(frame).encode(x=x)
    domain = ["cwnd", "ssthresh"]
    colour = alt.Color(
        "series:N",
        title=None,
        scale=alt.Scale(domain=domain, range=list(SERIES[:2])),
        legend=alt.Legend(orient="top"),
    )
    window = base.transform_calculate(series="'cwnd'").mark_line(interpolate="step-after", strokeWidth=2)
    threshold = base.transform_calculate(series="'ssthresh'").mark_line(
        interpolate="step-after", strokeDash=[4, 3], strokeWidth=1.5
    )
    limits = pl.DataFrame(
        {
            "y": [shown["bdp"], shown["bdp"] + shown["queue"]],
            "text": ["the path is full", "its queue is full"],
        }
    )
    rules = alt.Chart(limits).mark_rule(color=RULE, strokeWidth=1.5).encode(y="y:Q")
    words = (
        alt.Chart(limits)
        .mark_text(align="right", dy=-6, color=MUTED, fontSize=11)
        .encode(y="y:Q", text="text:N", x=alt.value(640))
    )
    events = pl.DataFrame({"time": [at for at, _ in EVENTS], "text": [text for _, text in EVENTS]})
    marks = alt.Chart(events).mark_rule(color=RULE, strokeDash=[2, 2]).encode(x="time:Q")
    notes = (
        alt.Chart(events)
        .mark_text(align="left", dx=4, color=MUTED, fontSize=11)
        .encode(x="time:Q", text="text:N", y=alt.value(8))
    )
    layers = alt.layer(
        rules,
        words,
        marks,
        notes,
        threshold.encode(y="ssthresh:Q", color=colour),
        window.encode(y=alt.Y("cwnd:Q", title="Segments"), color=colour),
    )
    text = f"{title}: 10 Mbit/s, {shown['rtt_us'] / 1000:g} ms, drop-tail queue of {shown['queue']} segments"
    return finish(
        layers.properties(width=640, height=280, title=alt.Title(text, fontSize=13, anchor="start"))
    )
