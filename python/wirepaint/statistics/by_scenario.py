"""Tables on the terminal, one for each scenario: of flows, of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from json import dumps as to_json
from typing import Any, ClassVar, Protocol, TypeVar

from rich.console import Console
from rich.table import Table

from wirepaint import metrics as measured
from wirepaint.errors import UsageError
from wirepaint.results import Results
from wirepaint.statistics.intervals import Interval
from wirepaint.statistics.terminal import NOTHING, WIDTH
from wirepaint.statistics.wording import number


class Row(Protocol):
    """A row: a dataclass with the medians over the runs of a scenario, by metric."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def scenario(self) -> str: ...
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
    *,
    json: bool,
) -> None:
    """Prints the ``table`` of each scenario's rows, with the metrics ``of_run`` below, or one JSON document.

    Raises UsageError if there is no row of ``what``.
    """
    if not rows:
        raise UsageError(str(results.folder), f"no run with {what} that counts", f"results with {what}")
    if json:
        print(to_json({"title": results.title, what: [asdict(row) for row in rows]}, indent=1))
        return
    console = Console(width=WIDTH, highlight=False)
    for scenario in dict.fromkeys(row.scenario for row in rows):
        of_scenario = [row for row in rows if row.scenario == scenario]
        console.print(f"[bold]{scenario}[/bold], median of {of_scenario[0].runs} runs")
        console.print(table(of_scenario))
        link = of_scenario[0].values
        said = [f"{measured.get(name).title} {cell(link[name], name)}" for name in of_run if name in link]
        console.print("; ".join(said) + "\n", style="dim")


def cell(value: Interval | None, metric: str) -> str:
    """A median with its unit."""
    unit = measured.get(metric).unit.removeprefix("1")
    return NOTHING if value is None else f"{number(value.value)} {unit}".rstrip()
