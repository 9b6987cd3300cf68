"""Metrics of all runs of an evaluation."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import polars as pl

from wirepaint.metrics import _flow, _items, _kept
from wirepaint.metrics._computing import why
from wirepaint.metrics._metric import Frame, Metric
from wirepaint.metrics._registry import enrol, get, shipped
from wirepaint.printing import counted
from wirepaint.results import Results, journal_tables, manifest

AXES = tuple(axis for axis in journal_tables.AXES if axis != "scenario")
"""Columns with the conditions of a run; runs with equal conditions are repetitions."""

IDENTITY = (
    *("run_key", "scenario", *AXES, "visit", "warmup", "host", "state", "verdict", "reasons", "cause"),
)


_SAID = 3
"""Reasons of one metric that are said: a message may have a number of its visit in it."""


def own(results: Results) -> list[str]:
    """Makes the metrics of the evaluation's own files known to :func:`get`; returns their names."""
    place = str(results.folder / manifest.NAME)
    return enrol(results.manifest["evaluation"].get("metrics", ()), f"{place}: metrics")


def table(
    results: Results,
    verdicts: Sequence[str] | None = ("valid",),
    metrics: Sequence[str] | None = None,
    *,
    compact: bool = False,
    keys: pl.Series | None = None,
    reasons: bool = True,
) -> Frame:
    """One row per visit, and one per name of flows in each run: axes, ``visit``, ``warmup``, ``host``,
    ``valid``, ``reasons``, ``of_flows``, and the ``metrics`` by name; by default all, with ``missing``.

    The row of flows has their name as its ``page``. Equal users of a run have one row for each of their
    pages, with the means over them: they are no repetitions.

    The rows are in the order of the evaluation file's axes, then by visit. ``missing`` is a JSON
    object with the reason of every metric that is null. Warm-up visits are in the table and
    marked; :mod:`wirepaint.statistics` leaves them out. ``verdicts`` None takes every run that
    ended; a failed run has its ``cause`` and no numbers.

    Metrics are computed once (:mod:`wirepaint.metrics._kept`). With ``compact``, texts that many rows share
    are categoricals: a fraction of the memory. ``keys`` are the runs to read, all by default.
    Without ``reasons`` there is no ``missing``.
    """
    every = [*shipped(), *own(results)]
    asked = [get(name) for name in dict.fromkeys(every if metrics is None else metrics)]
    runs = _ended(results, verdicts, keys).with_row_index("place")
    done = runs.filter(pl.col("state") == "done")["run_key"]
    reasons = reasons and metrics is None
    rows = _kept.read(results, done, asked, reasons=reasons).drop("trace").with_row_index("row")
    rows = rows.with_columns(pl.col("user", "visited", "flows").cast(pl.Categorical()))
    alone = not results.manifest["evaluation"]["user_agents"]
    valid = (pl.col("verdict") == "valid").fill_null(False).alias("valid")
    named = (
        runs.filter((pl.col("state") == "failed") | pl.col("run_key").is_in(rows["run_key"].implode()))
        .join(rows, on="run_key", how="left")
        .sort("place", "row", maintain_order=True)
        .with_columns(
            valid,
            user_agent=pl.coalesce("user", "user_agent"),
            page=pl.coalesce("flows", "visited", "page"),
            of_flows=pl.col("flows").is_not_null() | (pl.lit(alone) & (pl.col("state") == "failed")),
        )
    )
    missing = [_missing(named, asked)] if reasons else []
    found = named.select(*runs.columns[1:], "valid", "of_flows", *(each.column for each in asked), *missing)
    return found if compact else _spelt(found)


def mistakes(
    results: Results, names: Sequence[str] | None = None, verdicts: Sequence[str] | None = None
) -> list[str]:
    """Why metrics of the evaluation's own files have no value, a sentence for each mistake.

    ``names`` are the metrics to look at and ``verdicts`` those of the runs, all by default.
    """
    known = own(results)
    whose = [get(name) for name in known if names is None or name in names]
    if not whose:
        return []
    done = _ended(results, verdicts).filter(pl.col("state") == "done")["run_key"]
    rows = _kept.read(results, done, whose, reasons=True)
    found: list[str] = []
    for metric in whose:
        reasons = rows[why(metric)].drop_nulls()
        counts = reasons.filter(reasons.str.starts_with(metric.file or "")).value_counts(sort=True)
        said = [
            f"{metric.name} has no value in {counted(n, 'visit')}: {reason}"
            for reason, n in counts.iter_rows()
        ]
        more = [f"{metric.name}: and {len(said) - _SAID} more reasons"] if len(said) > _SAID else []
        found += said[:_SAID] + more
    return found


def _spelt(frame: Frame) -> Frame:
    """The frame with texts in place of categoricals."""
    return frame.with_columns(pl.col(pl.Categorical()).cast(pl.String))


def _missing(rows: Frame, metrics: Sequence[Metric]) -> pl.Series:
    """The reasons of each row as JSON."""
    every = [each.name for each in metrics]
    failed = json.dumps(dict.fromkeys(every, "the run failed"))

    @cache
    def said(*reasons: str | None) -> str:
        return json.dumps(
            {name: reason for name, reason in zip(every, reasons, strict=True) if reason is not None}
        )

    columns = rows.select("state", *(why(each) for each in metrics))
    texts = [failed if state == "failed" else said(*reasons) for state, *reasons in columns.iter_rows()]
    return pl.Series("missing", texts, dtype=pl.String)


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
    members = members.cast(pl.Categorical() if runs.schema["user_agent"] == pl.Categorical else pl.String)
    return (
        runs.join(members, on="user_agent", how="left", maintain_order="left_right")
        .with_columns(user_agent=pl.coalesce("_name", "user_agent"), page=pl.coalesce("_page", "page"))
        .drop("_name", "_page")
    )


def distribution(name: str, results: Results, verdicts: Sequence[str] | None = ("valid",)) -> Frame:
    """Values inside the visits that the metric ``name`` summarises: one row per item of a visit.

    The first columns identify the run, with the visit's user agent and page, then come the metric's own and
    ``value``. A visit whose trace lacks the values has no row. Empty for a metric without a distribution.
    """
    own(results)
    metric = get(name)
    if metric.by_item is None:
        return pl.DataFrame()
    runs = _ended(results, verdicts).filter(pl.col("state") == "done")
    items = _items.read(results, runs["run_key"], metric)
    named = (
        _spelt(runs)
        .join(items, on="run_key", maintain_order="left_right")
        .with_columns(user_agent=pl.coalesce("user", "user_agent"), page=pl.coalesce("visited", "page"))
    )
    of_metric = [column for column in items.columns if column not in _items.WHOSE]
    return named.select(*runs.columns, *of_metric) if named.height else pl.DataFrame()


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


def _ended(results: Results, verdicts: Sequence[str] | None, keys: pl.Series | None = None) -> Frame:
    """The runs that ended, of ``keys`` and with one of the verdicts, in the order of the axes; compact."""
    runs = results.compact()
    if keys is not None:
        runs = runs.filter(pl.col("run_key").is_in(keys.implode()))
    runs = runs.filter(pl.col("state").is_in(["done", "failed"])).select(IDENTITY)
    if verdicts is not None:
        runs = runs.filter(pl.col("verdict").is_in(list(verdicts)))
    positions = []
    for axis in AXES:
        order = levels(results, axis)
        positions.append(
            pl.col(axis).cast(pl.String).replace_strict(order, range(len(order)), default=len(order))
        )
    return runs.sort(*positions, "visit", maintain_order=True)
