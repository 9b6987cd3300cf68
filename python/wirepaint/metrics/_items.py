"""Values inside runs: the connections or objects that a metric summarises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from wirepaint.metrics import _kept
from wirepaint.metrics._computing import READ, Run, traces
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
    """The rows of runs. Whose they are is put beside all items at once: an expression of Polars for each
    visit costs more than its items."""
    assert metric.by_item is not None
    found, whose = [_without(0)], []
    read = READ if metric.file is None else {}
    for run, trace in zip(runs, traces(runs, {"page", *metric.needs}, read), strict=True):
        before = len(whose)
        for visit, user, page in visits(trace):
            try:
                items = metric.by_item(of_visit(trace, visit)).with_row_index("item")
            except Missing:
                continue
            found.append(items)
            whose += [(run.key, run.digest, user, page)] * items.height
        if len(whose) == before:
            found.append(_without(1))
            whose.append((run.key, run.digest, None, None))
    of_items = pl.DataFrame(whose, schema=dict.fromkeys(WHOSE[:-1], pl.String), orient="row")
    return of_items.hstack(pl.concat(found, how="diagonal"))


def _without(rows: int) -> Frame:
    """Rows that hold no item."""
    return pl.DataFrame({"item": [None] * rows}, schema={"item": pl.UInt32})
