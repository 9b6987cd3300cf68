"""Metrics of all runs of an evaluation."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import polars as pl

from wirepaint.metrics import _flow
from wirepaint.metrics._metric import Frame, Missing, Reading, Trace, group_of, of_visit
from wirepaint.metrics._registry import enrol, get, measure, over_run, registry
from wirepaint.results import Results, journal, manifest

AXES = tuple(axis for axis in journal.AXES if axis != "scenario")
"""Columns with the conditions of a run; runs with equal conditions are repetitions."""

IDENTITY = ("run_key", "scenario", *AXES, "visit", "warmup", "state", "verdict", "reasons", "cause")


def own(results: Results) -> list[str]:
    """Makes the metrics of the evaluation's own files known to :func:`get`; returns their names."""
    place = str(results.folder / manifest.NAME)
    return enrol(results.manifest["evaluation"].get("metrics", ()), f"{place}: metrics")


def table(results: Results, verdicts: Sequence[str] | None = ("valid",)) -> Frame:
    """One row per visit, and one per name of flows in each run: axes, ``visit``, ``warmup``, ``valid``,
    ``reasons``, ``of_flows``, and every metric. The row of flows has their name as its ``page``. Equal users
    of a run have one row for each of their pages, with the means over them: they are no repetitions.

    The rows are in the order of the evaluation file's axes, then by visit. ``missing`` is a JSON
    object with the reason of every metric that is null. Warm-up visits are in the table and
    marked; :mod:`wirepaint.statistics` leaves them out. ``verdicts`` None takes every run that
    ended; a failed run has its ``cause`` and no numbers.
    """
    own(results)
    runs = _ended(results, verdicts)
    schema = {m.column: pl.String() if m.label else pl.Float64() for m in registry().values()}
    found: list[tuple[int, str, str, bool, dict[str, Any]]] = []
    alone = not results.manifest["evaluation"]["user_agents"]
    columns = runs.select("run_key", "state", "user_agent", "page")
    for place, (key, state, user_agent, page) in enumerate(columns.iter_rows()):
        if state == "failed":
            missing = {"missing": json.dumps(dict.fromkeys(registry(), "the run failed"))}
            found.append((place, user_agent, page, alone, missing))
            continue
        trace = cache(partial(results.trace, key))
        readings = over_run(trace)
        of_visits: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for visit, of_user, of_page in visits(trace):
            whose = of_user or user_agent, of_page or page
            of_visits.setdefault(whose, []).append(_row(measure(trace, visit, None, readings)))
        found += [(place, *whose, False, _mean(rows)) for whose, rows in of_visits.items()]
        for group in _flow.groups(trace):
            found.append((place, user_agent, group, True, _row(measure(trace, 0, group, readings))))
    of_run, users, pages, flows, rows = zip(*found, strict=True) if found else ((),) * 5
    metrics = pl.DataFrame(rows, schema={**schema, "missing": pl.String()})
    valid = (pl.col("verdict") == "valid").fill_null(False).alias("valid")
    named = runs[list(of_run)].with_columns(
        valid,
        user_agent=pl.Series(users, dtype=pl.String),
        page=pl.Series(pages, dtype=pl.String),
        of_flows=pl.Series(flows, dtype=pl.Boolean),
    )
    return pl.concat([named, metrics], how="horizontal")


def apart(results: Results, runs: Frame) -> Frame:
    """The runs, with a row for each user agent and page in place of a run of several."""
    groups = [
        (agent["group"], agent["name"], agent["page"])
        for agent in results.manifest["evaluation"]["user_agents"]
    ]
    members = pl.DataFrame(
        [group for group in groups if group[0] is not None],
        schema={"user_agent": pl.String, "_name": pl.String, "_page": pl.String},
        orient="row",
    )
    if members.is_empty():
        return runs
    return (
        runs.join(members, on="user_agent", how="left", maintain_order="left_right")
        .with_columns(user_agent=pl.coalesce("_name", "user_agent"), page=pl.coalesce("_page", "page"))
        .drop("_name", "_page")
    )


def visits(trace: Trace) -> list[tuple[int, str | None, str | None]]:
    """The visits of a run: number, user agent (without the number of an equal user) and page."""
    frame = trace("page").select(pl.col("visit").fill_null(0), group_of("user_agent"), "page")
    return frame.sort("visit").rows()


