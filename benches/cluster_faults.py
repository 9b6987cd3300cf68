"""Sweeps on Dask whose parts are killed in their middle: what is lost, what runs twice, what is left?

    sudo .venv/bin/python benches/cluster_faults.py [KIND ...] [--kills N] [--runs N] [--seed N]

One sweep of simulated loads for each kind. Each kill (signal 9) comes once another batch is durable, and a
random moment after that.

- `worker`: a process that carries out batches, or the command `wirepaint worker`, which is started again.
- `client`: the command `wirepaint run`, which is started again.
- `scheduler`: Dask's. Scheduler and workers are started again, and the same command resumes.
- `disk`: the results are on a small tmpfs, which something else fills up. `run` must end with an error that
  says so. Then the tmpfs grows, and the same command resumes. Needs root.

In the end each run must be there once, `wirepaint verify` must pass, and the tables of runs and metrics must
equal those of the same sweep on this machine without Dask or faults. No process, lock, temporary file or
shared semaphore may be left. Ends with 1 otherwise.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "python/tests"))

from dask_cluster import Cluster, cluster  # noqa: E402
from sweeps import Sweep, command, written  # noqa: E402
from waiting import holds_within  # noqa: E402

LATER_S = 2.0
"""Longest time between the end of a batch and the kill."""
ENDS_S = 300
SMALL_MIB = 32
MARK = "WIREPAINT_BENCH_TRIAL"
COUNTING = """\
import os

from wirepaint.cluster import batch

def counting(job):
    def counted(*given, **named):
        os.write(begun, b".")
        return job(*given, **named)
    return counted

