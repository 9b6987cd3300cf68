"""Agreement of simulator and testbed for each level of an axis, such as one congestion control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

from wirepaint import catalogue
from wirepaint import metrics as measured
from wirepaint.errors import UsageError
from wirepaint.errors import show as shown
from wirepaint.evaluation import axes
from wirepaint.printing import print_json
from wirepaint.reading import nearest
from wirepaint.results import examined
from wirepaint.statistics import losses
from wirepaint.statistics.agreement import REAL, SIMULATED, Agreement, agree, directions, ended, read
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
    by = catalogue.called("key", by, axes.factors())
    if by not in axes.factors():
        raise UsageError("--by", shown(by), nearest(by, axes.factors()))
    results = examined(folder)
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    again = examined(simulated) if simulated else None
    names = list(metric or headline(results))
    if "all" in names:
        names = [name for name, each in measured.registry().items() if not each.label]
    frame, lost = read(results, again, verdicts, names), ended(results, again, verdicts)
    found = by_level(frame, by, names)
    left_out = [level for level in measured.levels(results, by) if level not in found]
    if not found:
        accepted = f"{by} with valid runs of both back ends (--suspect counts suspect ones too)"
        raise UsageError(str(folder), f"no value of {by} with runs of both that count", accepted)
    if json:
        levels = {level: [asdict(row) for row in rows] for level, rows in found.items()}
        said = {"losses": [each.as_dict() for each in lost], "left_out": left_out}
        print_json({"title": results.title, "by": by, "levels": levels} | said)
    else:
        show(by, found, left_out, lost)


def show(
    axis: str,
    found: dict[str, list[Agreement]],
    left_out: Sequence[str] = (),
    lost: Sequence[losses.Losses] = (),
) -> None:
    """Prints a table for each metric, with a row for each level.

    ``left_out`` are levels without runs on both back ends; ``lost`` says how the visits of each one ended.
    """
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
    if left_out:
        console.print(f"Left out, without runs that count on both: {', '.join(left_out)}.", markup=False)
    for each in lost:
        console.print(each.sentence, markup=False)
    first = next(iter(found), "")
    console.print(
        "Simulator against testbed. A point is one page in one set of conditions: medians of its visits. "
        "Errors are shares of the testbed's value. "
        f"Same sign: of the differences from {first} that the testbed decided.",
        style="dim",
        markup=False,
    )
