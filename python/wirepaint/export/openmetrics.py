"""Results as OpenMetrics 1.0, the text format that Prometheus reads: medians of the counted visits.

A metric is a gauge in the base unit of OpenMetrics (seconds, bytes, ratio), with the axes of the results as
labels. ``wirepaint_visits`` counts the visits behind each median, ``wirepaint_visits_left_out`` those that do
not count, with their end as a label. The time stamp is the beginning of the
evaluation, so that ``promtool tsdb create-blocks-from openmetrics`` can take the file.

Source: OpenMetrics 1.0.0, github.com/prometheus/OpenMetrics, specification/OpenMetrics.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import polars as pl

from wirepaint import metrics
from wirepaint.results.reader import Results
from wirepaint.statistics import losses

NAME = "metrics.openmetrics.txt"
LEFT_OUT = "wirepaint_visits_left_out"
BASE_UNITS = {"ms": ("seconds", 1e-3), "%": ("ratio", 1e-2), "bytes": ("bytes", 1.0), "kB": ("bytes", 1e3)}
"""OpenMetrics unit and factor, by the unit of a metric; other units are in the help."""


def text(results: Results) -> str:
    """The exposition: medians over the valid visits after the warm-up, by the axes."""
    table = metrics.table(results).filter(~pl.col("warmup"))
    axes = list(metrics.AXES)
    groups = table.group_by(axes, maintain_order=True)
    at = f"{datetime.fromisoformat(results.manifest['created']).timestamp():.0f}"
    known = [m for m in metrics.registry().values() if not m.label and m.column in table.columns]
    medians = groups.agg(pl.col(m.column).median() for m in known)
    lines = list(_family("wirepaint_visits", "", "Valid visits behind each median."))
    for row in groups.len().iter_rows(named=True):
        lines.append(f"wirepaint_visits{_labels(results, row, axes)} {row['len']} {at}")
    lost = losses.visits(results, ("valid",)).filter(pl.col("end") != "counted")
    if lost.height:
        lines += _family(LEFT_OUT, "", "Visits that do not count, by how they ended.")
    for row in lost.group_by([*axes, "end"], maintain_order=True).len().iter_rows(named=True):
        lines.append(f"{LEFT_OUT}{_labels(results, row, [*axes, 'end'])} {row['len']} {at}")
    for metric in known:
        unit, factor = BASE_UNITS.get(metric.unit, ("", 1.0))
        name = "_".join(part for part in ("wirepaint", _name(metric.column), unit) if part)
        told = "" if unit or metric.unit in ("1", "") else f" In {metric.unit}."
        samples = [
            f"{name}{_labels(results, row, axes)} {row[metric.column] * factor:.9g} {at}"
            for row in medians.iter_rows(named=True)
            if row[metric.column] is not None
        ]
        if samples:
            lines += [*_family(name, unit, f"{metric.summary}{told}"), *samples]
    return "\n".join([*lines, "# EOF", ""])


def _family(name: str, unit: str, told: str) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {_escaped(told)}"


def _labels(results: Results, row: dict[str, object], axes: list[str]) -> str:
    known = {"evaluation": results.title} | {axis: row[axis] for axis in axes}
    return "{" + ",".join(f'{name}="{_escaped(str(value))}"' for name, value in known.items()) + "}"


def _name(column: str) -> str:
    """A column as a part of a name of OpenMetrics."""
    return re.sub(r"[^a-z0-9_]", "_", column)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
