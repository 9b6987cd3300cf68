"""The values that the page draws itself: of every counted visit, and inside the loads.

All is compact: axes are numbers into lists of words, values have four significant digits, and a curve has at
most ``MOST_POINTS`` points, each a quantile.
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
    """The metrics ``names`` of every counted visit, with the axes that vary. Empty without a visit.

    ``axes`` are lists of name, title and levels; ``rows`` has, by axis, each visit's position in them.
    """
    table = evidence.in_words(evidence.table)
    if table.is_empty():
        return {}
    titles = axes.factors() | {"page": "page", "user_agent": "user"}
    ordered = [*(axis for axis in evidence.varying if axis in titles), "page"]
    if "network" not in ordered:
        ordered.insert(0, "network")
    shown, rows = [], {}
    for axis in dict.fromkeys(ordered):
        known = [axes.words(axis, level) for level in evidence.levels.get(axis, ())]
        levels = list(dict.fromkeys((*known, *table[axis])))
        shown.append([axis, titles[axis], levels])
        position = {level: number for number, level in enumerate(levels)}
        rows[axis] = [position[level] for level in table[axis]]
    values = []
    for metric in map(metrics.get, names):
        column = table[metric.column]
        if column.count():
            unit = {"1": ""}.get(metric.unit, metric.unit)
            rounded = column.round_sig_figs(4).to_list()
            values.append(
                {"name": metric.name, "title": metric.title, "unit": unit, "better": metric.better or "",
                 "values": [plain(value) for value in rounded]}
            )  # fmt: skip
    return {"axes": shown, "rows": rows, "visit": table["visit"].to_list(), "metrics": values}


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
            panels = list(_panels(frame, evidence.series, POINTS.get(name)))
            axis = str(frame["axis"][0])
            found.append(
                Chart(name, figure.title, figure.caption, figure.source, axis, panels, evidence.series)
            )
    return found


def _panels(frame: pl.DataFrame, series: Sequence[str], column: str | None) -> Any:
    """One panel for each condition, and kind if there are several; its curves by number of their series."""
    kinds = "kind" in frame.columns and frame["kind"].n_unique() > 1
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
