"""Groups of connections in the running kernel: the table `group`, and nothing left in the end.

Windows and sums are held by congestion/scripts (test_scripts.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable
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

MS = 1_000_000
RTT = 100 * MS
LATE, ATTEMPTS = 25 * MS, 4


@dataclass(frozen=True)
class Together:
    """The observations of several connections. Times in ns from the timetable's zero."""

    answer: dict[str, Any]
    group: pl.DataFrame
    addresses: dict[str, str]

    def events(self) -> list[tuple[str, str, int]]:
        """Event, connection and members after it, in order."""
        names = {address: name for name, address in self.addresses.items()}
        rows = self.group.sort("time").select("event", "client_address", "members").rows()
        return [(event, names[address], members) for event, address, members in rows]

    def members(self, when: str) -> dict[str, int]:
        """Members of each group by prefix and slot, while the connections were ``open`` or ``closed``."""
        return {f"{row['prefix']} {row['slot']}": row["members"] for row in self.answer[when]}


Carry = Callable[..., Together]


@pytest.fixture
def together(cells: Cells, tmp_path: Path) -> Carry:
    """Carries out ``groups_transfer.carry_out``; see there."""

    def carry_out(
        algorithm: str,
        flows: dict[str, tuple[str, int]],
        steps: list[tuple[int, str, int]],
        *,
        lost: tuple[int, ...] = (),
        parameters: dict[str, int] | None = None,
        punctual: bool = True,
    ) -> Together:
        way = {"capacity": {"kind": "unlimited"}, "delay_ns": RTT // 2, "queue": {"kind": "droptail"}}
        for _ in range(ATTEMPTS):
            identity = f"{random.randrange(16**5):05x}"
            folder = tmp_path / identity
            folder.mkdir()
            name = f"{algorithm}.{identity}"
            scripted = [{"what": "data", "nth": n, "action": {"kind": "drop"}} for n in lost]
            run = parts.description(
                folder,
                name,
                way | {"scripted": scripted},
                way,
                id=f"g{identity}",
                congestion=[Congestion(algorithm=algorithm, name=name, parameters=parameters or {})],
            )
            asked = {
                "run": run,
                "congestion": name,
                "flows": [(flow, *what) for flow, what in flows.items()],
                "steps": steps,
            }
            answer = cells.call("groups_transfer:carry_out", asked, timeout_s=60, log=folder / "cell.txt")
            # The guide's section "Unseen ACKs": there Heracles is not called either.
            if not answer["probe"]["unseen"] and (answer["late"] <= LATE or not punctual):
                break
        else:
            raise Disturbed(f"{ATTEMPTS} times the timetable slipped or ACKs went unseen")
        shift = pl.col("time") - answer["start"]
        return Together(
            answer,
            read_table(folder, "group").with_columns(shift),
            {flow: address for flow, (address, _) in flows.items()},
        )

    return carry_out


def test_groups_are_networks(together: Carry) -> None:
    """HER-6: 10.1.2.3 and 10.1.2.200 share a group, 10.1.3.3 has its own."""
    flows = {"a": ("10.1.2.3", 10), "b": ("10.1.2.200", 10), "c": ("10.1.3.3", 10)}
    seen = together("heracles", flows, [(0, name, 4) for name in flows])
    assert seen.members("open") == {"10.1.2.0/24 0": 2, "10.1.3.0/24 0": 1}
    assert seen.members("closed") == {"10.1.2.0/24 0": 0, "10.1.3.0/24 0": 0}
    assert [event for event, _, _ in seen.events()] == ["join"] * 3 + ["leave"] * 3
    assert set(seen.group["server"]) == {group["server"] for group in seen.answer["open"]} == {"10.65.0.0/24"}
    assert seen.answer["congestion"]["group_events"] == seen.group.height == 6
    assert seen.answer["congestion"]["group_events_lost"] == 0


@pytest.mark.parametrize(
    "algorithm",
    [
        "heracles",
        "tcpint",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("tcbt", "tcbe", "dcac")),
    ],
)
def test_nothing_is_left_when_all_have_closed(together: Carry, algorithm: str) -> None:
    flows = {f"f{n}": (f"10.1.{n % 4}.{n + 1}", 10) for n in range(16)}
    rng = random.Random(algorithm)
    steps = sorted((rng.randrange(600) * MS, name, rng.randrange(1, 60)) for name in flows for _ in range(3))
    seen = together(
        algorithm, flows, steps, lost=tuple(sorted(rng.sample(range(1, 400), 12))), punctual=False
    )
    assert sum(group["members"] for group in seen.answer["open"]) == 16
    for group in seen.answer["closed"]:
        assert (group["members"], group["cwnd_sum"], group["ssthresh_sum"]) == (0, 0, 0)
    assert seen.answer["congestion"]["group_events_lost"] == 0
    last = seen.group.sort("time").group_by("server", "prefix", "slot").last()
    assert last["members"].sum() == 0
