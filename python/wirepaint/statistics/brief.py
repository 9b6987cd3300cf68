"""The answer of an evaluation in a few lines, as ``run`` ends with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from wirepaint import metrics as measured
from wirepaint.errors import UsageError
from wirepaint.evaluation.axes import axes
from wirepaint.results import Results
from wirepaint.statistics import condensed
from wirepaint.statistics.compare import compare_results, factors, parted_results, primary
from wirepaint.statistics.comparison import Comparison
from wirepaint.statistics.intervals import median
from wirepaint.statistics.wording import bounds, count, number

FEW = 6
"""So many comparisons each have a line of their own at the end of a run."""


@dataclass(frozen=True)
class Answer:
    """What an evaluation says on its primary metrics: all of it, and the few lines that a run ends with."""

    every: list[str]
    brief: list[str]


def answer(results: Results, compared: Callable[[str], str]) -> Answer:
    """The comparisons of each factor, or the medians of each page; each line names its back end.

    ``compared`` gives the command that shows all comparisons of a factor.
    """
    backend = results.manifest["backend"]
    medians = [] if factors(results) else list(_medians(results))
    every, brief = [*medians], [*medians]
    of_factors: dict[str, list[Comparison]] = {}
    for factor in factors(results):
        try:
            rows = compare_results(results, factor, primary(results), by_page=False)
        except UsageError as error:
            every.append(f"{axes()[factor].title}: nothing to compare; {error}")
            brief.append(every[-1])
            continue
        of_factors[factor] = rows
    is_short = sum(map(len, of_factors.values())) <= FEW
    for factor, rows in of_factors.items():
        sentences = [f"{row.conditions.get('backend', backend)}: {row.sentence}" for row in rows]
        parted = [f"{axes()[factor].title}: {said}" for said in parted_results(results, factor)]
        every += sentences + parted
        brief += sentences if is_short else condensed.lines(rows, backend, compared(factor))
        brief += parted
    return Answer(every, brief)


def _medians(results: Results) -> Iterator[str]:
    """The primary metric of each page, where nothing is compared."""
    metric = measured.get(primary(results)[0])
    counted = (
        measured.table(results, metrics=[metric.name], compact=True)
        .filter(~pl.col("warmup"))
        .drop_nulls(metric.column)
    )
    for (backend, page), part in counted.group_by("backend", "page", maintain_order=True):
        found = median(part[metric.column].to_list())
        value = f"{number(found.value)} {metric.unit.removeprefix('1')}".rstrip()
        yield (
            f"{backend}: {metric.title}, {page}: median {value} ({bounds(found, number)}); "
            f"{count(part.height, 'visit')}."
        )


def empty_levels(results: Results) -> list[str]:
    """The back ends and levels none of whose runs is valid, each with what became of its runs."""
    runs = results.compact().filter(~pl.col("warmup"))
    found = list(_empty(runs, "backend"))
    if found:
        return found
    for axis in (axis for axis in axes() if len(measured.levels(results, axis)) > 1):
        for backend in runs["backend"].unique(maintain_order=True):
            found += _empty(runs.filter(pl.col("backend") == backend), axis)
    return found


def _empty(runs: pl.DataFrame, axis: str) -> Iterator[str]:
    for (level,), part in runs.group_by(axis, maintain_order=True):
        if (part["verdict"] == "valid").any():
            continue
        ends = part.select(pl.coalesce("verdict", "state"))["verdict"].value_counts(sort=True)
        became = ", ".join(f"{number} {end}" for end, number in ends.iter_rows())
        checks = Counter(
            reason["check"]
            for reasons in part["reasons"]
            for reason in json.loads(reasons)
            if reason["severity"] != "note"
        )
        why = f" ({', '.join(check for check, _ in checks.most_common(3))})" if checks else ""
        backend = part["backend"][0]
        name = str(level) if axis == "backend" else f"{axes()[axis].title} {level} on the {backend}"
        yield f"{name}: none of {count(part.height, 'run')} is valid, {became}{why}"
