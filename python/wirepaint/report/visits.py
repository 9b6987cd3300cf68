"""The visits that the report's waterfall and film show, as compact JSON.

Times are integers in units of 10 µs from navigation start (``TICK``), sizes are bytes, windows are
segments. Long series are thinned, but keep all extremes and changes of state.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from wirepaint.evaluation.congestion import in_words
from wirepaint.metrics import group_of, of_visit
from wirepaint.report import recorded
from wirepaint.results import journal_tables
from wirepaint.results.trace import main_link

TICK = 10_000
"""Nanoseconds in one unit of the embedded times."""

CONNECTION_BUCKETS = 150
LINK_BUCKETS = 500
CPU_BUCKET = 100_000_000
"""Nanoseconds; the kernel counts CPU time in steps of 10 ms."""
MOST_PACKED = 1_800_000
MOST_FILMED = 1_200_000
"""Limits for packed visits and films in characters; further ones are left out."""
MOST_LISTED = 300
"""Requests in the table for readers without scripts."""

MARKS = {
    "first_paint": "FP",
    "first_contentful_paint": "FCP",
    "largest_contentful_paint": "LCP",
    "dom_content_loaded": "DCL",
    "load_event": "load",
}

OBJECT_COLUMNS = [
    "url", "type", "method", "status", "protocol", "connection", "priority", "initiator", "initiator_type",
    "first_on_connection", "in_viewport", "served_by", "failed", "encoded_bytes", "decoded_bytes",
    "discovered", "queued", "sent", "first_byte", "last_byte",
]  # fmt: skip
OBJECT_TIMES = {"discovered", "queued", "sent", "first_byte", "last_byte"}


class Traces(Protocol):
    """The required interface of the results: the tables and files of one run."""

    def trace(self, run_key: str, table: str) -> pl.DataFrame: ...
    def file(self, run_key: str, name: str) -> Path | None: ...


@dataclass(frozen=True)
class Choice:
    """A visit to embed, with its role."""

    run_key: str
    levels: dict[str, str | int]
    """By ``journal_tables.AXES``."""
    visit: int
    verdict: str
    role: str
    """``median`` or ``first``."""

    @classmethod
    def of(cls, row: dict[str, Any], role: str) -> Choice:
        """The visit of a row of :func:`wirepaint.metrics.table`."""
        condition = {axis: row[axis] for axis in journal_tables.AXES}
        return cls(row["run_key"], condition, row["visit"], row["verdict"], role)

    def entry(self) -> dict[str, Any]:
        """Its entry in the report's index of visits."""
        levels = {
            name: self.levels[name] for name in ("scenario", "backend", "network", "user_agent", "page")
        }
        return {
            "key": self.run_key,
            **levels,
            "visit": self.visit,
            "verdict": self.verdict,
            "role": self.role,
        }


@dataclass(frozen=True)
class Visits:
    """The visits that the report holds."""

    index: list[dict[str, Any]]
    """One entry for each visit; ``id`` and ``film`` name its packed texts, ``film`` may be None."""
    packed: dict[str, str]
    """Packed visits and films by id."""
    left_out: int
    """Visits that did not fit."""
    unfilmed: int
    """Median visits with frames that did not fit."""
    listed: list[dict[str, Any]]
    """Requests of the first visit, for readers without scripts."""


def embedded(
    traces: Traces, choices: Sequence[Choice], shown_as: Callable[[Choice], tuple[str, int]]
) -> Visits:
    """Packs the chosen visits, as many as fit; ``shown_as`` gives name and colour of a visit's condition."""
    index: list[dict[str, Any]] = []
    packed: dict[str, str] = {}
    listed: list[dict[str, Any]] = []
    left_out = unfilmed = visits_size = films_size = 0
    for position, choice in enumerate(choices):
        shown = visit(traces, choice)
        text = pack(shown) if shown else ""
        if visits_size + len(text) > MOST_PACKED:
            left_out += len(choices) - position
            break
        if not shown:
            left_out += 1
            continue
        listed = listed or shown["objects"][:MOST_LISTED]
        visits_size += len(text)
        name = f"visit-{len(index)}"
        condition, series = shown_as(choice)
        entry = choice.entry() | {"id": name, "name": condition, "series": series, "film": None}
        entry |= summary(shown)
        packed[name] = text
        frames = film(traces, choice) if choice.role == "median" else None
        if frames:
            text = pack(frames)
            fits = films_size + len(text) <= MOST_FILMED
            if fits:
                films_size += len(text)
                entry["film"] = f"film-{len(index)}"
                packed[entry["film"]] = text
            unfilmed += not fits
        index.append(entry)
    rows = [dict(zip(OBJECT_COLUMNS, row, strict=True)) for row in listed]
    return Visits(index, packed, left_out, unfilmed, rows)


