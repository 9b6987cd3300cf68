"""Draws the window over time on a standard path.

The path has 10 Mbit/s, 100 ms and a drop-tail queue of one bandwidth-delay product, in the simulator. The
sender meets a full queue, a loss of a packet or two, a pause, and the loss of all packets in flight.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert

from wirepaint.cc import catalogue
from wirepaint.dataplane import simulate
from wirepaint.dataplane.description import Congestion, Flow, Run, Transport, one_path
from wirepaint.errors import UsageError
from wirepaint.figures._registry import png
from wirepaint.figures._style import MUTED, RULE, SERIES, finish
from wirepaint.results import trace

FORMATS = (".svg", ".png", ".pdf")
SECOND = 10**9
RATE, ONE_WAY = 10_000_000, SECOND // 20
"""Bit/s; ns."""
BDP = 83
"""10 Mbit/s x 100 ms in packets of 1500 bytes."""
ANSWER, PAUSE = 19_000_000, 3 * SECOND // 2
"""Bytes of one transfer, about 16 s of the path; ns between two transfers."""
LOSSES = ((12 * SECOND, 2_400_000, "a loss"), (24 * SECOND, SECOND // 4, "all in flight lost"))
"""Start and length of outages: the time of two packets; longer than a full queue's round trip."""
UNTIL = 30 * SECOND


def save(name: str, path: Path) -> None:
    """Draws an algorithm, by name or file, into ``path``; its suffix selects the format."""
    if path.suffix not in FORMATS:
        raise UsageError("--plot", str(path), f"a file that ends in {', '.join(FORMATS)}")
    spec = chart(samples(name), Path(name).stem)
    if path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    else:
        path.write_bytes(png(spec) if path.suffix == ".png" else vl_convert.vegalite_to_pdf(spec))


def samples(name: str) -> pl.DataFrame:
    """The sender's state at each ACK: ``time`` (s), ``cwnd``, ``ssthresh`` (null while infinite)."""
    sysctls = {key: str(value) for key, value in catalogue.find(name)["sysctls"].items()}
    algorithm = str(Path(name).absolute()) if name.endswith(".c") else name
    with tempfile.TemporaryDirectory(prefix="wirepaint-show-") as folder:
        simulate.one(_run(algorithm, sysctls, Path(folder)))
        rows = trace.read_table(Path(folder), "tcp")
    own = rows.filter((pl.col("side") == "server") & (pl.col("event") == "ack"))
    return own.select(pl.col("time") / SECOND, "cwnd", "ssthresh")


def _run(algorithm: str, sysctls: dict[str, str], folder: Path) -> Run:
    changes = []
    for at, length, _ in LOSSES:
        changes += [
            {"at_ns": at, "loss": {"kind": "independent", "probability": 1.0}},
            {"at_ns": at + length, "loss": {"kind": "independent", "probability": 0.0}},
        ]
    down = {
        "capacity": {"kind": "rate", "bit_per_s": RATE},
        "delay_ns": ONE_WAY,
        "queue": {"kind": "droptail", "packets": BDP},
        "changes": changes,
    }
    up = {"capacity": {"kind": "unlimited"}, "delay_ns": ONE_WAY, "queue": {"kind": "droptail"}}
    sending = {"kind": "request_response", "request_bytes": 100, "response_bytes": ANSWER, "pause_ns": PAUSE}
    return Run(
        id="show",
        trace_dir=folder,
        work_dir=folder,
        **one_path(down, up, client="shown", server="shown"),
        congestion=[Congestion(algorithm=algorithm, name="shown")],
        transport=Transport(sysctls=sysctls),
        flows=[Flow(kind=sending)],
        tables=["tcp"],
        until_ns=UNTIL,
    )


def chart(frame: pl.DataFrame, title: str) -> dict[str, Any]:
    """A plot of ``samples`` as a Vega-Lite specification."""
    noted = [(at / SECOND, text) for at, _, text in LOSSES]
    silences = frame.filter(pl.col("time").diff().shift(-1) >= PAUSE / SECOND)
    noted += [(at, "nothing to send") for at in silences["time"][:1]]
    changes = pl.any_horizontal(pl.col("cwnd", "ssthresh").ne_missing(pl.col("cwnd", "ssthresh").shift()))
    frame = frame.filter(changes | (pl.int_range(pl.len()) == pl.len() - 1))
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
            "y": [BDP, 2 * BDP],
            "text": ["the path is full", "its queue is full"],
        }
    )
    rules = alt.Chart(limits).mark_rule(color=RULE, strokeWidth=1.5).encode(y="y:Q")
    words = (
        alt.Chart(limits)
        .mark_text(align="right", dy=-6, color=MUTED, fontSize=11)
        .encode(y="y:Q", text="text:N", x=alt.value(640))
    )
    events = pl.DataFrame(noted, schema=["time", "text"], orient="row")
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
    text = f"{title}: 10 Mbit/s, 100 ms, drop-tail queue of {BDP} packets"
    return finish(
        layers.properties(width=640, height=280, title=alt.Title(text, fontSize=13, anchor="start"))
    )
