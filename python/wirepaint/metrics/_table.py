"""Metrics of all runs of an evaluation."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import polars as pl

from wirepaint.metrics import _flow
from wirepaint.metrics._metric import Frame, Missing, Reading
from wirepaint.metrics._registry import get, measure, registry
from wirepaint.results import Results, journal

AXES = tuple(axis for axis in journal.AXES if axis != "scenario")
"""Columns with the conditions of a run; runs with equal conditions are repetitions."""

IDENTITY = ("run_key", "scenario", *AXES, "visit", "warmup", "state", "verdict", "reasons", "cause")


def table(results: Results, verdicts: Sequence[str] | None = ("valid",)) -> Frame:
    """One row per visit, and one per name of flows in each run: axes, ``visit``, ``warmup``, ``valid``,
    ``reasons``, ``of_flows``, and every metric. The row of flows has their name as its ``page``.

    The rows are in the order of the evaluation file's axes, then by visit. ``missing`` is a JSON
    object with the reason of every metric that is null. Warm-up visits are in the table and
    marked; :mod:`wirepaint.statistics` leaves them out. ``verdicts`` None takes every run that
    ended; a failed run has its ``cause`` and no numbers.
    """
    runs = _ended(results, verdicts)
    schema = {m.column: pl.String() if m.label else pl.Float64() for m in registry().values()}
    rows: list[dict[str, Any]] = []
    of_run: list[int] = []
    pages: list[str] = []
    flows: list[bool] = []
    alone = not results.manifest["evaluation"]["user_agents"]
    for place, (key, state, page) in enumerate(runs.select("run_key", "state", "page").iter_rows()):
        if state == "failed":
            found = [(page, alone, {"missing": json.dumps(dict.fromkeys(registry(), "the run failed"))})]
        else:
            trace = cache(partial(results.trace, key))
            found = [] if alone else [(page, False, _row(measure(trace)))]
            found += [(group, True, _row(measure(trace, flows=group))) for group in _flow.groups(trace)]
        rows += [row for *_, row in found]
        pages += [name for name, *_ in found]
        flows += [is_flow for _, is_flow, _ in found]
        of_run += [place] * len(found)
    metrics = pl.DataFrame(rows, schema={**schema, "missing": pl.String()})
    valid = (pl.col("verdict") == "valid").fill_null(False).alias("valid")
    named = runs[of_run].with_columns(
        valid,
        page=pl.Series(pages, dtype=pl.String),
        of_flows=pl.Series(flows, dtype=pl.Boolean),
    )
    return pl.concat([named, metrics], how="horizontal")


def _row(readings: dict[str, Reading]) -> dict[str, Any]:
    missing = {name: reading.reason for name, reading in readings.items() if reading.reason}
    values = {get(name).column: reading.value for name, reading in readings.items()}
    return {**values, "missing": json.dumps(missing)}


def distribution(name: str, results: Results, verdicts: Sequence[str] | None = ("valid",)) -> Frame:
    """Values inside the runs that the metric ``name`` summarises: one row per item of a run.

    The first columns identify the run, then come the metric's own and ``value``. A run whose trace
    lacks the values has no row. Empty for a metric without a distribution.
    """
    by_item = get(name).by_item
    if by_item is None:
        return pl.DataFrame()
    runs = _ended(results, verdicts).filter(pl.col("state") == "done")
    frames = []
    for key in runs["run_key"]:
        try:
            frames.append(by_item(partial(results.trace, key)).with_columns(run_key=pl.lit(key)))
        except Missing:
            continue
    return (
        runs.join(pl.concat(frames), on="run_key", maintain_order="left_right") if frames else pl.DataFrame()
    )


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
