"""However a command of the pool ends or its folder vanishes, no run is lost or done twice."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from wirepaint.errors import Incomplete, UsageError

from . import plans
from .plans import KEYS, Fake, assert_complete, carry_out, identities

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["polars", "wirepaint.runners.pool", "wirepaint.runners.progress"])


def command(folder: Path, results: Path, seconds=0.0, size=100, kill_at=None, limit=None):
    arguments = (folder, results, seconds, size, kill_at, limit)
    process = _processes.Process(target=plans.command, args=arguments)
    process.start()
    return process


def finish(folder: Path, results: Path) -> None:
    """Gives the same command again, without any trouble; it must complete."""
    process = command(folder, results)
    process.join(60)
    assert process.exitcode == 0, (folder / "error").read_text()


def test_killed_with_9_at_random_moments_each_key_is_done_once(tmp_path: Path):
    moments = random.Random(1)
    kills = 0
    for trial in range(40):
        folder = tmp_path / str(trial)
        folder.mkdir()
        results = folder / "r"
        done: dict[str, int] = {}
        for _ in range(3):
            process = command(folder, results, seconds=0.02)
            process.join(moments.uniform(0.01, 0.4))
            if process.is_alive():
                kills += 1
            process.kill()
            process.join()
            now = identities(results)
            assert done.items() <= now.items(), "a finished run was lost or done again"
            done = now
        finish(folder, results)
        assert done.items() <= identities(results).items()
        assert_complete(results)
        if kills >= 24:
            break
    assert kills >= 20


STAGES = [
    "durable:write:before",
    "durable:write:after",
    "Journal:plan:before",
    "Journal:plan:after",
    "manifest:create:before",
    "manifest:create:after",
    "Journal:begin:before",
    "Journal:begin:after",
    "durable:sync_tree:after",
    "Path:rename:before",
    "Path:rename:after",
    "Journal:done:before",
    "Journal:done:after",
]


@pytest.mark.parametrize("stage", STAGES)
def test_killed_with_9_in_each_stage_the_same_command_completes(tmp_path: Path, stage: str):
    results = tmp_path / "r"
    process = command(tmp_path, results, kill_at=stage)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    done = identities(results)
    finish(tmp_path, results)
    assert done.items() <= identities(results).items()
    assert_complete(results)


@pytest.mark.parametrize("limit", [8_000, 20_000, 60_000], ids="{} bytes".format)
def test_a_file_that_cannot_grow_stops_the_command_and_loses_nothing(tmp_path: Path, limit: int):
    results = tmp_path / "r"
    process = command(tmp_path, results, size=100_000, limit=limit)
    process.join(60)
    assert process.exitcode == Incomplete.exit_code
    assert "give the same command again" in (tmp_path / "error").read_text()
    finish(tmp_path, results)
    assert_complete(results)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small tmpfs")
def test_a_full_disk_stops_the_command_and_loses_nothing(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], check=True)
    try:
        process = command(tmp_path, disk / "r", size=100_000)
        process.join(60)
        assert process.exitcode == Incomplete.exit_code
        assert re.search("No space left on device|disk is full", (tmp_path / "error").read_text())
        before = identities(disk / "r")
        assert 0 < len(before) < KEYS
        subprocess.run(["mount", "-o", "remount,size=6m", disk], check=True)
        finish(tmp_path, disk / "r")
        assert before.items() <= identities(disk / "r").items()
        assert_complete(disk / "r")
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_under_way_and_says_how_to_resume(tmp_path: Path, number: signal.Signals):
    results = tmp_path / "r"
    process = command(tmp_path, results, seconds=0.2)
    deadline = time.monotonic() + 30
    while len(identities(results)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.join(10)
    assert process.exitcode == Incomplete.exit_code
    assert "The same command again resumes" in (tmp_path / "error").read_text()
    assert not list((results / "runs").glob(".partial-*"))
    finish(tmp_path, results)
    assert_complete(results)


def test_a_second_command_on_the_same_folder_is_refused_and_told_by_whom(tmp_path: Path):
    results = tmp_path / "r"
    process = command(tmp_path, results, seconds=0.3)
    try:
        deadline = time.monotonic() + 30
        while not identities(results) and time.monotonic() < deadline:
            time.sleep(0.02)
        with pytest.raises(UsageError, match=rf"in use by process {process.pid} \(.*\) since 20"):
            carry_out(tmp_path, results, Fake())
    finally:
        process.kill()
        process.join()
    finish(tmp_path, results)


def test_results_that_are_removed_under_way_end_the_command_and_leave_nothing(tmp_path: Path):
    results = tmp_path / "r"

    class Removing(Fake):
        def outcome(self, run):
            if run.visit == 2:
                shutil.rmtree(results)
                Path(results, "runs").mkdir(parents=True)  # as the simulator does
            return super().outcome(run)

    with pytest.raises(
        Incomplete, match="the results folder was removed or replaced while the command was at work"
    ):
        carry_out(tmp_path, results, Removing())
    assert not results.exists()
    assert carry_out(tmp_path, results, Fake()).counts == {"valid": KEYS}


def simulated(fake: Fake, folder: Path) -> plans.contract.Tally:
    """The plan through a back end that carries runs out many at once."""
    plan = plans.changed(plans.planned(folder), backend="simulator")
    backend = [fake.backend("simulator", many=True)]
    return plans.pool.carry_out(plan, folder / "r", backend, plans.Lines())


def test_a_folder_removed_under_the_simulator_is_told(tmp_path: Path):
    class Removing(Fake):
        def outcome(self, run):
            if run.visit == 2:
                shutil.rmtree(tmp_path / "r", ignore_errors=True)
            return super().outcome(run)

    with pytest.raises(Incomplete, match="the results folder was removed or replaced"):
        simulated(Removing(), tmp_path)
    assert not (tmp_path / "r").exists()


def test_a_full_disk_under_the_simulator_is_told(tmp_path: Path):
    class Full(Fake):
        def outcome(self, run):
            (tmp_path / "r/runs/full").symlink_to("/dev/full")
            (tmp_path / "r/runs/full").write_text("no room")
            return super().outcome(run)

    with pytest.raises(
        Incomplete, match=r"No space left on device\. Mend that and give the same command again"
    ):
        simulated(Full(), tmp_path)


@pytest.mark.parametrize("together", [50, 1])
def test_runs_of_a_condition_are_simulated_together_once_no_page_is_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
):
    monkeypatch.setattr(plans.pool, "TOGETHER", together)
    fake = Fake()
    assert simulated(fake, tmp_path).counts == {"valid": KEYS}
    asked = [key.rpartition(".v") for key, _ in fake.asked]
    first = [condition for condition, _, visit in asked if visit in ("00", "01")]
    rest = [condition for condition, _, visit in asked if visit not in ("00", "01")]
    assert len(first) == 6 and sorted({*first}) == sorted({*rest})
    if together == 50:
        assert rest == [condition for condition in dict.fromkeys(rest) for _ in range(2)]
    else:
        assert rest[:4] == rest[4:] == list(dict.fromkeys(rest))
