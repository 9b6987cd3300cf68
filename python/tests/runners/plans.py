"""Plans and a back end for tests of the pool: no network, no browser, but real files and processes."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from wirepaint.errors import RunFailed, WirepaintError
from wirepaint.evaluation import Plan, ResolvedRun, plan
from wirepaint.evaluation.network import Network
from wirepaint.evaluation.pages import PageRef
from wirepaint.evaluation.runs import Changed
from wirepaint.results import Results, trace
from wirepaint.results.outcome import Outcome
from wirepaint.results.store import disk_errors
from wirepaint.runners import contract, pool
from wirepaint.runners.progress import Lines

EVALUATION = """
title = "Two controls"
[scenarios]
network = [{title = "fast", down = {rate = "25 Mbit/s", delay = "13 ms"}, up = {delay = "13 ms"}}]
congestion = ["cubic", "reno"]
[[user_agents]]
pages = ["one", "two"]
visits = 3
"""
KEYS = 14
"""Runs of that evaluation: 2 controls x 2 pages x 3 visits, and 2 for warm-up."""


def page(reference: str, base: Path, place: str) -> PageRef:
    """A page that nobody loads."""
    return PageRef(name=reference, folder=base / reference, sha256="0" * 64)


def planned(folder: Path, text: str = EVALUATION) -> Plan:
    """The plan of an evaluation file written into ``folder``."""
    file = folder / "evaluation.toml"
    file.write_text(text)
    return plan(file, page_resolver=page)


def changed(made: Plan, **update: Any) -> Plan:
    """A plan whose runs have other values of some fields."""
    return replace(made, runs=Changed(made.runs, lambda run: run.model_copy(update=update)))


class Fake:
    """A back end that writes a table and some bytes; ``outcomes`` sets a run's outcomes by attempt."""

    calibrate: Callable[[Network], dict[str, Any]] | None = None
    team: None = None

    def __init__(self, seconds: float = 0.0, size: int = 100) -> None:
        self.seconds, self.size = seconds, size
        self.asked: list[tuple[str, int]] = []

    def carry_out(self, jobs: Iterator[contract.Job]) -> contract.Ends:
        for job in jobs:
            try:
                with self.interruptible(), disk_errors(job.folder):
                    end = self.run_once(job.run, job.folder, job.calibration)
            except RunFailed as failure:
                end = failure
            yield job.run, end

    def run_once(self, run: ResolvedRun, folder: Path, calibration: dict[str, Any] | None) -> Outcome:
        self.calibration = calibration
        self.asked.append((run.key, run.attempt))
        trace.write_table(
            folder, "page", [{"page": run.page_name, "navigation_start": 0, "load_event": 10**9}]
        )
        time.sleep(self.seconds)
        (folder / "bytes").write_bytes(b"x" * self.size)
        return self.outcome(run)

    def outcome(self, run: ResolvedRun) -> Outcome:
        return Outcome("valid", [], 1000)

    def backend(self, name: str = "testbed", browser: str = "none", many: bool = False) -> contract.Backend:
        def opened(interruptible: contract.Interruptible) -> contextlib.AbstractContextManager[Fake]:
            self.interruptible = interruptible
            return contextlib.nullcontext(self)

        return contract.Backend(name, opened, many, {"browser": browser})


class Flaky(Fake):
    """Fails the first ``failures`` attempts at each run."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def outcome(self, run: ResolvedRun) -> Outcome:
        if run.attempt <= self.failures:
            raise RunFailed("the browser crashed")
        return super().outcome(run)


def carry_out(folder: Path, results: Path, fake: Fake, text: str = EVALUATION) -> contract.Tally:
    """One command: plans and carries out."""
    return pool.carry_out(planned(folder, text), results, [fake.backend()], Lines())


def command(
    folder: Path, results: Path, seconds: float, size: int, kill_at: str | None, limit: int | None
) -> None:
    """Body of a process: exits with the code that the command line would give.

    ``kill_at`` names ``module:function:before|after``: there the process kills itself with SIGKILL.
    ``limit`` is the largest file in bytes that it may write.
    """
    if kill_at:
        _arm(*kill_at.split(":"))
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        carry_out(folder, results, Fake(seconds, size))
    except WirepaintError as error:
        (folder / "error").write_text(str(error))
        os._exit(error.exit_code)
    os._exit(0)


def _arm(owner: str, name: str, when: str) -> None:
    """Replaces a function so that its third call (its first, if there is but one) kills the process."""
    from wirepaint.results import durable, journal, manifest, store

    owners = {"durable": durable, "manifest": manifest, "Journal": journal.Journal, "Path": store.Path}
    original = getattr(owners[owner], name)
    deadly = 3 if name in ("begin", "done", "rename", "sync_tree") else 1
    calls = 0

    def deadly_call(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == deadly and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments)
        if calls == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owners[owner], name, deadly_call)


def assert_complete(results: Path) -> None:
    """Each run of the plan is done once, with a folder of its own and nothing beside."""
    runs = Results.open(results).runs()
    assert runs.height == runs["run_key"].n_unique() == KEYS
    assert runs["state"].unique().to_list() == ["done"]
    folders = sorted(entry.name for entry in (results / "runs").iterdir())
    assert folders == sorted(runs["run_key"].to_list())
    for key in folders:
        assert Results.open(results).trace(key, "page").height == 1


def identities(results: Path) -> dict[str, int]:
    """Inode of each finished run's folder: a run that were done again would have another."""
    folder = results / "runs"
    if not folder.is_dir():
        return {}
    return {entry.name: entry.stat().st_ino for entry in folder.iterdir() if not entry.name.startswith(".")}
