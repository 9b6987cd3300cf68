"""Whatever is killed in mid-sweep: the same command goes on, nothing is lost, and each run is there once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from dask_cluster import cluster
from sweeps import Sweep, command, written
from waiting import holds_within

from wirepaint.cli import invoke
from wirepaint.results import Results

pytestmark = pytest.mark.slow
RUNS = 8 * 160
KILLS = 2
MEMORY = Path("/dev/shm")


def simulating(run: subprocess.Popen[bytes]) -> list[int]:
    """The processes of a command on this machine that carry out batches."""
    found = []
    for pid in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split():
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("expected")
    written(folder / "e.toml", RUNS)
    subprocess.run(command(folder / "e.toml", folder / "r"), check=True)
    return folder / "r"


def test_workers_killed_in_mid_sweep(tmp_path: Path, expected: Path) -> None:
    before = set(MEMORY.glob("wirepaint-scratch-*"))
    sweep = Sweep(tmp_path, RUNS)
    with cluster(tmp_path) as dask:
        dask.start_worker()
        run = sweep.start(dask.address)
        for _ in range(KILLS):
            assert holds_within(60, lambda: len(dask.workers()) == 2)
            time.sleep(random.Random(1).uniform(0.2, 1))
            os.kill(dask.workers()[0], signal.SIGKILL)
        assert run.wait(300) == 0, sweep.said()
    assert sweep.wrong(expected) == []
    # Workers keep traces in memory while they compute metrics.
    assert holds_within(30, lambda: set(MEMORY.glob("wirepaint-scratch-*")) <= before)


def test_the_client_killed_in_mid_sweep(tmp_path: Path, expected: Path) -> None:
    sweep = Sweep(tmp_path, RUNS)
    with cluster(tmp_path) as dask:
        dask.start_worker()
        for _ in range(KILLS):
            before = sweep.done()
            run = sweep.start(dask.address)
            assert sweep.goes_on(run, before)
            run.kill()
            run.wait()
        run = sweep.start(dask.address)
        assert run.wait(300) == 0, sweep.said()
    assert sweep.wrong(expected) == []


def test_the_scheduler_killed_in_mid_sweep(tmp_path: Path, expected: Path) -> None:
    sweep = Sweep(tmp_path, RUNS)
    with cluster(tmp_path) as dask:
        for _ in range(KILLS):
            before = sweep.done()
            dask.start_worker()
            run = sweep.start(dask.address)
            assert sweep.goes_on(run, before)
            if run.poll() is not None:
                break
            dask.scheduler.kill()
            assert run.wait(120) == 3
            assert "the scheduler is lost" in sweep.said()
            for process in dask.processes:
                process.wait(60)
            dask.scheduler = dask.start_scheduler()
        dask.start_worker()
        assert sweep.start(dask.address).wait(300) == 0, sweep.said()
    assert sweep.wrong(expected) == []


@pytest.mark.parametrize("on_dask", [True, False])
def test_a_run_that_kills_its_workers_fails_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], on_dask: bool
) -> None:
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
        """\
title = "A deadly run"
backend = "simulator"
metrics = ["./mine.py"]
warmup = false
[results]
keep = "metrics"
[scenarios]
network = ["lte"]
congestion = ["cubic"]
[[user_agents]]
pages = ["blog-small", "agency"]
visits = 2
"""
    )
    # One failure is enough to split a batch: with more, this takes minutes.
    asked = ["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "r"), "--no-rehearse", "--trust"]
    if on_dask:
        with cluster(tmp_path, env={"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}) as dask:
            dask.start_worker()
            assert invoke([*asked, "--on", dask.address]) == 1
    else:
        assert invoke(asked) == 1
    cause = "it killed 2 workers" if on_dask else "it ended the process that simulated it: killed by SIGKILL"
    assert cause in capsys.readouterr().err
    rows = Results.open(tmp_path / "r").runs()
    assert dict(rows.sort("visit").group_by("page").agg("state").iter_rows()) == {
        "blog-small": ["done"] * 2,
        "agency": ["failed", "skipped"],
    }


def test_a_sweep_on_this_machine_is_killed_in_part_and_whole_and_stopped(tmp_path: Path) -> None:
    runs = 8 * 600
    written(tmp_path / "e.toml", runs)
    subprocess.run(command(tmp_path / "e.toml", tmp_path / "expected"), check=True)
    before = set(MEMORY.glob("wirepaint-scratch-*"))
    sweep = Sweep(tmp_path, runs)

    def working(run: subprocess.Popen[bytes], done: int = 0) -> list[int]:
        """Its processes, once it has more than ``done`` runs and goes on."""
        assert sweep.goes_on(run, done) and run.poll() is None, sweep.said()
        return simulating(run)

    def gone(processes: list[int]) -> bool:
        return holds_within(10, lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes))

    # Ctrl-C reaches all processes, also those that still start.
    run = sweep.start("local", start_new_session=True)
    assert holds_within(60, lambda: simulating(run) != [])
    starting = simulating(run)
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(60) == 3 and gone(starting), sweep.said()

    run = sweep.start("local", start_new_session=True)
    os.kill(working(run, sweep.done())[0], signal.SIGKILL)
    others = working(run, sweep.done())
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(60) == 3 and gone(others), sweep.said()

    run = sweep.start("local")
    others = working(run, sweep.done())
    run.kill()
    run.wait()
    assert gone(others)
    assert sweep.start("local").wait(300) == 0, sweep.said()
    assert sweep.wrong(tmp_path / "expected") == []
    assert "Traceback" not in sweep.said()
    assert holds_within(30, lambda: set(MEMORY.glob("wirepaint-scratch-*")) <= before)


def test_a_full_disk_under_the_client(tmp_path: Path, expected: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    sweep, small = Sweep(tmp_path, RUNS, within="small"), tmp_path / "small"
    small.mkdir()
    with cluster(tmp_path) as dask:
        dask.start_worker()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", small], check=True)
        try:
            run = sweep.start(dask.address)
            assert sweep.goes_on(run, 0)
            with suppress(OSError), (small / "full").open("wb", 0) as file:
                while True:
                    file.write(bytes(4096))
            assert run.wait(300) == 3, sweep.said()
            (small / "full").unlink()
            assert sweep.start(dask.address).wait(300) == 0, sweep.said()
            assert sweep.wrong(expected) == []
        finally:
            subprocess.run(["umount", "-l", small], check=True)


def test_what_killed_workers_leave_in_memory_is_removed_by_the_next_one(tmp_path: Path) -> None:
    def semaphores(of: int) -> list[Path]:
        return list(MEMORY.glob(f"sem.wirepaint-{of}.*"))

    with cluster(tmp_path) as dask:
        killed = dask.start_worker(1)
        old = killed.pid
        os.killpg(old, signal.SIGKILL)  # also Python's own process that would remove them
        killed.wait()
        left = semaphores(old)
        assert left
        young = semaphores(dask.start_worker(1).pid)
        assert young
        assert semaphores(old) == left
        for path in left + young:
            os.utime(path, (0, 0))
        dask.start_worker(1)
        assert semaphores(old) == []
        assert all(path.exists() for path in young)
