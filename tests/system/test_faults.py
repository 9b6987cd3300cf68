"""Faults that are planted in a run are found by its checks; the table of all of them is benches/faults.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from planted import FAULTS, Fault

from wirepaint.errors import PageTimeout, RunFailed
from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.runners.testbed import one_run
from wirepaint.runners.testbed.calibrate import calibrate
from wirepaint.runners.testbed.cells import Cells

pytestmark = pytest.mark.usefixtures("root")

EVALUATION = """
title = "Faults"
warmup = false
[scenarios]
network = ["lte"]
congestion = ["cubic"]
http = ["h2"]
[[user_agents]]
pages = ["kit"]
visits = 1
"""
CHECKS = {
    "a second shaper, 2 Mbit/s, at the server": "path",
    "a receive buffer of 8 KiB": "path",
    "an initial window of 3 on the route": "path",
    "UDP packets through the path": "foreign_packets",
    "another TCP connection through the path": "connections",
    "half the rate down": "rate",
    "5 ms more delay up": "round_trip",
    "2 % of random loss": "losses",
    "a queue of 5 packets": "losses",
    "stopped for 300 ms at the beginning": "emulator_pause",
    "stopped for 500 ms": "server_pause",
    "200 ms more think time": "think_time",
    "TLS 1.2": "tls_version",
    "the renderer stopped for 300 ms": "browser_pause",
}
"""The checks that find a fault, by its description."""
SLOW = {"a receive buffer of 8 KiB", "a second shaper, 2 Mbit/s, at the server"}
"""Faults with which the page loads for many seconds."""


class Lab:
    def __init__(self, cells: Cells, folder: Path) -> None:
        file = folder / "evaluation.toml"
        file.write_text(EVALUATION)
        [self._run] = plan(file).runs
        self._cells, self._folder = cells, folder
        self._calibration = calibrate(self._run.network, short=True, cells=cells)
        self._count = 0

    def checks(self, fault: Fault) -> set[str]:
        """The checks that a visit with the fault fails."""
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        run: ResolvedRun = self._run
        outcome = one_run.run_once(
            run, folder, session=self._cells, calibration=self._calibration, planted=fault.plant
        )
        return {reason["check"] for reason in outcome.reasons if reason["severity"] != "note"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Cells() as cells:
        yield Lab(cells, tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[pytest.mark.slow] if what in SLOW else []) for what in CHECKS]
)
def test_a_planted_fault_is_found_by_its_check(lab: Lab, what: str) -> None:
    [fault] = [fault for fault in FAULTS if fault.what == what]
    assert CHECKS[what] in lab.checks(fault)


@pytest.mark.parametrize("part", ["emulator", "server"])
def test_a_part_that_is_killed_fails_the_run(lab: Lab, part: str) -> None:
    [fault] = [fault for fault in FAULTS if (fault.where, fault.what) == (part, "killed")]
    with pytest.raises(RunFailed, match="ended under way with -9") as raised:
        lab.checks(fault)
    assert not isinstance(raised.value, PageTimeout)