def summary(shown: Mapping[str, Any]) -> dict[str, Any]:
    """What the index says of a visit: marks in ms, requests and bytes."""
    sizes = [row[OBJECT_COLUMNS.index("encoded_bytes")] or 0 for row in shown["objects"]]
    marks = {label: round(time * TICK / 1e6, 1) for label, time in shown["marks"]}
    return {"marks": marks, "requests": len(sizes), "bytes": sum(sizes)}


def choose(runs: pl.DataFrame, verdicts: Sequence[str], metric: str) -> list[Choice]:
    """The median and the first visit of every scenario and page, medians first.

    ``runs`` is :func:`wirepaint.metrics.table` of all runs. A group is reduced to visits with one of
    ``verdicts`` if it has any. The median visit is the one whose value of the column
    ``metric`` is nearest to the median of its group.
    """
    medians: list[Choice] = []
    firsts: list[Choice] = []
    done = runs.filter((pl.col("state") == "done") & ~pl.col("warmup") & ~pl.col("of_flows"))
    for _, group in done.group_by("scenario", "user_agent", "page", maintain_order=True):
        counted = group.filter(pl.col("verdict").is_in(list(verdicts)))
        frame = (group if counted.is_empty() else counted).sort("visit")
        distance = (frame[metric] - frame[metric].median()).abs()
        nearest = distance.arg_min() or 0
        medians.append(Choice.of(frame.row(nearest, named=True), "median"))
        if nearest != 0:
            firsts.append(Choice.of(frame.row(0, named=True), "first"))
    return medians + firsts


def visit(traces: Traces, choice: Choice) -> dict[str, Any] | None:
    """The data of one visit for the waterfall; None if the run has no row of it."""
    page = _page(traces, choice)
    if page is None:
        return None
    start = int(page["navigation_start"])
    of_one = of_visit(partial(traces.trace, choice.run_key), page["visit"] or 0)
    connections = of_one("connection")
    tcp = traces.trace(choice.run_key, "tcp").filter(
        pl.col("connection").is_in(connections["connection"].to_list())
    )
    objects = of_one("object").sort("queued", "sent", "request", nulls_last=True)
    ends = [page["load_event"], page["largest_contentful_paint"], objects["last_byte"].max()]
    end = max((int(e) for e in ends if isinstance(e, int)), default=start + 1_000_000)
    end += (end - start) // 50
    headers, headers_of = recorded.headers(traces.file(choice.run_key, "run.json"), objects)
    return {
        "key": choice.run_key,
        "end": ticks(end, start),
        "url": page["url"],
        "marks": [
            [label, ticks(page[name], start)] for name, label in MARKS.items() if page[name] is not None
        ],
        "columns": OBJECT_COLUMNS,
        "objects": object_rows(objects, start),
        "headers": headers,
        "headers_of": headers_of,
        "chunks": chunk_series(objects, of_one("chunk"), start),
        "connections": connection_rows(
            connections, start, group_hosts(traces.trace(choice.run_key, "group"))
        ),
        "tcp": tcp_series(tcp, start, end),
        "link": link_series(main_link(traces.trace(choice.run_key, "link")), start, end),
        "cpu": cpu_series(of_one("cpu"), start, end),
    }


