"""Testbed runs on hosts: two workers with the testbed of this machine, which take turns."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from dask_cluster import Cluster, cluster
from waiting import holds_within

from wirepaint import metrics
from wirepaint.cli import invoke
from wirepaint.cluster import hosts
from wirepaint.results import Results
from wirepaint.results.verify import verify
from wirepaint.runners.testbed.browser.chromium import program

pytestmark = pytest.mark.testbed

EVALUATION = """\
title = "Two hosts"
backend = "testbed"
[scenarios]
network = ["wpt-cable"]
congestion = ["cubic", "./own/own.c"]
[[user_agents]]
pages = ["./site"]
visits = {visits}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler with two hosts."""
    with cluster(tmp_path_factory.mktemp("lab")) as started:
        started.start_host("lab-a")
        started.start_host("lab-b")
        yield started


def asked(folder: Path, visits: int = 2) -> list[str]:
    """The command for an evaluation of a page that no worker has."""
    (folder / "site").mkdir()
    (folder / "site/index.html").write_text(
        "<!doctype html><title>A page</title><link rel=stylesheet href=style.css><p>Text</p>"
    )
    (folder / "site/style.css").write_text("p { color: #123456 }" * 500)
    assert invoke(["cc", "new", "own", "-o", str(folder / "own")]) == 0
    (folder / "e.toml").write_text(EVALUATION.format(visits=visits))
    return ["run", str(folder / "e.toml"), "-o", str(folder / "r"), "--no-rehearse", "--trust"]


def ended(results: Results) -> dict[str, str]:
    """The hosts of the runs that are done."""
    return dict(results.runs("done").select("run_key", "host").iter_rows())


def test_all_runs_of_a_page_at_a_visit_are_of_one_host_that_measured_its_network(
    lab: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = asked(tmp_path)
    invoke([*command, "--on", lab.address])  # a disturbed machine leaves no valid run: exit code 1
    results = Results.open(tmp_path / "r")
    runs = results.runs()
    assert set(runs["state"]) == {"done"}, (capfd.readouterr().err, lab.logs())
    assert set(runs["host"]) == {"lab-a", "lab-b"}
    assert all(part["host"].n_unique() == 1 for _, part in runs.group_by("page", "visit"))
    assert {(place.network, place.host) for place in results.calibrations()} == {
        ("wpt-cable", "lab-a"),
        ("wpt-cable", "lab-b"),
    }
    assert verify(tmp_path / "r").faults == []
    assert all(results.trace(key, "object").height >= 2 for key in runs["run_key"])
    assert metrics.table(results, None)["host"].to_list() == [
        ended(results)[key] for key in metrics.table(results, None)["run_key"]
    ]
    capfd.readouterr()
    assert invoke(["compare", str(tmp_path / "r"), "--suspect", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    counted = runs.filter(~runs["warmup"] & runs["verdict"].is_in(["valid", "suspect"]))
    of_both = [part for _, part in counted.group_by("congestion") if part["host"].n_unique() == 2]
    assert [one["conditions"] for one in said["hosts"]] == [len(of_both)] * bool(of_both)
    # Nothing is left to do, and it is not done.
    before = results.attempts().height
    invoke([*command, "--on", lab.address])
    assert Results.open(tmp_path / "r").attempts().height == before


def test_a_run_whose_process_was_killed_is_tried_again(tmp_path: Path) -> None:
    command = asked(tmp_path, visits=1)
    killed: list[int] = []

    def kill() -> None:
        while not killed and not _runs(tmp_path):
            for pid in _testbeds():
                if _is_loading(pid):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    return
            time.sleep(0.05)

    with cluster(tmp_path) as started:
        started.start_host("lab-a")  # alone: the warm-ups of another host count for no attempt
        killer = threading.Thread(target=kill)
        killer.start()
        invoke([*command, "--on", started.address])
        killer.join()
    results = Results.open(tmp_path / "r")
    assert killed and set(results.runs()["state"]) == {"done"}
    failed = results.attempts().filter(results.attempts()["outcome"] == "failed")
    assert failed["detail"].to_list() == ["the process of the testbed ended with -9"]


def test_runs_of_a_lost_host_go_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hosts, "LOST_S", 3.0)
    command = asked(tmp_path, visits=3)
    with cluster(tmp_path) as started:
        started.start_host("lab-a")
        lost = started.start_host("lab-b")

        def kill() -> None:
            holds_within(200, lambda: bool(_runs(tmp_path)))
            os.killpg(lost.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        invoke([*command, "--on", started.address])
        killer.join()
    said = capfd.readouterr().err
    assert "lab-b is lost; its runs go to other hosts." in said
    runs = Results.open(tmp_path / "r").runs()
    assert set(runs["state"]) == {"done"} and set(runs["host"]) >= {"lab-a"}
    assert runs["run_key"].n_unique() == runs.height


def test_hosts_with_other_browsers_are_refused_before_the_first_run(
    lab: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo Chromium 1.2.3.4 && exit\nexec {program.find()} "$@"\n'
    )
    browser.chmod(0o755)
    command = asked(tmp_path)
    other = lab.start_host("lab-c", WIREPAINT_CHROMIUM=str(browser))
    capfd.readouterr()
    assert invoke([*command, "--on", lab.address]) == 2
    other.terminate()
    other.wait(30)
    said = capfd.readouterr().err
    assert "the worker lab-" in said and "1.2.3.4" in said and program.version() in said
    assert not (tmp_path / "r").exists()


def test_two_hosts_of_one_name_are_refused(lab: Cluster, capfd: pytest.CaptureFixture[str]) -> None:
    assert invoke(["worker", lab.address, "--backend", "testbed", "--name", "lab-a"]) == 2
    assert "--name: found lab-a, which another worker has" in capfd.readouterr().err


def _runs(folder: Path) -> list[Path]:
    return [path for path in (folder / "r/runs").glob("*") if not path.name.startswith(".")]


def _testbeds() -> list[int]:
    """The processes of the workers' testbeds."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and b"wirepaint.cluster.testbed" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def _is_loading(pid: int) -> bool:
    """Whether a process of a testbed carries a run out: a launcher of cells has a child."""

    def children(of: str) -> list[str]:
        return Path(f"/proc/{of}/task/{of}/children").read_text().split()

    with suppress(OSError):
        return any(
            children(launcher)
            for child in children(str(pid))
            if b"cells" in Path(f"/proc/{child}/cmdline").read_bytes()
            for launcher in children(child)
        )
    return False
