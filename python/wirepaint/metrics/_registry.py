"""The folder is the registry: every file here that does not begin with ``_`` is a metric."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from wirepaint.errors import UsageError, show
from wirepaint.metrics._metric import Metric, Reading, Trace, of_flows, of_visit
from wirepaint.reading import nearest


@cache
def registry() -> dict[str, Metric]:
    """All metrics by name, in order of name."""
    files = sorted(file.name for file in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return {
        metric.name: metric
        for file in files
        if not file.startswith("_")
        for metric in [getattr(importlib.import_module(f"{__package__}.{file}"), file)]
    }


def get(name: str) -> Metric:
    """One metric by its name (``page-load-time``) or its column (``page_load_time``)."""
    try:
        return registry()[name.replace("_", "-")]
    except KeyError:
        raise UsageError("metric", show(name), nearest(name, registry())) from None


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
    read_once = cache(trace)
    of_one = cache(of_visit(read_once, visit) if flows is None else of_flows(read_once, flows))
    known = of_run or {}
    return {
        metric.name: known[metric.name] if metric.name in known else metric.read_of(read_once, of_one, flows)
        for metric in (registry().values() if metrics is None else metrics)
    }


def over_run(trace: Trace, metrics: Iterable[Metric]) -> dict[str, Reading]:
    """Those of ``metrics`` that are over the whole run: the same for all of its visits."""
    return {metric.name: metric.read(trace) for metric in metrics if metric.over == "run"}


def compute(trace: Trace) -> dict[str, float | str | None]:
    """Every metric of one run by name; None if the trace does not determine it."""
    return {name: reading.value for name, reading in measure(trace).items()}