def film(traces: Traces, choice: Choice) -> dict[str, Any] | None:
    """The frames of one visit: times, shares of the final picture and pictures; None without any.

    A picture is a base64 WebP, or null where the one before it is to be shown.
    """
    page = _page(traces, choice)
    if page is None:
        return None
    start = int(page["navigation_start"])
    frames = of_visit(partial(traces.trace, choice.run_key), page["visit"] or 0)("frame").sort("time")
    if frames["picture"].count() == 0:
        return None
    return {
        "time": [max(round((time - start) / TICK), 0) for time in frames["time"]],
        "progress": [round(share, 4) for share in frames["progress"]],
        "picture": frames["picture"].to_list(),
    }


def _page(traces: Traces, choice: Choice) -> dict[str, Any] | None:
    """The row of the chosen visit in the table ``page``; None without one, or without its begin."""
    page = _chosen(traces.trace(choice.run_key, "page"), choice)
    return None if page is None or page["navigation_start"] is None else page


def _chosen(pages: pl.DataFrame, choice: Choice) -> dict[str, Any] | None:
    """The row of the chosen visit; of equal users that of the first."""
    if pages.height > 1:
        user = group_of("user_agent") == choice.levels["user_agent"]
        pages = pages.filter(user & (pl.col("page") == choice.levels["page"])).sort("visit")
    return pages.row(0, named=True) if pages.height else None


def ticks(time: int | None, start: int) -> int | None:
    return None if time is None else round((time - start) / TICK)


def object_rows(objects: pl.DataFrame, start: int) -> list[list[Any]]:
    return [
        [ticks(row[name], start) if name in OBJECT_TIMES else row[name] for name in OBJECT_COLUMNS]
        for row in objects.iter_rows(named=True)
    ]


