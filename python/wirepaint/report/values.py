"""The values that the page draws itself: of the counted visits, and inside the loads.

All is compact: axes are numbers into lists of words, values have four significant digits, and a curve has at
most ``MOST_POINTS`` points, each a quantile. Of more than ``MOST_VISITS`` visits every n-th value is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wirepaint import figures, metrics
from wirepaint.evaluation import axes
from wirepaint.figures import Evidence

MOST_POINTS = 100
MOST_VISITS = 20_000
"""Visits that the page gets one by one; of more it gets evenly spaced values."""
CURVES = ("connection-duration", "bytes-per-connection", "object-size")
"""Figures of values inside the loads, in the order of the FLD paper."""
POINTS = {"object-size": "bin"}
"""Figures that are points over a column, not shares."""


@dataclass(frozen=True)
class Chart:
    """A figure that the page draws: ``panels`` is for its script."""

    name: str
    title: str
    caption: str
    source: str
    axis: str
    panels: list[dict[str, Any]]
    series: list[str]


def of_visits(evidence: Evidence, names: Sequence[str]) -> dict[str, Any]:
    """The metrics ``names`` of the counted visits, with the axes that vary. Empty without a visit.

    ``axes`` are lists of name, title and levels; ``rows`` has, by axis, each row's position in them. A row is
    a visit with its number in ``visit``; or one value stands for ``each`` visits, and ``visit`` is empty.
    """
    asked = [metric for metric in map(metrics.get, names) if evidence.table[metric.column].count()]
    if evidence.table.is_empty():
        return {}
    titles = axes.factors() | {"page": "page", "user_agent": "user"}
    ordered = [*(axis for axis in evidence.varying if axis in titles), "page"]
    if "network" not in ordered:
        ordered.insert(0, "network")
    ordered = list(dict.fromkeys(ordered))
    columns = [metric.column for metric in asked]
    each = -(-evidence.table.height // MOST_VISITS)
    table = thinned(evidence.table.select(*ordered, "visit", *columns), ordered, columns, each)
    table = evidence.in_words(table)
    shown, rows = [], {}
    for axis in ordered:
        known = [axes.words(axis, level) for level in evidence.levels.get(axis, ())]
        levels = list(dict.fromkeys((*known, *table[axis])))
        shown.append([axis, titles[axis], levels])
        position = {level: number for number, level in enumerate(levels)}
        rows[axis] = [position[level] for level in table[axis]]
    values = [
        {
            "name": metric.name,
            "title": metric.title,
            "unit": {"1": ""}.get(metric.unit, metric.unit),
            "better": metric.better or "",
            "values": [plain(value) for value in table[metric.column].round_sig_figs(4)],
        }
        for metric in asked
    ]
    visit = table["visit"].to_list() if each == 1 else []
    return {"axes": shown, "rows": rows, "visit": visit, "each": each, "metrics": values}


def thinned(table: pl.DataFrame, by: Sequence[str], columns: Sequence[str], each: int) -> pl.DataFrame:
    """Every ``each``-th value of each column in order of size, for each set of levels; at least one.

    A row of the result is no visit: its values come from different ones.
    """
    if each == 1:
        return table
    first = pl.min_horizontal(each // 2, (pl.col("of") - 1) // 2)
    return (
        table.group_by(by, maintain_order=True)
        .agg(pl.col(columns).sort(nulls_last=True), of=pl.len(), place=pl.int_range(pl.len()))
        .explode("place", *columns)
        .filter((pl.col("place") - first) % each == 0)
    )


def plain(value: float | None) -> float | int | None:
    """A whole number without its decimal point: shorter in JSON."""
    return int(value) if value is not None and value == int(value) else value


def inside(evidence: Evidence) -> list[Chart]:
    """The figures inside the loads that have anything to show."""
    if evidence.table.is_empty():
        return []
    found = []
    for name in CURVES:
        figure = figures.get(name)
        frame = figure.data(evidence)
        if not frame.is_empty():
            of_file = pl.col("condition").cast(pl.String).cast(pl.Enum(evidence.conditions))
            frame = frame.sort(of_file, maintain_order=True)
            panels = list(_panels(frame, evidence.series, POINTS.get(name)))
            axis = str(frame["axis"][0])
            found.append(
                Chart(name, figure.title, figure.caption, figure.source, axis, panels, evidence.series)
            )
    return found


def _panels(frame: pl.DataFrame, series: Sequence[str], column: str | None) -> Any:
    """One panel for each condition, and kind if one has several; its curves by number of their series."""
    # If each condition has one, the condition says it.
    kinds = (
        "kind" in frame.columns
        and frame.select("condition", "kind").n_unique() > frame["condition"].n_unique()
    )
    by = ["condition", "kind"] if kinds else ["condition"]
    for key, group in frame.group_by(by, maintain_order=True):
        curves = [
            [series.index(str(level)), _points(curve, column)]
            for (level,), curve in group.group_by("series", maintain_order=True)
        ]
        yield {"title": ", ".join(map(str, key)), "curves": curves, "points": column is not None}


def _points(curve: pl.DataFrame, column: str | None) -> list[list[float]]:
    """x and y of a curve: values and shares, at most ``MOST_POINTS``; or ``column`` and values."""
    if column:
        return [[x, float(f"{y:.4g}")] for x, y in curve.select(column, "value").iter_rows()]
    values = np.sort(curve.filter(pl.col("share") > 0)["value"].to_numpy())
    shares = np.linspace(0, 1, min(values.size, MOST_POINTS))
    ranks = np.round(shares * (values.size - 1)).astype(int)
    return [[float(f"{values[rank]:.4g}"), round((rank + 1) / values.size, 4)] for rank in ranks]
