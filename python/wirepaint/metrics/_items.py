"""Values inside runs: the connections or objects that a metric summarises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from wirepaint.metrics import _kept
from wirepaint.metrics._computing import Run, traces
from wirepaint.metrics._metric import Frame, Metric, Missing, of_visit
from wirepaint.metrics._visits import visits
from wirepaint.results import Results

WHOSE = ("run_key", "trace", "user", "visited", "item")
"""First columns. ``item`` is the number of the item in its visit; null in a row for a run without any."""


def read(results: Results, keys: Iterable[str], metric: Metric) -> Frame:
    """One row per item of the done runs ``keys``: :data:`WHOSE` and the metric's own columns."""
    definition = _kept.named(f"items of {_kept.definition(metric)} {metric.name}")
    table = _kept.Table(definition, lambda runs: _computed(runs, metric))
    return _kept.rows(results, keys, table).drop_nulls("item")


def _computed(runs: Sequence[Run], metric: Metric) -> Frame:
    assert metric.by_item is not None
    found = [pl.DataFrame(schema=dict.fromkeys(WHOSE[:-1], pl.String) | {"item": pl.UInt32})]
    for run, trace in zip(runs, traces(runs), strict=True):
        whose = {"run_key": pl.lit(run.key), "trace": pl.lit(run.digest)}
        none = True
        for visit, user, page in visits(trace):
            try:
                items = metric.by_item(of_visit(trace, visit)).with_row_index("item")
            except Missing:
                continue
            visited = {"user": pl.lit(user, pl.String), "visited": pl.lit(page, pl.String)}
            found.append(items.select(**whose, **visited, item="item").hstack(items.drop("item")))
            none = none and items.is_empty()
        if none:
            found.append(pl.DataFrame({"run_key": [run.key], "trace": [run.digest]}))
    return pl.concat(found, how="diagonal")
