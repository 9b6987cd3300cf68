"""Whatever is killed in mid-sweep: the same command goes on, nothing is lost, and each run is there once."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from cluster.conftest import WIREPAINT, cluster
from waiting import holds_within

from wirepaint import metrics
from wirepaint.cli import invoke
from wirepaint.results import Results
from wirepaint.results.verify import verify

pytestmark = pytest.mark.slow
RUNS = 8 * 160
SWEEP = """\
title = "A sweep"
backend = "simulator"
warmup = false
[results]
keep = "metrics"
[scenarios]
network = ["lte", "wpt-cable"]
congestion = ["cubic", "fld"]
http = ["h1", "h2"]
[[user_agents]]
pages = ["blog-small"]
visits = 160
"""
KILLS = 2
MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("expected")
    (folder / "e.toml").write_text(SWEEP)
    asked = ["run", str(folder / "e.toml"), "-o", str(folder / "r"), "--no-rehearse", "--quiet"]
    assert invoke(asked) == 0
    return folder / "r"


def started(folder: Path, on: str) -> subprocess.Popen[bytes]:
    (folder / "e.toml").write_text(SWEEP)
    argv = [WIREPAINT, "run", folder / "e.toml", "-o", folder / "r", "--no-rehearse", "--quiet", "--on", on]
    with (folder / "run.log").open("ab") as log:
        return subprocess.Popen(argv, stdout=log, stderr=log)


def done(folder: Path) -> int:
    try:
        with sqlite3.connect(f"file:{folder / 'r/journal.sqlite'}?mode=ro", uri=True) as book:
            return book.execute("SELECT count(*) FROM run WHERE state = 'done'").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def went_on(run: subprocess.Popen[bytes], folder: Path, before: int) -> bool:
    """Waits until more than ``before`` runs are done, or the command has ended."""
    return holds_within(120, lambda: done(folder) > before or run.poll() is not None)


def whole(folder: Path, expected: Path) -> None:
    results = Results.open(folder / "r")
    assert results.runs("done").height == RUNS
    assert metrics.table(results).equals(metrics.table(Results.open(expected)))
    assert verify(folder / "r").faults == []


def test_workers_killed_in_mid_sweep(tmp_path: Path, expected: Path) -> None:
    before = set(MEMORY.glob("wirepaint-scratch-*"))
    with cluster(tmp_path) as dask:
        dask.start_worker()
        run = started(tmp_path, dask.address)
        for _ in range(KILLS):
            assert holds_within(60, lambda: len(dask.workers()) == 2)
            time.sleep(random.Random(1).uniform(0.2, 1))
            os.kill(dask.workers()[0], signal.SIGKILL)
        assert run.wait(300) == 0, (tmp_path / "run.log").read_text()
    whole(tmp_path, expected)
    # Workers keep traces in memory while they compute metrics.
    assert holds_within(30, lambda: set(MEMORY.glob("wirepaint-scratch-*")) <= before)


def test_the_client_killed_in_mid_sweep(tmp_path: Path, expected: Path) -> None:
    with cluster(tmp_path) as dask:
        dask.start_worker()
        for _ in range(KILLS):
            before = done(tmp_path)
            run = started(tmp_path, dask.address)
            assert went_on(run, tmp_path, before)
            run.kill()
            run.wait()
        run = started(tmp_path, dask.address)
        assert run.wait(300) == 0, (tmp_path / "run.log").read_text()
    whole(tmp_path, expected)


def test_the_scheduler_killed_in_mid_sweep(tmp_path: Path, expected: Path) -> None:
    with cluster(tmp_path) as dask:
        for _ in range(KILLS):
            before = done(tmp_path)
            dask.start_worker()
            run = started(tmp_path, dask.address)
            assert went_on(run, tmp_path, before)
            if run.poll() is not None:
                break
            dask.scheduler.kill()
            assert run.wait(120) == 3
            assert "the scheduler is lost" in (tmp_path / "run.log").read_text()
            for process in dask.processes:
                process.wait(60)
            dask.scheduler = dask.start_scheduler()
        dask.start_worker()
        assert started(tmp_path, dask.address).wait(300) == 0, (tmp_path / "run.log").read_text()
    whole(tmp_path, expected)


def test_a_run_that_kills_its_workers_fails_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deadly = """\
import os

from wirepaint.metrics import Trace, metric

@metric(title="Deadly", unit="1", needs=("page",))
def deadly(trace: Trace) -> float:
    '''Ends the process for one page.'''
    if trace("page")["page"].item() == "agency":
        os.kill(os.getpid(), 9)
    return 1.0
"""
    (tmp_path / "mine.py").write_text(deadly)
    (tmp_path / "e.toml").write_text(
        SWEEP.replace("warmup", 'metrics = ["./mine.py"]\nwarmup')
        .replace('["blog-small"]', '["blog-small", "agency"]')
        .replace('["lte", "wpt-cable"]', '["lte"]')
        .replace('["cubic", "fld"]', '["cubic"]')
        .replace('["h1", "h2"]', '["h1"]')
        .replace("visits = 160", "visits = 2")
    )
    with cluster(tmp_path) as dask:
        dask.start_worker()
        asked = ["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "r"), "--no-rehearse", "--trust"]
        assert invoke([*asked, "--on", dask.address]) == 1
    said = capsys.readouterr().err
    assert "it killed 2 workers" in said
    rows = Results.open(tmp_path / "r").runs()
    assert dict(rows.sort("visit").group_by("page").agg("state").iter_rows()) == {
        "blog-small": ["done"] * 2,
        "agency": ["failed", "skipped"],
    }


def test_a_full_disk_under_the_client(tmp_path: Path, expected: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    with cluster(tmp_path) as dask:
        dask.start_worker()
        small = tmp_path / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", small], check=True)
        try:
            run = started(small, dask.address)
            assert went_on(run, small, 0)
            with suppress(OSError), (small / "full").open("wb", 0) as file:
                while True:
                    file.write(bytes(4096))
            assert run.wait(300) == 3, (small / "run.log").read_text()
            (small / "full").unlink()
            assert started(small, dask.address).wait(300) == 0, (small / "run.log").read_text()
            whole(small, expected)
        finally:
            subprocess.run(["umount", "-l", small], check=True)
