"""Metrics of all runs of an evaluation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import polars as pl

from wirepaint.metrics._metric import Frame, Missing
from wirepaint.metrics._registry import get, measure, registry

AXES = ("backend", "network", "congestion", "http", "initial_window", "user_agent", "page")
"""Columns that tell under which conditions a run was made; runs that agree in all are repetitions."""

IDENTITY = ("run_key", "scenario", *AXES, "visit", "warmup", "verdict", "reasons")


class Runs(Protocol):
    """What is read of an evaluation's results; ``wirepaint.results`` provides it."""

    def runs(self) -> Frame:
        """One row per run with the columns of the trace's table ``run``."""
        ...

    def trace(self, run_key: str, table: str) -> Frame:
        """One table of one run."""
        ...


def _chosen(results: Runs, verdicts: Sequence[str] | None) -> Frame:
    """The runs that have one of the verdicts, in the order of the results; None takes all."""
    runs = results.runs().select(IDENTITY)
    return runs if verdicts is None else runs.filter(pl.col("verdict").is_in(list(verdicts)))


def table(results: Runs, verdicts: Sequence[str] | None = ("valid",)) -> Frame:
    """One row per run: its axes, ``visit``, ``warmup``, ``verdict``, ``valid``, ``reasons``, every metric.

    ``missing`` is a JSON object that names the reason of every metric that is null. Warm-up visits
    are in the table and marked; :mod:`wirepaint.statistics` leaves them out.
    """
    runs = _chosen(results, verdicts)
    schema = {m.column: pl.String() if m.label else pl.Float64() for m in registry().values()}
    rows = []
    for key in runs["run_key"]:
        readings = measure(partial(results.trace, key))
        missing = {name: reading.reason for name, reading in readings.items() if reading.reason}
        values = {get(name).column: reading.value for name, reading in readings.items()}
        rows.append({**values, "missing": json.dumps(missing)})
    metrics = pl.DataFrame(rows, schema={**schema, "missing": pl.String()})
    valid = (pl.col("verdict") == "valid").fill_null(False).alias("valid")
    return pl.concat([runs.with_columns(valid), metrics], how="horizontal")


def distribution(name: str, results: Runs, verdicts: Sequence[str] | None = ("valid",)) -> Frame:
    """Values inside the runs, of which the metric ``name`` is a summary: one row per item of a run.

    Columns are those that identify the run, then the metric's own with ``value``. Runs whose trace
    cannot tell the values contribute no row. Empty for a metric without a distribution.
    """
    by_item = get(name).by_item
    if by_item is None:
        return pl.DataFrame()
    runs = _chosen(results, verdicts)
    frames = []
    for key in runs["run_key"]:
        try:
            frames.append(by_item(partial(results.trace, key)).with_columns(run_key=pl.lit(key)))
        except Missing:
            continue
    return (
        runs.join(pl.concat(frames), on="run_key", maintain_order="left_right") if frames else pl.DataFrame()
    )