if not hasattr(batch, "begun"):  # Dask may execute this twice
    begun = batch.begun = os.open(os.environ["BEGUN"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    batch.Job = counting(batch.Job)
"""
"""Dask executes it in each process that carries out batches, to count the runs that are begun there."""


class Wrong(Exception):
    """A sweep did not do what it must."""


@dataclass
class Trial:
    """A sweep on a scheduler, and what its processes use; ``kills`` counts by what was killed."""

    dask: Cluster
    sweep: Sweep
    folder: Path
    mark: str
    drawn: random.Random
    number: int
    kills: Counter[str] = field(default_factory=Counter)
    seen: set[Path] = field(default_factory=set)
    """What its processes had open in shared memory."""

    def start(self) -> subprocess.Popen[bytes]:
        return self.sweep.start(self.dask.address)

    def wait_for_the_moment(self, run: subprocess.Popen[bytes], before: int) -> None:
        """Returns some time after more than ``before`` runs are done; raises Wrong if the sweep has ended."""
        self.sweep.goes_on(run, before)
        time.sleep(self.drawn.uniform(0, LATER_S))
        self.look()
        if run.poll() is not None:
            raise Wrong(
                f"the sweep ended with {run.returncode} before kill {self.kills.total() + 1}; if it was too "
                f"short, take more --runs\n{self.sweep.said()[-2000:]}"
            )

    def kill(self, pid: int, what: str) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.kills[what] += 1

    def look(self) -> None:
        for pid in marked(self.mark):
            with suppress(OSError):
                lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
                paths = [line[line.index("/") :] for line in lines if "/dev/shm/" in line]
                paths += [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
                self.seen |= {
                    Path(path.removesuffix(" (deleted)")) for path in paths if path.startswith("/dev/shm/")
                }

    def left(self) -> list[str]:
        """What is left after its processes were asked to end."""
        self.look()
        for process in self.dask.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.dask.processes:
            process.wait(60)
        found = [] if holds_within(20, lambda: not list(marked(self.mark))) else ["processes"]
        found += [str(path) for path in self.seen if path.exists()]
        # Dask's scheduler leaves a folder with locks.
        found += [str(path) for path in (self.folder / "tmp").iterdir() if path.name != "dask-scratch-space"]
        with (self.sweep.results / ".lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append("the lock of the results")
        return found


def kill_workers(trial: Trial) -> subprocess.Popen[bytes]:
    commands = {process.pid: process for process in (trial.dask.start_worker(1), trial.dask.start_worker(1))}
    run, before = trial.start(), 0
    for _ in range(trial.number):
        trial.wait_for_the_moment(run, before)
        before = trial.sweep.done()
        what = trial.drawn.choice(["process", "command"])
        pid = trial.drawn.choice(trial.dask.workers() if what == "process" else sorted(commands))
        trial.kill(pid, what)
        if what == "command":
            commands.pop(pid).wait()
            started = trial.dask.start_worker(1)
            commands[started.pid] = started
        elif not holds_within(60, lambda: len(trial.dask.workers()) == 2):
            raise Wrong("no new process took the place of a killed one")
    return run


def kill_clients(trial: Trial) -> subprocess.Popen[bytes]:
    trial.dask.start_worker()
    for _ in range(trial.number):
        before, run = trial.sweep.done(), trial.start()
        trial.wait_for_the_moment(run, before)
        trial.kill(run.pid, "command")
        run.wait()
    return trial.start()


def kill_schedulers(trial: Trial) -> subprocess.Popen[bytes]:
    for _ in range(trial.number):
        trial.dask.start_worker()
        before, run = trial.sweep.done(), trial.start()
        trial.wait_for_the_moment(run, before)
        trial.kill(trial.dask.scheduler.pid, "scheduler")
        ended(run, trial, 3, r"the scheduler is lost\. The same command again resumes")
        for process in trial.dask.processes:
            process.wait(60)
        trial.dask.scheduler = trial.dask.start_scheduler()
    trial.dask.start_worker()
    return trial.start()


def fill_disks(trial: Trial) -> subprocess.Popen[bytes]:
    trial.dask.start_worker()
    small = trial.sweep.results.parent
    for number in range(trial.number):
        before, run = trial.sweep.done(), trial.start()
        trial.wait_for_the_moment(run, before)
        with suppress(OSError), (small / f"full-{number}").open("wb", 0) as file:
            while True:
                file.write(bytes(4096))
        ended(run, trial, 3, "No space left on device|database or disk is full")
        trial.kills["full"] += 1
        size = SMALL_MIB * (number + 2)
        subprocess.run(["mount", "-o", f"remount,size={size}m", small], check=True)
    return trial.start()


def ended(run: subprocess.Popen[bytes], trial: Trial, code: int, saying: str) -> None:
    """Raises Wrong unless a command ends so, ``saying`` a regular expression."""
    found = run.wait(ENDS_S)
    if found != code or not re.search(saying, trial.sweep.said()):
        raise Wrong(f"run ended with {found} and said: {trial.sweep.said()[-2000:]}")


def marked(mark: str) -> Iterator[int]:
    """The processes of a trial."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                yield int(entry.name)


@contextmanager
def results_in(folder: Path, *, small: bool) -> Iterator[None]:
    """The folder for results, where asked as a small tmpfs."""
    folder.mkdir()
    if small:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_MIB}m", "none", folder], check=True)
    try:
        yield
    finally:
        if small:
            subprocess.run(["umount", "-l", folder], check=True)


def tried(
    kind: str, folder: Path, runs: int, number: int, seed: int, expected: Path
) -> tuple[str, list[str]]:
    """A sweep of a kind: what is to be told, and what is wrong."""
    kinds: Mapping[str, Callable[[Trial], subprocess.Popen[bytes]]] = {
        "worker": kill_workers,
        "client": kill_clients,
        "scheduler": kill_schedulers,
        "disk": fill_disks,
    }
    (folder / "tmp").mkdir(parents=True)
    (folder / "counting.py").write_text(COUNTING)
    begun, mark = folder / "begun", uuid4().hex
    env = {
        MARK: mark,
        "BEGUN": str(begun),
        "TMPDIR": str(folder / "tmp"),
        "DASK_DISTRIBUTED__WORKER__PRELOAD": f'["{folder / "counting.py"}"]',
    }
    with results_in(folder / "within", small=kind == "disk"), cluster(folder, env=env) as dask:
        sweep = Sweep(folder, runs, env, within="within")
        trial = Trial(dask, sweep, folder, mark, random.Random(f"{seed} {kind}"), number)
        began = time.monotonic()
        try:
            ended(kinds[kind](trial), trial, 0, "")
            seconds = time.monotonic() - began
            wrong = sweep.wrong(expected) + [f"left: {what}" for what in trial.left()]
        except Wrong as error:
            seconds, wrong = time.monotonic() - began, [str(error)]
    again = begun.stat().st_size - sweep.runs
    killed = ", ".join(f"{what} {count}" for what, count in sorted(trial.kills.items()))
    told = f"{kind}: {trial.kills.total()} times ({killed}), {seconds:.0f} s"
    return f"{told}; {again} of {sweep.runs} runs begun again", wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = ["worker", "client", "scheduler", "disk"]
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"by default {', '.join(kinds)}")
    parser.add_argument("--kills", type=int, default=5, help="for each kind")
    parser.add_argument("--runs", type=int, default=30_000, help="simulated loads of a sweep")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(kinds):
        parser.error(f"{unknown.pop()!r} is none of {', '.join(kinds)}")
    worst = 0
    with tempfile.TemporaryDirectory(prefix="wirepaint-faults-") as name:
        place = Path(name)
        runs = written(place / "e.toml", options.runs)
        began = time.monotonic()
        subprocess.run(command(place / "e.toml", place / "r"), check=True, capture_output=True)
        print(f"{runs} loads here: {time.monotonic() - began:.0f} s; seed {options.seed}", flush=True)
        for kind in options.kinds or kinds:
            if kind == "disk" and os.geteuid() != 0:
                print("disk: not tried, it needs root")
                continue
            told, wrong = tried(kind, place / kind, runs, options.kills, options.seed, place / "r")
            print(f"{told}: " + ("; ".join(wrong) or "each there once and equal, nothing left"), flush=True)
            worst |= bool(wrong)
            shutil.rmtree(place / kind)
    return worst


if __name__ == "__main__":
    sys.exit(main())
