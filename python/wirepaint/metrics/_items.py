"""Values inside runs: the connections or objects that a metric summarises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import polars as pl

from wirepaint.metrics import _kept
from wirepaint.metrics._computing import READ, Run, traces
from wirepaint.metrics._metric import Frame, Metric, Missing, of_visit
from wirepaint.metrics._registry import registry
from wirepaint.metrics._visits import visits
from wirepaint.results import Results

WHOSE = ("run_key", "trace", "user", "visited", "item")
"""First columns. ``item`` is the number of the item in its visit; null in a row for a run without any."""
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
    at once: an expression of Polars for each visit costs more than its items."""
    tables = {"page"}.union(*(metric.needs for metric in metrics))
    columns = READ if all(metric.file is None for metric in metrics) else {}
    found: dict[str, list[Frame]] = {metric.name: [] for metric in metrics}
    whose: dict[str, list[tuple[str | None, ...]]] = {metric.name: [] for metric in metrics}
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
                found[metric.name].append(items.with_row_index("item"))
                whose[metric.name] += [(run.key, run.digest, user, page)] * items.height
    rows = pl.DataFrame(without, schema=dict.fromkeys(WHOSE[:2], pl.String), orient="row")
    null = pl.lit(None)
    texts = (null.cast(pl.String).alias(name) for name in ("user", "visited", _METRIC))
    parts = [
        rows.with_columns(*texts, null.cast(pl.UInt32).alias("item"), *(null.alias(name) for name in found))
    ]
    for name, frames in found.items():
        if frames:
            items = pl.concat(frames, how="diagonal")
            of_items = pl.DataFrame(whose[name], schema=dict.fromkeys(WHOSE[:-1], pl.String), orient="row")
            named = pl.lit(name).alias(_METRIC)
            parts.append(of_items.with_columns(named, items["item"], items.drop("item").to_struct(name)))
    return pl.concat(parts, how="diagonal_relaxed").select(*WHOSE, _METRIC, *found)
