"""The comparison as a table on the terminal, readable at 100 columns."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TextIO

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from wirepaint.statistics import shared
from wirepaint.statistics.comparison import TOO_FEW, Comparison, Level, difference, needed, said
from wirepaint.statistics.losses import Losses
from wirepaint.statistics.wording import count, number

WIDTH = 100
_WIDEST = 1000
_PAGE_WIDTH = 20
NOTHING = "\N{EN DASH}"
COLOURS = {"faster": "green", "better": "green", "slower": "red", "worse": "red"}


def show(
    comparisons: Sequence[Comparison],
    without: Sequence[str] = (),
    cannot_count: Mapping[str, str] | None = None,
    fidelity: str | None = None,
    lost: Sequence[Losses] = (),
    notes: Sequence[str] = (),
    together: Mapping[str, str] | None = None,
    shared_by: str = "the same page",
    file: TextIO | None = None,
) -> None:
    """Prints the comparisons, one block per metric and candidate; colours only on a terminal.

    ``without`` names the requested metrics without values to compare, ``cannot_count`` the reasons for
    skipped visits by page, ``fidelity`` describes the simulator's error on the pages, ``lost`` how
    the visits of each level ended, ``notes`` what differs between two compared folders, ``together`` the
    users that share a path, ``shared_by`` what compared visits have in common.
    """
    out = file or sys.stdout
    comparisons = sorted(comparisons, key=lambda row: not row.metric_is_primary)
    console = Console(file=out, width=None if out.isatty() else WIDTH, highlight=False)
    exploring = False
    for index, ((title, unit, _), group) in enumerate(
        groupby(comparisons, key=lambda row: (row.title, row.unit, row.candidate.level))
    ):
        rows = list(group)
        if index:
            console.print()
        if not exploring and not rows[0].metric_is_primary:
            exploring = True
            console.print("Exploratory: corrected among themselves, no answer by themselves.", style="dim")
        console.print(f"[bold]{title}[/bold]{f' ({unit})' if unit not in ('', '1') else ''}")
        block = _block(rows, _PAGE_WIDTH if console.is_terminal else None)
        _wide(console, block).print(block)
    if comparisons:
        console.print()
    for row in comparisons:
        if row.dissent:
            console.print(f"* {row.sentence}", markup=False)
    for row in comparisons:
        if row.is_primary and row.verdict == TOO_FEW:
            console.print(
                f"{row.title}, {row.stratum}, {said(row.factor, row.candidate.level)}: {needed(row)}.",
                markup=False,
            )
    for line in dict.fromkeys(row.uneven for row in comparisons if row.uneven):
        console.print(f"! {line}", markup=False)
    for row in comparisons:
        if row.is_primary and row.unpaired:
            alone = f"{count(row.unpaired, 'visit')} left out, alone on their host"
            console.print(
                f"! {row.title}, {row.stratum}, {said(row.factor, row.candidate.level)}: {alone}.",
                markup=False,
            )
    if comparisons:
        for level in lost:
            console.print(level.sentence, markup=False)
    for line in notes:
        console.print(f"! {line}", markup=False)
    for line in shared.sentences(comparisons, together or {}):
        console.print(line, markup=False)
    if without:
        console.print(f"No values at two levels of {shared_by}: {', '.join(without)}.", markup=False)
    for page, why in (cannot_count or {}).items():
        console.print(f"{page} cannot count, visits of it were skipped: {why}", markup=False)
    if fidelity:
        console.print(fidelity, markup=False)
    if comparisons:
        console.print(_legend(comparisons), style="dim")


def _wide(console: Console, table: Table) -> Console:
    """The terminal; where nobody looks at one, a console as wide as the table needs it."""
    if console.is_terminal:
        return console
    needed = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    return Console(file=console.file, width=max(console.width, needed), highlight=False)


def _block(rows: list[Comparison], page_width: int | None) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    first = rows[0]
    table.add_column("network" if list(first.conditions) == ["network"] else "conditions")
    table.add_column("page", max_width=page_width, no_wrap=True, overflow="ellipsis")
    table.add_column(said(first.factor, first.baseline.level), justify="right", no_wrap=True)
    table.add_column(said(first.factor, first.candidate.level), justify="right", no_wrap=True)
    table.add_column("difference, interval", justify="right", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(
            "" if row.page else row.stratum,
            row.page or (row.pages[0] if len(row.pages) == 1 else f"{len(row.pages)} pages"),
            _median(row.baseline),
            _median(row.candidate),
            difference(row),
            "<0.001" if row.p_holm < 0.001 else f"{row.p_holm:.3f}",
            row.verdict + ("*" if row.dissent else "") + ("!" if row.uneven else ""),
            style=COLOURS.get(row.verdict, "") if row.page is None else "dim",
        )
    return table


def _median(level: Level) -> str:
    return NOTHING if level.median is None else number(level.median.value)


def _legend(rows: Sequence[Comparison]) -> str:
    late = any(row.baseline.timed_out or row.candidate.timed_out for row in rows)
    return (
        "Values: medians of the visits, averaged over pages. Difference from "
        f"{said(rows[0].factor, rows[0].baseline.level)}: Hodges-Lehmann shift within pages, "
        "with the interval of the verdict: "
        f"95 % after Holm's correction, as p. same: all of it lies within ±{100 * rows[0].margin:g} %. "
        "mixed: pages or conditions disagree."
    ) + (" A visit that timed out ranks last; in the difference its limit stands for it." if late else "")