def chunk_series(objects: pl.DataFrame, chunks: pl.DataFrame, start: int) -> list[list[int]]:
    """Per object: time, bytes, time, bytes, ... with times as differences; merges arrivals within 1 ms."""
    millisecond = (pl.col("time") // 1_000_000).alias("ms")
    merged = (
        chunks.group_by("request", millisecond)
        .agg(pl.col("time").min(), pl.col("bytes").sum())
        .sort("request", "time")
        .partition_by("request", as_dict=True)
    )
    series: list[list[int]] = []
    for request in objects["request"]:
        flat: list[int] = []
        frame = merged.get((request,))
        previous = 0
        for time, size in frame.select("time", "bytes").iter_rows() if frame is not None else ():
            now = round((time - start) / TICK)
            flat += [now - previous, size]
            previous = now
        series.append(flat)
    return series


def group_hosts(groups: pl.DataFrame) -> dict[int, int]:
    """By connection, the number of hosts of its group; the largest if it was in several.

    ``groups`` is the table ``group``, empty if no state is shared. Returns nothing for results without
    the servers of groups.
    """
    if "server" not in groups.columns:
        return {}
    of_group = pl.n_unique("server_address").over("algorithm", "congestion", "server", "prefix", "slot")
    known = groups.with_columns(hosts=of_group).filter(pl.col("connection").is_not_null())
    return dict(known.group_by("connection").agg(pl.max("hosts")).iter_rows())


def connection_rows(connections: pl.DataFrame, start: int, hosts: Mapping[int, int]) -> list[dict[str, Any]]:
    plain = [
        "connection", "host", "protocol", "encrypted", "congestion", "initial_window", "bytes_received",
        "objects", "retransmitted_segments", "reason", "server_address", "server_port", "mss",
    ]  # fmt: skip
    times = ("opened", "connected", "tls_done", "last_byte", "closed")
    return [
        {name: row[name] for name in plain}
        | {name: ticks(row[name], start) for name in times}
        | {"congestion": in_words(row["congestion"]), "min_rtt": ticks(row["min_rtt"], 0)}
        | {"group_hosts": hosts.get(row["connection"])}
        for row in connections.sort("opened").iter_rows(named=True)
    ]


def tcp_series(tcp: pl.DataFrame, start: int, end: int) -> dict[str, dict[str, list[Any]]]:
    """Per connection: the sender's window over time, thinned, and the times of its retransmissions."""
    series: dict[str, dict[str, list[Any]]] = {}
    sender = tcp.filter((pl.col("side") == "server") & (pl.col("time") <= end)).sort("time")
    for (connection,), frame in sender.group_by("connection", maintain_order=True):
        resent = frame.filter(pl.col("event") == "retransmit")["time"]
        acks = frame.filter(pl.col("cwnd").is_not_null())
        kept = acks[thin(acks)] if acks.height else acks
        series[str(connection)] = {
            "time": [ticks(time, start) for time in kept["time"]],
            "cwnd": kept["cwnd"].to_list(),
            "ssthresh": kept["ssthresh"].to_list(),
            "in_flight": kept["in_flight"].to_list(),
            "state": kept["state"].fill_null("Open").to_list(),
            "resent": sorted({ticks(time, start) for time in resent if time is not None}),
        }
    return series


def thin(frame: pl.DataFrame) -> list[int]:
    """Row numbers to keep: the ends and extremes of each time bucket, and every change of state."""
    if frame.height <= 2 * CONNECTION_BUCKETS:
        return list(range(frame.height))
    time = frame["time"].to_numpy()
    cwnd = frame["cwnd"].to_numpy()
    flight = frame["in_flight"].fill_null(0).to_numpy()
    state = frame["state"].fill_null("Open").to_numpy()
    edges = np.searchsorted(time, np.linspace(time[0], time[-1] + 1, CONNECTION_BUCKETS + 1))
    keep = {0, frame.height - 1} | {int(n) + 1 for n in np.flatnonzero(state[1:] != state[:-1])}
    for low, high in itertools.pairwise(edges):
        if high > low:
            window = cwnd[low:high]
            keep |= {int(high) - 1, int(low + window.argmax()), int(low + window.argmin())}
            keep.add(int(low + flight[low:high].argmax()))
    return sorted(keep)


def link_series(link: pl.DataFrame, start: int, end: int) -> dict[str, list[int | None]]:
    """The link towards the client in buckets of time.

    ``queue`` is the largest occupancy in packets, ``drops`` counts packets; ``delivered`` and ``capacity``
    are the bytes that left, or could have left, from this bucket's first sample to that of the next one.
    """
    down = link.filter((pl.col("direction") == "down") & pl.col("time").is_between(start, end)).sort("time")
    if not down.height:
        return {"time": [], "queue": [], "drops": [], "delivered": [], "capacity": []}
    width = max((end - start) // LINK_BUCKETS, 1)
    buckets = (
        down.with_columns(
            (pl.col("queue_drops") + pl.col("random_losses")).diff().fill_null(0).alias("drops")
        )
        .group_by(((pl.col("time") - start) // width).alias("bucket"), maintain_order=True)
        .agg(
            pl.col("time", "delivered_bytes", "capacity_bytes").first(),
            pl.col("queue_packets").max(),
            pl.col("drops").sum(),
        )
        .with_columns(pl.col("delivered_bytes", "capacity_bytes").diff().shift(-1))
    )
    return {
        "time": [round((time - start) / TICK) for time in buckets["time"]],
        "queue": buckets["queue_packets"].fill_null(0).to_list(),
        "drops": buckets["drops"].to_list(),
        "delivered": buckets["delivered_bytes"].to_list(),
        "capacity": buckets["capacity_bytes"].to_list(),
    }


def cpu_series(cpu: pl.DataFrame, start: int, end: int) -> dict[str, list[Any]] | None:
    """Cores that the browser kept busy, in buckets of 100 ms; None without samples."""
    frame = cpu.filter(pl.col("time").is_between(start - CPU_BUCKET, end)).sort("time")
    if frame.height < 2:
        return None
    spent = (
        frame.group_by((pl.col("time") // CPU_BUCKET).alias("bucket"), maintain_order=True)
        .agg(pl.col("time", "browser").first())
        .with_columns(busy=pl.col("browser").diff().shift(-1) * 1e9 / pl.col("time").diff().shift(-1))
    )
    return {
        "time": [round((time - start) / TICK) for time in spent["time"]],
        "busy": [None if busy is None else round(busy, 2) for busy in spent["busy"]],
    }


def pack(value: Any) -> str:
    """JSON, gzip, base64: safe inside a script element, decoded there by DecompressionStream."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.b64encode(gzip.compress(text, 9, mtime=0)).decode("ascii")
