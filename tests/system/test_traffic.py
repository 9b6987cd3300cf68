"""Flows over real TCP: what they transfer, what the kernel says of them, and faults that checks find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.errors import RunFailed
from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.results import trace
from wirepaint.results.outcome import Outcome
from wirepaint.runners import simulator
from wirepaint.runners.contract import Job
from wirepaint.runners.testbed import one_run
from wirepaint.runners.testbed.calibrate import calibrate
from wirepaint.runners.testbed.cells import Cells

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.timed]

EVALUATION = """
title = "Flows"
backend = "{backend}"
warmup = false
repeats = 1
duration = "6 s"
[scenarios]
network = ["lte"]
[[flows]]
name = "big"
count = 2
bulk = "endless"
congestion = "fld"
start = "1500 ms"
[[flows]]
name = "voice"
rate = "64 kbit/s"
write = "160 B"
stop = "5 s"
[[flows]]
name = "web"
exchange = {{ request = "300 B", response = "40 kB", count = 3, pause = "100 ms" }}
[[flows]]
name = "upload"
after = "web"
bulk = "500 kB"
direction = "up"
congestion = "cubic"
"""

BESIDE = """
title = "A page beside downloads"
backend = "testbed"
warmup = false
[scenarios]
network = ["lte"]
[[user_agents]]
pages = ["kit"]
visits = 1
start = "2 s"
[[flows]]
name = "downloads"
count = 3
bulk = "endless"
congestion = "reno"
"""


TRAIN = """
title = "An outage"
backend = "testbed"
warmup = false
repeats = 1
duration = "4 s"
[scenarios]
network = ["./train-network.toml"]
[[flows]]
name = "download"
bulk = "endless"
"""
ALONE = """
title = "A download alone"
backend = "{backend}"
warmup = false
repeats = 1
duration = "8 s"
[scenarios]
network = ["lte"]
[[flows]]
name = "download"
bulk = "endless"
"""
TUNNEL = """
title = "A tunnel"
down = { rate = "20 Mbit/s", delay = "10 ms" }
up = { rate = "20 Mbit/s", delay = "10 ms" }
changes = [{ at = "1 s", outage = "500 ms" }]
"""
CLASSES = (Path(__file__).parents[2] / "examples/classes.toml").read_text()


class Lab:
    def __init__(self, cells: Cells, folder: Path) -> None:
        self._cells, self._folder = cells, folder
        self.run = self._planned("testbed")
        self._calibration = calibrate(self.run.network, short=True, cells=cells)
        self._count = 0

    def _planned(self, backend: str) -> ResolvedRun:
        file = self._folder / "evaluation.toml"
        file.write_text(EVALUATION.format(backend=backend))
        [run] = plan(file).runs
        return run

    def beside(self) -> ResolvedRun:
        file = self._folder / "beside.toml"
        file.write_text(BESIDE)
        [run] = plan(file).runs
        return run

    def in_classes(self, of_bronze: str) -> ResolvedRun:
        file = self._folder / "classes.toml"
        text = (
            CLASSES.replace('"both"', '"testbed"')
            .replace("15 s", "8 s")
            .replace("repeats = 3", "repeats = 1")
        )
        file.write_text(text.replace("weight = 20,", of_bronze))
        [run] = plan(file).runs
        return run

    def on_a_train(self) -> ResolvedRun:
        file = self._folder / "train.toml"
        file.write_text(TRAIN)
        (self._folder / "train-network.toml").write_text(TUNNEL)
        [run] = plan(file).runs
        return run

    def late(self) -> ResolvedRun:
        file = self._folder / "late.toml"
        text = ALONE.format(backend="testbed").replace("8 s", "2 s")
        file.write_text(text + '[[flows]]\nname = "late"\nbulk = "1 MB"\nstart = "1995 ms"\n')
        [run] = plan(file).runs
        return run

    def carried_out(
        self, planted: tuple[dict[str, object], ...] = (), run: ResolvedRun | None = None
    ) -> tuple[Path, Outcome]:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        outcome = one_run.run_once(
            run or self.run, folder, session=self._cells, calibration=self._calibration, planted=planted
        )
        return folder, outcome

    def alone(self, backend: str) -> ResolvedRun:
        file = self._folder / "alone.toml"
        file.write_text(ALONE.format(backend=backend))
        [run] = plan(file).runs
        return run

    def simulated(self, run: ResolvedRun | None = None) -> Path:
        self._count += 1
        folder = self._folder / f"simulated-{self._count}"
        folder.mkdir()
        jobs = iter([Job(run or self._planned("simulator"), folder)])
        [(_, outcome)] = simulator.Session(_at_once).carry_out(jobs)
        assert isinstance(outcome, Outcome) and outcome.verdict == "valid"
        return folder


def _at_once():
    from contextlib import nullcontext

    return nullcontext()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Cells() as cells:
        yield Lab(cells, tmp_path_factory.mktemp("flows"))


def checks(outcome: Outcome) -> set[str]:
    return {reason["check"] for reason in outcome.reasons if reason["severity"] == "invalid"}


def test_flows_transfer_what_was_asked_and_both_back_ends_tell_it_alike(lab: Lab) -> None:
    folder, outcome = lab.carried_out()
    assert checks(outcome) == set(), outcome.reasons
    flows = trace.read_table(folder, "flow").unique("flow", maintain_order=True, keep="last")
    of = {row["flow"]: row for row in flows.iter_rows(named=True)}
    assert set(of) == {"big.1", "big.2", "voice", "web", "upload"}
    assert (of["web"]["bytes"], of["upload"]["bytes"]) == (3 * 40_000, 500_000)
    assert of["upload"]["sender"] == "client" and of["upload"]["started"] >= of["web"]["ended"]
    # A write of 160 bytes each 20 ms, from 0 s on until 5 s.
    assert of["voice"]["bytes"] == pytest.approx(250 * 160, abs=160)
    messages = trace.read_table(folder, "message").filter(pl.col("flow") == "voice")
    assert messages.height * 160 == of["voice"]["bytes"]
    # On the idle path a message takes its 13 ms and what the hosts add.
    delays = messages.select((pl.col("read") - pl.col("due")) / 1e6).to_series()
    assert 13 < delays.min() < 14  # type: ignore[operator]
    connections = trace.read_table(folder, "connection")
    assert connections["congestion"].str.starts_with("fld").sum() == 2
    tcp = trace.read_table(folder, "tcp")
    assert set(connections["connection"]) >= set(tcp["connection"].drop_nulls())
    assert tcp.filter(pl.col("connection").is_null()).height == 0
    simulated = lab.simulated()
    for name, group, within in [("goodput", "big", 0.1), ("flow-completion-time", "web", 0.05)]:
        metric = metrics.get(name)
        real, modelled = (
            metric.read(lambda table, f=f: trace.read_table(f, table), flows=group).value
            for f in (folder, simulated)
        )
        assert modelled == pytest.approx(real, rel=within), name


def test_another_congestion_control_on_a_flow_is_found(lab: Lab) -> None:
    wrong = {"at": "run", "set": {"flows.0.congestion": "reno"}}
    _, outcome = lab.carried_out((wrong,))
    assert checks(outcome) == {"congestion"}
    assert any("flow big.1" in reason["found"] for reason in outcome.reasons)


def test_a_part_that_is_killed_fails_the_run_and_says_so(lab: Lab) -> None:
    kill = {"at": "load", "in": "cell", "do": "sleep 1; kill -9 $FLOWS"}
    with pytest.raises(RunFailed, match=r"flows .*ended under way with -9"):
        lab.carried_out((kill,))


def test_a_visit_begins_at_its_time_beside_flows_that_end_with_it(lab: Lab) -> None:
    folder, outcome = lab.carried_out(run=lab.beside())
    assert checks(outcome) == set(), outcome.reasons
    page = trace.read_table(folder, "page").row(0, named=True)
    flows = trace.read_table(folder, "flow")
    began, last = flows["started"].min(), flows["time"].max()
    assert isinstance(began, int) and isinstance(last, int)
    assert page["navigation_start"] - began >= 2 * 10**9
    assert page["load_event"] < last and flows["ended"].null_count() == flows.height
    # The page's connections and those of the flows have numbers of their own.
    connections = trace.read_table(folder, "connection")
    assert connections["connection"].n_unique() == connections.height
    assert connections.filter(pl.col("visit").is_null())["connection"].sort().to_list() == sorted(
        flows["connection"].unique()
    )


@pytest.mark.parametrize(
    ("of_bronze", "shares"),
    [("weight = 20,", [50, 30, 20]), ('weight = 20, ceiling = "2 Mbit/s",', [56.25, 33.75, 10])],
)
def test_flows_in_service_classes_get_their_shares_of_the_emulated_link(
    lab: Lab, of_bronze: str, shares: list[float]
) -> None:
    folder, outcome = lab.carried_out(run=lab.in_classes(of_bronze))
    assert checks(outcome) == set(), outcome.reasons
    share = metrics.get("flow-share")
    found = [
        share.read(lambda table: trace.read_table(folder, table), flows=name).value
        for name in ("gold", "silver", "bronze")
    ]
    assert found == pytest.approx(shares, abs=1.0)


def test_an_outage_begins_at_its_time_after_the_flows_began(lab: Lab) -> None:
    folder, outcome = lab.carried_out(run=lab.on_a_train())
    assert checks(outcome) == set(), outcome.reasons
    began = trace.read_table(folder, "flow")["started"].min()
    assert isinstance(began, int)
    link = trace.read_table(folder, "link").filter(pl.col("direction") == "down").sort("time")
    passed = link.select(at=pl.col("time") - began, bytes=pl.col("delivered_bytes").diff()).drop_nulls()
    # Packets under way when it began still arrive within the path's 10 ms; samples are 10 ms apart.
    still = passed.filter(pl.col("at").is_between(1_030_000_000, 1_490_000_000))
    assert still["bytes"].sum() == 0 and still.height > 40
    assert passed.filter(pl.col("at").is_between(900_000_000, 990_000_000))["bytes"].min() != 0
    assert passed.filter(pl.col("at").is_between(1_500_000_000, 2_500_000_000))["bytes"].sum() > 1_000_000


def test_the_queue_is_sampled_as_it_was_at_the_time_of_the_sample(lab: Lab) -> None:
    folder, outcome = lab.carried_out(run=lab.alone("testbed"))
    assert checks(outcome) == set(), outcome.reasons
    metric = metrics.get("queueing-delay-p50")
    real, modelled = (
        metric.read(lambda table, f=f: trace.read_table(f, table), flows="download").value
        for f in (folder, lab.simulated(lab.alone("simulator")))
    )
    # The same sawtooth on both; frames of up to 5 ms after a sample's time once counted as waiting.
    assert real == pytest.approx(modelled, rel=0.07)


def test_a_flow_that_is_cut_off_while_it_connects_is_no_fault(lab: Lab) -> None:
    late = lab.late()
    folder, outcome = lab.carried_out(run=late)
    assert checks(outcome) == set(), outcome.reasons
    # 5 ms before the end, of a path of 26 ms.
    assert "late" in set(trace.read_table(folder, "flow")["flow"])
