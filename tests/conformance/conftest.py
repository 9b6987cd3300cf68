"""Runs transfers in cells for the conformance tests."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parts
import polars as pl
import pytest
from disturbed import Disturbed

from wirepaint.dataplane.description import Congestion
from wirepaint.results.trace import read_table
from wirepaint.runners.testbed.cells import Cells

HERE = Path(__file__).parent
ALGORITHMS = HERE.parents[1] / "congestion/algorithms"
"""Congestion controls to load; other names are the kernel's own."""
MS = 1_000_000
ATTEMPTS, LATE = 4, 25 * MS
"""The timetable must be kept, or the sender does something else; then the transfer is repeated. So it
is when the kernel ran no BPF program for some ACKs (docs/guide/congestion.md, "Unseen ACKs")."""


@dataclass(frozen=True)
class Transfer:
    """The observations of one transfer. Times in ns from the timetable's zero."""

    answer: dict[str, Any]
    tcp: pl.DataFrame
    packets: pl.DataFrame

    def acks(self) -> pl.DataFrame:
        """The sender as each ACK found it; ``acked`` data segments had been acknowledged before."""
        # The SYN's own acknowledgement counts as one delivery.
        return self.tcp.filter(pl.col("event") == "ack").with_columns(acked=pl.col("delivered") - 1)

    def windows_at(self, *acked: int) -> list[int | None]:
        """cwnd after N acknowledged data segments."""
        samples = self.acks()
        found = [samples.filter(pl.col("acked") == count)["cwnd"] for count in acked]
        return [series[-1] if len(series) else None for series in found]

    def data_sent(self, begin: int, end: int) -> int:
        """Data segments that reached the bottleneck in an interval."""
        return self.packets.filter(
            (pl.col("direction") == "down")
            & (pl.col("payload_bytes") > 0)
            & pl.col("time_in").is_between(begin, end)
        ).height


@pytest.fixture(scope="module")
def cells(request: pytest.FixtureRequest) -> Iterator[Cells]:
    request.getfixturevalue("root_of_module")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(HERE))
    with Cells() as cells:
        yield cells
    patch.undo()


@pytest.fixture(scope="module")
def root_of_module() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: congestion controls are loaded into the kernel")


@pytest.fixture
def transfer(cells: Cells, tmp_path: Path) -> Callable[..., Transfer]:
    """Carries out ``bulk.carry_out``; see there."""

    def carry_out(
        algorithm: str,
        writes: list[tuple[int, int]],
        *,
        parameters: dict[str, int] | None = None,
        initial_window: int = 10,
        rtt: int = 100 * MS,
        changes: list[dict[str, Any]] | None = None,
        sysctls: dict[str, str] | None = None,
        switches: list[tuple[int, str]] | None = None,
        beside: tuple[str, ...] = (),
    ) -> Transfer:
        identity = f"{random.randrange(16**5):05x}"
        folder = tmp_path / identity
        folder.mkdir()
        load = [
            Congestion(algorithm=name, name=f"{name}.{identity}", parameters=parameters or {})
            for name in (algorithm, *beside)
            if (ALGORITHMS / f"{name}.c").exists()
        ]
        way = {"capacity": {"kind": "unlimited"}, "delay_ns": rtt // 2, "queue": {"kind": "droptail"}}
        name = load[0].name if load else algorithm
        down = way | {"changes": changes or []}
        run = parts.description(
            folder, name, down, way, id=f"c{identity}", congestion=load, packet_trace=True
        )
        asked = {
            "run": run,
            "congestion": name,
            "initial_window": initial_window,
            "sysctls": sysctls or {},
            "writes": writes,
            "switches": [(at, f"{name}.{identity}") for at, name in switches or []],
        }
        for _ in range(ATTEMPTS):
            answer = cells.call("bulk:carry_out", asked, timeout_s=60, log=folder / "cell.txt")
            if unseen := answer["probe"]["unseen"]:
                warnings.warn(f"no BPF program ran for some ACKs: {unseen}", stacklevel=2)
            elif answer["late"] <= LATE:
                break
        else:
            raise Disturbed(f"{ATTEMPTS} times the timetable slipped or ACKs went unseen")
        shift = answer["start"]
        return Transfer(
            answer,
            read_table(folder, "tcp").with_columns(pl.col("time") - shift),
            read_table(folder, "packet").with_columns(pl.col("time_in", "time_due", "time_out") - shift),
        )

    return carry_out
