"""The metrics of runs as rows: one per visit, and one per name of flows.

The tables of many runs are read at once: opening a file for itself costs more than to read a small table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from wirepaint.metrics import _flow
from wirepaint.metrics._metric import Frame, Metric, Reading, Trace
from wirepaint.metrics._registry import measure, over_run
from wirepaint.metrics._visits import visits
from wirepaint.results import trace

BATCH = 128
"""Runs whose tables are in memory at once."""
READ = {
    table: columns.split()
    for table, columns in {
        "page": """visit user_agent page navigation_start base_first_byte base_last_byte
            first_contentful_paint largest_contentful_paint viewport_complete load_event speed_index
            objects encoded_bytes connections surplus_connections""",
        "object": """visit request url connection first_on_connection served_by sent first_byte last_byte
            encoded_bytes failed""",
        "connection": """visit connection protocol encrypted opened last_byte bytes_received objects
            retransmitted_segments min_rtt mss""",
        "link": """time segment direction queue_bytes offered_packets delivered_bytes queue_drops
            random_losses capacity_bytes""",
        "run": "ahead_bytes ahead_unused_bytes",
    }.items()
}
"""Columns of wide tables that metrics of wirepaint read: another one costs 6 µs of CPU per run. Of the other
tables, and for metrics of users' own, all are read."""
WHOSE = ("run_key", "trace", "user", "visited", "flows")
"""First columns of a row. ``user`` and ``visited`` are the visit's user agent and page, null where the trace
does not name them; ``flows`` is the name of flows, null for a visit."""


MISSING = ": missing"
"""End of the name of a column with reasons (:func:`why`)."""


class Run(NamedTuple):
    """A run to compute: its key, the digest of its trace, and what gives the file of a table by name, None if
    the run has none. Only files that are asked for are checked."""

    key: str
    digest: str
    file: Callable[[str], Path | None]


def why(metric: Metric) -> str:
    """Name of the column with the reason why a metric is null."""
    return f"{metric.column}{MISSING}"


def frame(rows: Sequence[Mapping[str, Any]], metrics: Iterable[Metric]) -> Frame:
    """Rows of :func:`computed` as one record batch with the columns of ``metrics``."""
    schema: dict[str, Any] = dict.fromkeys(WHOSE, pl.String)
    for metric in metrics:
        schema |= {metric.column: pl.String if metric.label else pl.Float64, why(metric): pl.String}
    columns = {name: [row.get(name) for row in rows] for name in schema}
    return pl.DataFrame(columns, schema=schema, strict=False)


def computed(runs: Sequence[Run], metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """The rows of runs; raises UsageError for a table that cannot be read."""
    columns = READ if all(metric.file is None for metric in metrics) else {}
    found = zip(runs, traces(runs, needed(metrics), columns), strict=True)
    return [row for run, tables in found for row in of_run(run.key, run.digest, tables, metrics)]


def needed(metrics: Iterable[Metric]) -> list[str]:
    """The tables that metrics read; a metric of a user's own may read others."""
    return sorted({"page", "flow"}.union(*(metric.needs for metric in metrics)))


def traces(
    runs: Sequence[Run], needs: Iterable[str] = (), columns: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Trace]:
    """The traces of runs. The tables ``needs`` are read for ``BATCH`` of them at once, another when one asks
    for it. Of those in ``columns`` only these columns are read."""
    for first in range(0, len(runs), BATCH):
        yield from _of_batch(runs[first : first + BATCH], needs, columns or {})


def _of_batch(
    runs: Sequence[Run], needs: Iterable[str], columns: Mapping[str, Sequence[str]]
) -> Iterator[Trace]:
    def read(names: Iterable[str]) -> dict[str, dict[str, Frame]]:
        having = {
            name: {run.key: file for run in runs if (file := run.file(name)) is not None} for name in names
        }
        found = trace.read_files({name: list(files.values()) for name, files in having.items()}, columns)
        return {name: dict(zip(having[name], found[name], strict=True)) for name in having}

    every = read(needs)
    empty = cache(trace.empty)

    def table(key: str, name: str) -> Frame:
        if name not in every:
            every.update(read([name]))
        found = every[name].get(key)
        return empty(name) if found is None else found

    for run in runs:
        yield cache(partial(table, run.key))


def of_run(key: str, digest: str, trace: Trace, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """The rows of one run."""
    over = over_run(trace, metrics)
    whose = {"run_key": key, "trace": digest}
    of_visits: dict[tuple[str | None, str | None], list[dict[str, Reading]]] = {}
    for visit, user, page in visits(trace):
        of_visits.setdefault((user, page), []).append(measure(trace, visit, None, over, metrics))
    rows = [
        whose | {"user": user, "visited": page} | _cells(_mean(readings), metrics)
        for (user, page), readings in of_visits.items()
    ]
    for group in _flow.groups(trace):
        rows.append(whose | {"flows": group} | _cells(measure(trace, 0, group, over, metrics), metrics))
    return rows


def _mean(visits: list[dict[str, Reading]]) -> dict[str, Reading]:
    """The readings of equal users: the means of numbers, a text that all have, or why one lacks it."""
    if len(visits) == 1:
        return visits[0]
    return {name: _one([readings[name] for readings in visits]) for name in visits[0]}


def _one(readings: list[Reading]) -> Reading:
    values = [reading.value for reading in readings]
    if None in values:
        return next(reading for reading in readings if reading.value is None)
    if isinstance(values[0], str):
        return Reading(values[0]) if len(set(values)) == 1 else Reading(None, "equal users differ in it")
    return Reading(sum(float(value) for value in values if value is not None) / len(values))


def _cells(readings: Mapping[str, Reading], metrics: Iterable[Metric]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for metric in metrics:
        cells[metric.column], cells[why(metric)] = readings[metric.name].value, readings[metric.name].reason
    return cells
