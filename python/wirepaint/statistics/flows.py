"""The flows of an evaluation by their names: what each got, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from rich.table import Table

from wirepaint import metrics as measured
from wirepaint.results import Results, examined
from wirepaint.statistics import by_scenario
from wirepaint.statistics.by_scenario import cell
from wirepaint.statistics.compare import OF_FLOWS, OF_LINK
from wirepaint.statistics.intervals import Interval, median

HEADS = {
    "flow-completion-time": "completion",
    "message-delay-p50": "delay p50",
    "message-delay-p99": "delay p99",
    "flow-retransmissions": "resent",
    "flow-share": "share",
}
"""Heads of the columns on the terminal, where they differ from the metric's name."""


@dataclass(frozen=True)
class FlowRow:
    """The flows of one name in one scenario.

    ``values`` has the median over ``runs`` runs, with its 95 % interval, by metric; those of
    :data:`wirepaint.statistics.compare.OF_LINK` are the run's. A metric that they do not have is left out.
    """

    backend: str
    scenario: str
    flow: str
    runs: int
    values: dict[str, Interval]

    @property
    def name(self) -> str:
        return self.flow

    @property
    def group(self) -> str:
        """Flows share all runs of their scenario."""
        return ""


def rows(results: Results, verdicts: Sequence[str] = ("valid",)) -> list[FlowRow]:
    """One row per scenario and name of flows, in the order of the evaluation file; empty without flows."""
    return of_table(measured.table(results, verdicts, (*OF_FLOWS, *OF_LINK)))


def of_table(table: pl.DataFrame) -> list[FlowRow]:
    """The same from :func:`wirepaint.metrics.table`."""
    found = []
    counted = table.filter(~pl.col("warmup") & pl.col("of_flows"))
    for (backend, scenario, flow), group in counted.group_by(
        "backend", "scenario", "page", maintain_order=True
    ):
        known = {
            name: group[measured.get(name).column].drop_nulls().to_list() for name in (*OF_FLOWS, *OF_LINK)
        }
        values = {name: median(numbers) for name, numbers in known.items() if numbers}
        runs = group["run_key"].n_unique()
        found.append(FlowRow(str(backend), str(scenario), str(flow), runs, values))
    return found


def command(results_dir: Path, json: bool = False, *, suspect: bool = False) -> None:
    """``wirepaint flows``: prints a table per scenario, or with ``json`` one JSON document, to stdout."""
    results = examined(results_dir)
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    by_scenario.show(results, "flows", rows(results, verdicts), OF_LINK, _table, verdicts, json=json)


def _table(of_scenario: Sequence[FlowRow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("flow", no_wrap=True)
    shown = [name for name in OF_FLOWS if any(name in row.values for row in of_scenario)]
    for name in shown:
        table.add_column(HEADS.get(name, name), justify="right", no_wrap=True)
    for row in of_scenario:
        table.add_row(row.flow, *(cell(row.values.get(name), name) for name in shown))
    return table
