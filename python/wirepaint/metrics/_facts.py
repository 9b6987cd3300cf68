"""Facts of each run that no metric is about: its beginning, the machine's load, the kernel's settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from wirepaint.metrics import _kept
from wirepaint.metrics._computing import Run, traces
from wirepaint.metrics._metric import Frame, rows
from wirepaint.results import Results, trace

_OF = {"run": ("started_unix", "sysctls"), "host": ("lateness_p99", "cpu_foreign", "cpu_total")}
"""The facts, by the table with one row per run that has them."""
_SCHEMA = {column: trace.polars_schema(table)[column] for table, columns in _OF.items() for column in columns}


def facts(results: Results, keys: Iterable[str]) -> Frame:
    """One row for each of the done runs ``keys``: ``run_key``, ``started_unix`` and ``lateness_p99`` in ns,
    ``cpu_foreign`` and ``cpu_total`` in s, ``sysctls`` as JSON. Null where the run's trace does not tell."""
    table = _kept.Table(_kept.named("facts"), _computed)
    return _kept.rows(results, keys, table).drop("trace")


def _computed(runs: Sequence[Run]) -> Frame:
    found = []
    for run, of_run in zip(runs, traces(runs, _OF, _OF), strict=True):
        row: list[object] = [run.key, run.digest]
        for table, columns in _OF.items():
            row += next(rows(of_run(table), *columns), (None,) * len(columns))
        found.append(row)
    return pl.DataFrame(found, schema={"run_key": pl.String, "trace": pl.String} | _SCHEMA, orient="row")
