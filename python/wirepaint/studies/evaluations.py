"""Carries the sweeps of a study out as evaluations, and reads their results.

The study's code says in the words of an evaluation what a point is (:class:`Conditions`). The points of a
sweep are a grid, so they are the axes, users and pages of one evaluation. Its file
(``evaluations/SWEEP.toml``) and its results (``runs/SWEEP``) stay in the study's folder: each verb of
wirepaint takes them, and the same command resumes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import polars as pl

from wirepaint.evaluation import Plan, ResolvedRun, plan
from wirepaint.metrics import Keeper, Trace
from wirepaint.printing import say
from wirepaint.results import Results
from wirepaint.runners import backends, pool
from wirepaint.runners.testbed import at_once
from wirepaint.studies.model import Point, Study, Sweep

Rows = pl.DataFrame
Measure = Callable[[Trace], Rows]
"""A measure of a run: rows without the point's columns."""
Progress = Callable[[int, int], None]
"""Called with the number of finished runs and of all runs."""
_KEY = ("network", "congestion", "http", "proxy", "user_agent", "page")
"""Columns of a run that tell the points of a sweep apart."""


@dataclass(frozen=True)
class Conditions:
    """A point as parts of an evaluation file.

    ``network`` and ``proxy`` are tables of the file, ``agents`` user agents with one page each: one alone, or
    several that have the same ``together``.
    """

    network: Mapping[str, Any]
    agents: Sequence[Mapping[str, Any]]
    congestion: str
    http: str = "h1"
    initial_window: int = 10
    """Segments; the same at all points of a sweep."""
    proxy: Mapping[str, Any] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What its runs have in the columns ``_KEY``."""
        first = self.agents[0]
        whose = (first["name"], PurePath(first["pages"][0]).name)
        if group := first.get("together"):
            whose = group, group
        proxy = self.proxy["name"] if self.proxy else "none"
        return (self.network["title"], self.congestion, self.http, proxy, *whose)


@dataclass(frozen=True)
class Carried:
    """The measured rows of each sweep that has any, the number of runs, and those that do not count."""

    sweeps: dict[str, Rows]
    runs: int
    lost: dict[str, Rows] = field(default_factory=dict)
    """Points with ``seed`` of the runs that do not count, of each sweep that has any."""

    @property
    def empty(self) -> list[tuple[str, Point]]:
        """Points of which no run counts, each with its sweep."""
        found = []
        for name, lost in self.lost.items():
            points = lost.drop("seed").unique(maintain_order=True)
            if name in self.sweeps:
                points = points.join(self.sweeps[name], on=points.columns, how="anti", maintain_order="left")
            found += [(name, point) for point in points.to_dicts()]
        return found


def carry_out(
    study: Study,
    parameters: Mapping[str, str],
    folder: Path,
    backend: str,
    quick: bool,
    progress: Progress,
) -> Carried:
    """Carries out all sweeps in ``folder``, which keeps the runs that are done.

    Raises ``Incomplete`` when stopped, ``UsageError`` if the folder holds runs with other settings,
    ``MachineLacks`` before the first run if one has more browsers than this machine bears.
    """
    planned = plans(study, parameters, folder, backend, quick)
    for note in dict.fromkeys(note for one in planned.values() for note in one.notes):
        say(note)
    at_once.check(run for one in planned.values() for run in one.runs)
    total, done = sum(len(one.runs) for one in planned.values()), 0
    cannot_count: dict[str, str] = {}
    for name, one in planned.items():
        reporter = _Reporter(lambda ended: progress(ended, total), done)
        results = folder / "runs" / name
        with Keeper(results) as keeper:
            tally = pool.carry_out(
                one,
                results,
                backends.named(backend),
                reporter,
                cannot_count=one.cannot_count,
                keeper=keeper,
            )
        cannot_count |= tally.cannot_count
        done += len(one.runs)
    for page, why in cannot_count.items():
        say(f"{page} cannot count: {why}")
    found = {
        name: measured(study, parameters, name, Results.open(folder / "runs" / name)) for name in planned
    }
    return Carried(
        sweeps={name: rows for name, (rows, _) in found.items() if rows.height},
        runs=total,
        lost={name: lost for name, (_, lost) in found.items() if lost.height},
    )


def plans(
    study: Study, parameters: Mapping[str, str], folder: Path, backend: str, quick: bool
) -> dict[str, Plan]:
    """The plan of each sweep; writes the evaluation files and their pages into ``folder``."""
    study.module().prepare(study, parameters, folder)
    planned = {}
    for name, sweep in study.sweeps.items():
        path = folder / "evaluations" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(in_toml(evaluation(study, parameters, name, quick, backend)), encoding="utf-8")
        planned[name] = plan(path)
        counted = len(planned[name].runs) - planned[name].runs.warmups
        if counted != (asked := len(sweep.points()) * study.seeds_of(sweep, quick)):
            raise AssertionError(f"sweep {name}: {counted} runs for {asked} points: no grid")
    return planned


def evaluation(
    study: Study, parameters: Mapping[str, str], name: str, quick: bool, backend: str
) -> dict[str, Any]:
    """The evaluation file of a sweep as plain data."""
    code, sweep = study.module(), study.sweeps[name]
    every = [code.conditions(study, parameters, point) for point in sweep.points()]
    visits = {"visits": study.seeds_of(sweep, quick)}
    agents: dict[str, dict[str, Any]] = {}
    for agent in (agent for one in every for agent in one.agents):
        known = agents.setdefault(agent["name"], {**agent, **visits, "pages": []})
        known["pages"] += [page for page in agent["pages"] if page not in known["pages"]]
    proxies = _once(one.proxy for one in every if one.proxy)
    return {
        "title": f"{study.title}: {name}",
        "backend": backend,
        # The simulator has nothing to warm up.
        "warmup": backend != "simulator",
        **code.settings(study, parameters),
        "scenarios": {
            "network": _once(one.network for one in every),
            "congestion": _once(one.congestion for one in every),
            "http": _once(one.http for one in every),
            "initial_window": _once(one.initial_window for one in every),
            "proxy": _once(one.proxy["name"] if one.proxy else "none" for one in every),
        },
        "user_agents": list(agents.values()),
        **({"proxies": proxies} if proxies else {}),
    }


def measured(study: Study, parameters: Mapping[str, str], name: str, results: Results) -> tuple[Rows, Rows]:
    """The measured rows of a sweep, and the points of its runs that do not count.

    A row has the columns of its point, ``series``, and ``seed``: the number of the visit. So the same seed
    is the same visit at each point.
    """
    code, sweep = study.module(), study.sweeps[name]
    points = {code.conditions(study, parameters, point).key: point for point in sweep.points()}
    read: Measure = code.MEASURES[sweep.measure]
    runs = results.runs().filter(~pl.col("warmup"))
    counted = counting(runs, points)
    lost = [
        points[tuple(key)] | {"seed": visit}
        for visit, *key in runs.select("visit", *_KEY).iter_rows()
        if visit not in counted[tuple(key)]
    ]
    frames = [
        _named(read(partial(results.trace, run_key)), points[key], visit, sweep)
        for key, visits in counted.items()
        for visit, run_key in visits.items()
    ]
    rows = pl.concat(frames) if frames else pl.DataFrame()
    if sweep.against and frames:
        rows = _with_savings(rows, sweep)
    return rows, pl.DataFrame(lost)


def counting(runs: Rows, points: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], dict[int, str]]:
    """Keys of the valid runs of each point by visit; a point is named by its conditions."""
    valid = runs.filter(state="done", verdict="valid").sort("visit", maintain_order=True)
    found: dict[tuple[str, ...], dict[int, str]] = {key: {} for key in points}
    for run_key, visit, *key in valid.select("run_key", "visit", *_KEY).iter_rows():
        found[tuple(key)][visit] = run_key
    return found


def _named(rows: Rows, point: Point, seed: int, sweep: Sweep) -> Rows:
    series = {"series": str(point[sweep.series])} if sweep.series else {}
    return rows.join(pl.DataFrame([point | {"seed": seed} | series]), how="cross")


def _with_savings(rows: Rows, sweep: Sweep) -> Rows:
    """Adds ``beside_s``, the load time of ``sweep.against``, and ``saved_percent``, the share saved of it."""
    same = [key for key in sweep.over if key != sweep.series] + ["seed"]
    beside = rows.filter(series=sweep.against).select(*same, beside_s="load_s")
    saved = 100 * (1 - pl.col("load_s") / pl.col("beside_s"))
    joined = rows.join(beside, on=same, how="left", maintain_order="left")
    return joined.with_columns(saved_percent=saved)


def _once(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def in_toml(document: Mapping[str, Any]) -> str:
    """An evaluation file: plain keys first, then tables, their own tables inline."""
    plain = {key: value for key, value in document.items() if not _is_table(value)}
    lines = [f"{_name(key)} = {_value(value)}" for key, value in plain.items()]
    for key in (key for key in document if key not in plain):
        tables, head = document[key], f"[[{key}]]"
        if isinstance(tables, Mapping):
            tables, head = [tables], f"[{key}]"
        for table in tables:
            lines += ["", head, *(f"{_name(name)} = {_value(value)}" for name, value in table.items())]
    return "\n".join(lines) + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_name(key)} = {_value(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _name(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


class _Reporter:
    """Progress of one sweep within the study: a count, and a line for each run with a problem."""

    def __init__(self, progress: Callable[[int], None], done: int) -> None:
        self._progress, self._done = progress, done

    def began(self, title: str, total: int, done: int) -> None:
        self._done += done

    def calibrating(self, network: str) -> None:
        self.note(f"measuring the network {network}")

    def running(self, run: ResolvedRun, attempt: int) -> None:
        pass

    def workers(self, number: int) -> None:
        pass

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def finished(self, run: ResolvedRun, result: str, seconds_left: float) -> None:
        self._done += 1
        self._progress(self._done)

    def close(self) -> None:
        pass
