"""Which testbed runs go side by side, and what a session does with them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wirepaint.errors import Refused, RunFailed
from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.results.outcome import Outcome
from wirepaint.runners.contract import Job
from wirepaint.runners.testbed import one_run, session, side_by_side
from wirepaint.runners.testbed.session import Session

EVALUATION = """
title = "Side by side"
backend = "testbed"
warmup = false
[scenarios]
network = [{network}]
{scenarios}
[[user_agents]]
name = "u"
pages = ["kit"]
visits = 4
browser = {{ engine = "{engine}" }}
{more}
"""
SLOW = '{ title = "slow", down = { rate = "1 Mbit/s" }, up = { rate = "1 Mbit/s" } }'
FAST = '{ title = "fast", down = { rate = "9 Mbit/s" }, up = { rate = "9 Mbit/s" } }'
ENDLESS = '{ title = "endless", down = { rate = "1 Mbit/s" }, up = { delay = "1 ms" } }'
BEHIND = {
    "scenarios": 'proxy = ["fast"]',
    "more": '[[proxies]]\nname = "fast"\nkind = "split"\nnetwork = "lte"',
}
IPERF3 = '[[flows]]\nname = "f"\nbulk = "endless"\ntool = "iperf3"'


def planned(
    folder: Path, network: str = SLOW, engine: str = "light", scenarios: str = "", more: str = ""
) -> list[ResolvedRun]:
    file = folder / "evaluation.toml"
    file.write_text(EVALUATION.format(network=network, engine=engine, scenarios=scenarios, more=more))
    return list(plan(file).runs)


@pytest.mark.parametrize(
    ("asked", "may"),
    [
        ({}, True),
        ({"engine": "chromium"}, False),
        ({"network": FAST}, False),
        ({"network": ENDLESS}, False),
        (BEHIND, False),
        ({"scenarios": 'proxy = ["split"]'}, True),
        ({"more": IPERF3}, False),
    ],
)
def test_light_users_on_slow_hops_go_side_by_side(asked: dict[str, str], may: bool, tmp_path: Path) -> None:
    assert {side_by_side.may(run) for run in planned(tmp_path, **asked)} == {may}


class Machine:
    """Cells in which runs end in the order that the test says; begins and ends are noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.notes: list[str] = []
        self.fails: set[str] = set()
        self.reasons: dict[str, list[dict[str, str]]] = {}
        self.renewed = 0
        self.open: list[Cell] = []
        monkeypatch.setattr(session, "Cells", lambda *_, **beside: Cell(self))
        monkeypatch.setattr(one_run, "begin", self.begin)
        monkeypatch.setattr(one_run, "end", self.end)
        monkeypatch.setattr(session, "calibrate", self.calibrate)
        monkeypatch.setattr(side_by_side, "between_s", lambda: 0.0)

    def begin(self, run: ResolvedRun, folder: Path, *, session: Cell, calibration: Any) -> None:
        self.notes.append(f"+{run.visit}")
        session.run = run
        os.write(session.writer, b"x")

    def end(self, session: Cell) -> Outcome:
        os.read(session.reader, 1)
        assert session.run is not None
        self.notes.append(f"-{session.run.visit}")
        if session.run.key in self.fails:
            raise RunFailed("the launcher of cells died")
        return Outcome("valid", self.reasons.get(session.run.key, []), 1)

    def calibrate(self, network: Any, *, short: bool, cells: Cell) -> dict[str, Any]:
        self.notes.append("measured")
        return {}


class Cell:
    def __init__(self, machine: Machine) -> None:
        self.machine, self.run = machine, None
        self.reader, self.writer = os.pipe()
        machine.open.append(self)

    run: ResolvedRun | None

    def __enter__(self) -> Cell:
        return self

    def __exit__(self, *_: object) -> None:
        self.machine.open.remove(self)
        os.close(self.reader)
        os.close(self.writer)

    def fileno(self) -> int:
        return self.reader

    def renew(self) -> None:
        self.machine.renewed += 1


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def jobs(runs: list[ResolvedRun], folder: Path) -> Iterator[Job]:
    return (Job(run, folder) for run in runs)


def test_runs_that_may_go_side_by_side_do_up_to_the_limit(machine: Machine, tmp_path: Path) -> None:
    runs = planned(tmp_path)
    with Session(contextlib.nullcontext, at_once=3) as testbed:
        ends = list(testbed.carry_out(jobs(runs, tmp_path)))
        assert len(machine.open) == 3
    assert machine.open == []
    assert sorted(run.visit for run, _ in ends) == [1, 2, 3, 4]
    assert machine.notes[:3] == ["+1", "+2", "+3"] and machine.notes[3].startswith("-")


def test_others_have_the_machine_for_themselves(machine: Machine, tmp_path: Path) -> None:
    first, last = planned(tmp_path)[:2], planned(tmp_path)[2:]
    alone = planned(tmp_path, engine="chromium")[:2]
    with Session(contextlib.nullcontext, at_once=8) as testbed:
        list(testbed.carry_out(jobs([*first, *alone, *last], tmp_path)))
    assert machine.notes[:2] == ["+1", "+2"] and sorted(machine.notes[2:4]) == ["-1", "-2"]
    assert machine.notes[4:8] == ["+1", "-1", "+2", "-2"]
    assert machine.notes[8:10] == ["+3", "+4"]


def test_beginnings_keep_apart_longer_while_runs_take_one_another_the_cpu(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(side_by_side, "between_s", lambda: 10.0)
    monkeypatch.setattr(session.time, "sleep", slept.append)
    runs = planned(tmp_path)
    machine.reasons[runs[0].key] = [
        {"check": "foreign_cpu", "severity": "suspect", "found": "", "expected": ""}
    ]
    with Session(contextlib.nullcontext, at_once=2) as testbed:
        list(testbed.carry_out(jobs(runs, tmp_path)))
    assert [round(seconds) for seconds in slept] == [10, 15, 14], "longer, and then nearer again"


def test_a_network_is_measured_when_the_runs_have_ended_and_none_of_them_is_lost(
    machine: Machine, tmp_path: Path
) -> None:
    runs = planned(tmp_path)
    with Session(contextlib.nullcontext, at_once=8) as testbed:

        def drawn() -> Iterator[Job]:
            for number, run in enumerate(runs):
                if number == 3:
                    testbed.calibrate(run.network)
                yield Job(run, tmp_path)

        ends = list(testbed.carry_out(drawn()))
    assert sorted(run.visit for run, _ in ends) == [1, 2, 3, 4]
    assert machine.notes.index("measured") == 6


def test_a_run_that_fails_renews_its_own_cells(machine: Machine, tmp_path: Path) -> None:
    runs = planned(tmp_path)
    machine.fails.add(runs[1].key)
    with Session(contextlib.nullcontext, at_once=8) as testbed:
        ends = {run.key: end for run, end in testbed.carry_out(jobs(runs, tmp_path))}
    assert isinstance(ends[runs[1].key], RunFailed)
    assert sum(isinstance(end, Outcome) for end in ends.values()) == 3
    assert machine.renewed == 1


def test_what_is_no_runs_fault_ends_all(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> Outcome:
        raise Refused("the data plane does not start")

    monkeypatch.setattr(one_run, "end", refused)
    with Session(contextlib.nullcontext, at_once=8) as testbed, pytest.raises(Refused):
        list(testbed.carry_out(jobs(planned(tmp_path), tmp_path)))
    assert machine.open == []
