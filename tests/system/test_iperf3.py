"""iperf3 as the tool of flows on the testbed: what it does, and faults that checks find."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.errors import RunFailed
from wirepaint.evaluation import plan
from wirepaint.results import trace
from wirepaint.results.outcome import Outcome
from wirepaint.runners.testbed import iperf3, one_run
from wirepaint.runners.testbed.calibrate import calibrate
from wirepaint.runners.testbed.cells import Cells

pytestmark = [
    pytest.mark.usefixtures("root"),
    pytest.mark.timed,
    pytest.mark.skipif(shutil.which(iperf3.PROGRAM) is None, reason="needs iperf3"),
]

EVALUATION = """
title = "iperf3"
backend = "testbed"
warmup = false
repeats = 1
duration = "6 s"
[scenarios]
network = ["lte"]
congestion = ["fld"]
[[flows]]
name = "down"
bulk = "endless"
tool = "iperf3"
[[flows]]
name = "up"
bulk = "2 s"
direction = "up"
congestion = "cubic"
tool = "iperf3"
[[flows]]
name = "voice"
rate = "512 kbit/s"
write = "640 B"
stop = "4 s"
start = "1 s"
dscp = 46
tool = "iperf3"
[[flows]]
name = "object"
bulk = "1 MB"
after = "up"
tool = "iperf3"
"""
OWN = """
[[flows]]
name = "own"
bulk = "2 MB"
"""


class Lab:
    def __init__(self, cells: Cells, folder: Path) -> None:
        self._cells, self._folder, self._count = cells, folder, 0

    def carried_out(self, text: str = EVALUATION, *planted: dict[str, object]) -> tuple[Path, Outcome]:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        file = folder / "evaluation.toml"
        file.write_text(text)
        [run] = plan(file).runs
        known = calibrate(run.network, short=True, cells=self._cells)
        return folder, one_run.run_once(
            run, folder, session=self._cells, calibration=known, planted=list(planted)
        )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Cells() as cells:
        yield Lab(cells, tmp_path_factory.mktemp("iperf3"))


def invalid(outcome: Outcome) -> list[dict[str, str]]:
    return [reason for reason in outcome.reasons if reason["severity"] == "invalid"]


def test_its_flows_are_in_the_trace_as_others_are(lab: Lab) -> None:
    folder, outcome = lab.carried_out()
    assert invalid(outcome) == []
    rows = trace.read_table(folder, "flow").unique("flow", maintain_order=True, keep="last")
    of = {row["flow"]: row for row in rows.iter_rows(named=True)}
    assert set(of) == {"down", "up", "voice", "object"}
    assert of["voice"]["bytes"] == pytest.approx(3 * 64_000, rel=0.02)
    assert 1_000_000 <= of["object"]["bytes"] < 1_100_000
    assert of["object"]["started"] > of["up"]["ended"] and of["up"]["sender"] == "client"
    assert of["down"]["ended"] is None and of["down"]["retransmitted"] > 0
    connections = trace.read_table(folder, "connection")
    own = connections.filter(pl.col("congestion").str.starts_with("fld"))
    # The server's side of a flow down sends by the scenario's congestion control.
    assert set(own["connection"]) == {of[name]["connection"] for name in ("down", "voice", "object")}
    tcp = trace.read_table(folder, "tcp").filter(pl.col("connection") == of["down"]["connection"])
    assert tcp["cwnd"].max() > 50  # type: ignore[operator]
    share = metrics.get("link-utilisation").read(lambda table: trace.read_table(folder, table)).value
    assert share is not None and share > 80


def test_it_runs_beside_our_own_flows(lab: Lab) -> None:
    folder, outcome = lab.carried_out(EVALUATION.partition('[[flows]]\nname = "up"')[0] + OWN)
    assert invalid(outcome) == []
    flows = trace.read_table(folder, "flow")
    assert flows.filter(pl.col("flow") == "own")["bytes"].max() == 2_000_000
    assert flows["connection"].n_unique() == 2
    assert set(flows["connection"]) == set(trace.read_table(folder, "connection")["connection"])


def test_another_congestion_control_of_its_flow_is_found(lab: Lab) -> None:
    _, outcome = lab.carried_out(EVALUATION, {"at": "run", "set": {"flows.1.congestion": "reno"}})
    assert any("flow up" in reason["found"] for reason in invalid(outcome))


def test_a_client_that_dies_fails_the_run_by_name(lab: Lab) -> None:
    kill = {"at": "load", "in": "cell", "do": "sleep 1; pkill -9 -n iperf3"}
    with pytest.raises(RunFailed, match=r"iperf3 of flow \w+ ended under way with -9"):
        lab.carried_out(EVALUATION, kill)
