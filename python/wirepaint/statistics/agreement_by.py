"""Agreement of simulator and testbed for each level of an axis, such as one congestion control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

from wirepaint.errors import UsageError
from wirepaint.evaluation import axes
from wirepaint.printing import print_json
from wirepaint.results import Results
from wirepaint.statistics.agreement import REAL, SIMULATED, Agreement, agree, directions, read
from wirepaint.statistics.compare import headline


def by_level(frame: pl.DataFrame, axis: str, metrics: Sequence[str]) -> dict[str, list[Agreement]]:
    """The agreement over the points of each level of ``axis``, in the order of the frame.

    ``frame`` is :func:`wirepaint.metrics.table`. The differences are those of the level from the first one;
    the first has none. Levels without runs on both back ends are left out.
    """
    frame = frame.with_columns(pl.col(axis).cast(pl.String))
    of_back_ends = (frame.filter(pl.col("backend") == side)[axis] for side in (REAL, SIMULATED))
    on_both = set.intersection(*map(set, of_back_ends))
    levels = [level for level in frame[axis].unique(maintain_order=True) if level in on_both]
    found: dict[str, list[Agreement]] = {}
    for level in levels:
        pair = frame.filter(pl.col(axis).is_in([levels[0], level]))
        found[level] = []
        for row in agree(frame.filter(pl.col(axis) == level), metrics):
            decided = directions(pair, row.metric, [axis])
            found[level].append(
                replace(
                    row,
                    decided=len(decided),
                    same_sign=sum(same for same, _ in decided),
                    large=sum(large for _, large in decided),
                    large_same_sign=sum(same and large for same, large in decided),
                )
            )
    return found


def command(
    folder: Path,
    by: str,
    metric: Sequence[str] | None = None,
    *,
    simulated: Path | None = None,
    suspect: bool = False,
    json: bool = False,
) -> None:
    """``wirepaint agree --by AXIS``: prints tables, or with ``json`` one JSON document."""
    if by not in axes.factors():
        raise UsageError("--by", repr(by), ", ".join(axes.factors()))
    results = Results.open(folder)
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    frame = read(results, Results.open(simulated) if simulated else None, verdicts)
    found = by_level(frame, by, metric or headline(results))
    if not found:
        accepted = f"{by} with valid runs of both back ends (--suspect counts suspect ones too)"
        raise UsageError(str(folder), f"no value of {by} with runs of both that count", accepted)
    if json:
        levels = {level: [asdict(row) for row in rows] for level, rows in found.items()}
        print_json({"title": results.title, "by": by, "levels": levels})
    else:
        show(by, found)


def show(axis: str, found: dict[str, list[Agreement]]) -> None:
    """Prints a table for each metric, with a row for each level."""
    console = Console(width=None if Console().is_terminal else 100, highlight=False)
    metrics = dict.fromkeys((row.metric, row.title) for rows in found.values() for row in rows)
    for name, title in metrics:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column(f"{title}, by {axis}")
        for head in ("points", "Spearman", "median error", "90th pct", "bias", "same sign"):
            table.add_column(head, justify="right", no_wrap=True)
        for level, rows in found.items():
            for row in rows:
                if row.metric == name:
                    table.add_row(level, *row.cells)
        console.print(table)
        console.print()
    first = next(iter(found), "")
    console.print(
        "A point is one page in one set of conditions: medians of its visits. Errors are shares of the "
        f"testbed's value. Same sign: of the differences from {first} that the testbed decided.",
        style="dim",
        markup=False,
    )
