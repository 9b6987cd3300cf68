"""Values inside runs: the connections or objects that a metric summarises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import polars as pl

from wirepaint.metrics import _kept
from wirepaint.metrics._computing import READ, Run, traces
from wirepaint.metrics._metric import Frame, Metric, Missing, of_visit
from wirepaint.metrics._registry import registry
from wirepaint.metrics._visits import visits
from wirepaint.results import Results

WHOSE = ("run_key", "trace", "user", "visited", "item")
"""First columns. ``item`` is the number of the item in its visit; null in a row for a run without any."""
_OF_WHOSE: dict[str, Any] = dict.fromkeys(WHOSE, pl.String) | {"item": pl.UInt32}
_METRIC = "metric"


def read(results: Results, keys: Iterable[str], metric: Metric) -> Frame:
    """One row per item of the done runs ``keys``: :data:`WHOSE` and the metric's own columns.

    The items of all metrics of a definition are computed at once, since each run's tables are read for them.
    """
    definition = _kept.definition(metric)
    alike = [each for each in registry().values() if each.by_item and _kept.definition(each) == definition]
    table = _kept.Table(_kept.named(f"items of {definition}"), partial(_computed, metrics=alike))
    kept = _kept.rows(results, keys, table, [*WHOSE, _METRIC, metric.name])
    found = kept.filter(pl.col(_METRIC) == metric.name).drop(_METRIC)
    return found.unnest(metric.name) if found.height else found.drop(metric.name)


def _computed(runs: Sequence[Run], metrics: Sequence[Metric]) -> Frame:
    """The rows of runs, with a column of structures for each metric. Whose they are is put beside all items
    at once: a frame for each visit costs more than its items."""
    tables = {"page"}.union(*(metric.needs for metric in metrics))
    columns = READ if all(metric.file is None for metric in metrics) else {}
    found: dict[str, list[tuple[Any, ...]]] = {metric.name: [] for metric in metrics}
    without = []
    for run, trace in zip(runs, traces(runs, tables, columns), strict=True):
        without.append((run.key, run.digest))
        for visit, user, page in visits(trace):
            part = of_visit(trace, visit)
            for metric in metrics:
                assert metric.by_item is not None
                try:
                    items = metric.by_item(part)
                except Missing:
                    continue
                whose = (run.key, run.digest, user, page)
                found[metric.name] += [(*whose, number, *item) for number, item in enumerate(items)]
    parts = [pl.DataFrame(without, schema=dict.fromkeys(WHOSE[:2], pl.String), orient="row")]
    for metric in metrics:
        schema = _OF_WHOSE | dict(metric.of_item)
        rows = pl.DataFrame(found[metric.name], schema=schema, orient="row")
        item = pl.struct(*metric.of_item).alias(metric.name)
        parts.append(rows.select(*WHOSE, pl.lit(metric.name).alias(_METRIC), item))
    return pl.concat(parts, how="diagonal").select(*WHOSE, _METRIC, *found)
