"""Tables on the terminal, one for each scenario and group of users: of flows, of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from json import dumps as to_json
from typing import Any, ClassVar, Protocol, TypeVar

from rich.console import Console
from rich.table import Table

from wirepaint import metrics as measured
from wirepaint.errors import UsageError
from wirepaint.printing import counted
from wirepaint.results import Results
from wirepaint.statistics import losses
from wirepaint.statistics.intervals import Interval
from wirepaint.statistics.losses import Losses
from wirepaint.statistics.terminal import NOTHING, WIDTH
from wirepaint.statistics.wording import number


class Row(Protocol):
    """A row: a dataclass with the medians over the runs of a scenario, by metric. Rows of one ``group`` share
    runs."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def backend(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def runs(self) -> int: ...
    @property
    def values(self) -> dict[str, Interval]: ...


R = TypeVar("R", bound=Row)


def show(
    results: Results,
    what: str,
    rows: Sequence[R],
    of_run: Sequence[str],
    table: Callable[[Sequence[R]], Table],
    verdicts: Sequence[str],
    *,
    json: bool,
) -> None:
    """Prints tables of the rows that share runs, with the metrics ``of_run`` below, or one JSON document.

    A metric that is of each row by itself names the rows.

    Both also say how the visits of each back end ended, and those of each scenario (JSON), or of each that
    lost some (text): runs with other ``verdicts`` are in no row. Raises UsageError if there is no row of
    ``what``.
    """
    backends, scenarios = _ends(results, verdicts)
    if not rows:
        lost = "".join(f"; {each.level}: {each.causes}" for each in backends if each.lost)
        raise UsageError(str(results.folder), f"no run with {what} that counts{lost}", f"results with {what}")
    if json:
        ended = {"losses": scenarios, "backends": backends}
        said = {name: [each.as_dict() for each in found] for name, found in ended.items()}
        print(to_json({"title": results.title, what: [asdict(row) for row in rows], **said}, indent=1))
        return
    console = Console(width=WIDTH, highlight=False)
    groups = {row.group for row in rows}
    for scenario, group in dict.fromkeys((row.scenario, row.group) for row in rows):
        of_runs = [row for row in rows if (row.scenario, row.group) == (scenario, group)]
        first = of_runs[0]
        told = f"{first.backend}: {scenario.removesuffix(f'-{first.backend}')}"
        told += f", {group}" if len(groups) > 1 else ""
        console.print(f"[bold]{told}[/bold], median of {counted(first.runs, 'run')}")
        console.print(table(of_runs))
        said = [_below(name, of_runs) for name in of_run if any(name in row.values for row in of_runs)]
        console.print("; ".join(said) + "\n", style="dim")
    for each in (*backends, *(scenario for scenario in scenarios if scenario.lost)):
        console.print(each.sentence, markup=False)


def _below(metric: str, rows: Sequence[Row]) -> str:
    """A metric with its value; with those of all rows if it is over a visit."""
    known = measured.get(metric)
    told = {row.name: cell(row.values[metric], metric) for row in rows if metric in row.values}
    if known.over == "run" or len(set(told.values())) == 1:
        return f"{known.title} {next(iter(told.values()))}"
    return f"{known.title} while {', '.join(f'{name} loads {value}' for name, value in told.items())}"


def _ends(results: Results, verdicts: Sequence[str]) -> tuple[list[Losses], list[Losses]]:
    """How the visits of each back end and of each scenario ended; the name of a scenario has its back end."""
    ends = losses.visits(results, verdicts)
    of_backends = losses.by_level(ends, "backend", ("testbed", "simulator"))
    order = list(results.manifest["evaluation"]["scenarios"])
    parts = ends.partition_by("backend", maintain_order=True)
    return of_backends, [each for part in parts for each in losses.by_level(part, "scenario", order)]


def cell(value: Interval | None, metric: str) -> str:
    """A median with its unit."""
    unit = measured.get(metric).unit.removeprefix("1")
    return NOTHING if value is None else f"{number(value.value)} {unit}".rstrip()
