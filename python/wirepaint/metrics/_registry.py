"""The folder is the registry: every file here that does not begin with ``_`` is a metric.

Results may bring metrics of their own beside these (``_own``)."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from wirepaint.errors import UsageError, show
from wirepaint.metrics import _own
from wirepaint.metrics._metric import Metric, Reading, Trace, of_flows, of_visit
from wirepaint.reading import hint
from wirepaint.results import journal_tables
from wirepaint.results.trace import polars_schema

_OF_RUNS = (
    "run_key",
    *journal_tables.AXES,
    "visit",
    "warmup",
    "state",
    "verdict",
    "reasons",
    "cause",
    "kind",
    "valid",
)
_TAKEN = frozenset((*_OF_RUNS, "of_flows", "missing", *polars_schema("page")))
"""Columns beside those of the metrics, in the table of all runs and in exports."""

SHORT = {
    "plt": "page-load-time",
    "onload": "page-load-time",
    "fcp": "first-contentful-paint",
    "lcp": "largest-contentful-paint",
    "si": "speed-index",
    "ttfb": "time-to-first-byte",
}
"""The short names of the field."""

_of_users: dict[str, Metric] = {}
"""Metrics of users' own, by name: those of the evaluation that was read last."""


def registry() -> dict[str, Metric]:
    """All metrics by name: those of wirepaint in order of name, then users' own."""
    return shipped() | _of_users


def enrol(files: Sequence[Mapping[str, Any]], place: str, agreed: bool = False) -> list[str]:
    """Adds the metrics of files as a manifest keeps them (``_own.read``); returns their names.

    They take the place of those that another evaluation brought. ``agreed``: the user
    agreed to their code on another machine. Raises UsageError at ``place`` for a name that is taken within
    these files or by wirepaint.
    """
    found: dict[str, Metric] = {}
    for entry in files:
        for metric in _own.of(entry, place, agreed):
            if metric.name in found or metric.name in shipped() or metric.column in _TAKEN:
                accepted = "a name that no other metric and no column of the table has"
                raise UsageError(place, f"a metric {metric.name} in {entry['file']}", accepted)
            found[metric.name] = metric
    _of_users.clear()
    _of_users.update(found)
    return list(found)


@cache
def shipped() -> dict[str, Metric]:
    """The metrics of wirepaint by name, in order of name."""
    files = sorted(file.name for file in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return {
        metric.name: metric
        for file in files
        if not file.startswith("_")
        for metric in [getattr(importlib.import_module(f"{__package__}.{file}"), file)]
    }


def full(name: str) -> str:
    """The name of a metric that was given by a short name or its column; any other name as it is."""
    return SHORT.get(name.casefold(), name.replace("_", "-"))


def get(name: str, place: str = "metric") -> Metric:
    """One metric by its name (``page-load-time``), a short one (``plt``) or its column (``page_load_time``).

    Raises UsageError at ``place`` for a name that is no metric.
    """
    try:
        return registry()[full(name)]
    except KeyError:
        initials = {"".join(part[0] for part in each.split("-")): each for each in registry()}
        meant = hint(initials.get(name.casefold(), name), registry())
        raise UsageError(place, show(name), f"a name of `wirepaint metric list`{meant}") from None


def measure(
    trace: Trace,
    visit: int = 0,
    flows: str | None = None,
    of_run: Mapping[str, Reading] | None = None,
    metrics: Iterable[Metric] | None = None,
) -> dict[str, Reading]:
    """Metrics of a run and one of its visits, or its flows of one name: value, or why none.

    ``of_run`` are the readings over the run (:func:`over_run`), where they are known. Without ``metrics``:
    all of them.
    """
    metrics = registry().values() if metrics is None else metrics
    of_one = cache(of_visit(trace, visit) if flows is None else of_flows(trace, flows))
    known = over_run(trace, metrics) if of_run is None else of_run
    return {
        metric.name: known[metric.name] if metric.name in known else metric.read_of(trace, of_one, flows)
        for metric in metrics
    }


def over_run(trace: Trace, metrics: Iterable[Metric]) -> dict[str, Reading]:
    """Those of ``metrics`` that are over the whole run: the same for all of its visits."""
    return {metric.name: metric.read_of(trace, trace, None) for metric in metrics if metric.over == "run"}


def compute(trace: Trace) -> dict[str, float | str | None]:
    """Every metric of one run by name; None if the trace does not determine it."""
    return {name: reading.value for name, reading in measure(cache(trace)).items()}