def hosts(trace: Trace) -> Frame:
    """One row per visit of a run: ``visit``, ``user``, ``user_agent``, ``host`` (its client in the trace)."""
    known = trace("client")["host"].to_list()
    # A user alone in a run is its host "client".
    host = pl.when(pl.col("user_agent").is_in(known)).then("user_agent").otherwise(pl.lit("client"))
    page = trace("page")
    return page.select(
        pl.col("visit").fill_null(0), group_of("user_agent"), user=page["user_agent"], host=host
    )


def _mean(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The means of the numbers of rows; a text where all have it, and what any lacks."""
    if len(rows) == 1:
        return rows[0]
    mean: dict[str, Any] = {}
    for name, first in rows[0].items():
        known = [row[name] for row in rows if row[name] is not None]
        if name == "missing":
            lacks = {metric: why for row in reversed(rows) for metric, why in json.loads(row[name]).items()}
            mean[name] = json.dumps(lacks)
        elif isinstance(first, str):
            mean[name] = first if known == [first] * len(rows) else None
        else:
            mean[name] = sum(known) / len(known) if len(known) == len(rows) else None
    return mean


def _row(readings: dict[str, Reading]) -> dict[str, Any]:
    missing = {name: reading.reason for name, reading in readings.items() if reading.reason}
    values = {get(name).column: reading.value for name, reading in readings.items()}
    return {**values, "missing": json.dumps(missing)}


def distribution(name: str, results: Results, verdicts: Sequence[str] | None = ("valid",)) -> Frame:
    """Values inside the visits that the metric ``name`` summarises: one row per item of a visit.

    The first columns identify the run, with the visit's user agent and page, then come the metric's own and
    ``value``. A visit whose trace lacks the values has no row. Empty for a metric without a distribution.
    """
    own(results)
    by_item = get(name).by_item
    if by_item is None:
        return pl.DataFrame()
    runs = _ended(results, verdicts).filter(pl.col("state") == "done")
    frames = []
    for key, user_agent, page in runs.select("run_key", "user_agent", "page").iter_rows():
        trace = cache(partial(results.trace, key))
        for visit, of_user, of_page in visits(trace):
            named = {"user_agent": of_user or user_agent, "page": of_page or page, "run_key": key}
            try:
                items = by_item(of_visit(trace, visit))
            except Missing:
                continue
            frames.append(items.with_columns(**{column: pl.lit(value) for column, value in named.items()}))
    if not frames:
        return pl.DataFrame()
    items, order = pl.concat(frames), runs.columns
    joined = runs.drop("user_agent", "page").join(items, on="run_key", maintain_order="left_right")
    return joined.select(*order, pl.exclude(order))


def levels(results: Results, axis: str) -> list[str]:
    """Values of an axis in the order of the evaluation file."""
    evaluation = results.manifest["evaluation"]
    if axis == "user_agent":
        values = [agent["name"] for agent in evaluation["user_agents"]] or ["flows"]
    elif axis == "page":
        values = [agent["page"] for agent in evaluation["user_agents"]]
        values += [_flow.group(flow["name"]) for flow in all_flows(results)]
    else:
        values = [scenario[axis] for scenario in evaluation["scenarios"].values()]
    return list(dict.fromkeys(map(str, values)))


def all_flows(results: Results) -> list[dict[str, Any]]:
    """The flows of an evaluation as its manifest has them, with those of the scenarios' background."""
    evaluation = results.manifest["evaluation"]
    of_scenarios = (
        scenario.get("beside", {}).get("flows", []) for scenario in evaluation["scenarios"].values()
    )
    return [*evaluation["flows"], *itertools.chain.from_iterable(of_scenarios)]


def _ended(results: Results, verdicts: Sequence[str] | None) -> Frame:
    """The runs that ended, with one of the verdicts, in the order of the axes."""
    runs = results.runs("done", "failed").select(IDENTITY)
    if verdicts is not None:
        runs = runs.filter(pl.col("verdict").is_in(list(verdicts)))
    positions = []
    for axis in AXES:
        order = levels(results, axis)
        positions.append(
            pl.col(axis).cast(pl.String).replace_strict(order, range(len(order)), default=len(order))
        )
    return runs.sort(*positions, "visit", maintain_order=True)
