"""Simulated runs whose traces nobody keeps, in batches on the cores of this machine.

The processes do what workers of Dask do (``batch.carry_out``). Only this process writes results. If one of
the others dies, a new one takes its place.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from wirepaint import linux
from wirepaint.cluster import batch
from wirepaint.cluster.batches import Batches
from wirepaint.errors import Refused, RunFailed, WorkerKilled
from wirepaint.evaluation import ResolvedRun
from wirepaint.runners import backends, simulator
from wirepaint.runners.contract import Backend, Interruptible, Job

_STARTED = multiprocessing.get_context("spawn")
"""A copy of this process would have its locks without the threads that hold them."""
_THREADS = "POLARS_MAX_THREADS"


def backend(metric_files: Sequence[Mapping[str, Any]] = ()) -> Backend:
    """The simulator on this machine; ``metric_files`` are the evaluation's own, as a manifest keeps them."""

    def opened(interruptible: Interruptible) -> Session:
        return Session(interruptible, batch.Packer(metric_files))

    return replace(backends.simulator(), open=opened, thin=True)


class Session(Batches[int]):
    """The cores of this machine at work (:class:`wirepaint.runners.contract.Session`)."""

    calibrate = None
    team = None
    batch_s = 0.5
    """So that a sweep of some seconds has work for all cores until its end."""

    def __init__(self, interruptible: Interruptible, packer: batch.Packer) -> None:
        super().__init__(packer)
        self._interruptible = interruptible
        self._with_traces = simulator.Session(interruptible)
        self._names = itertools.count()
        self._waiting: deque[tuple[int, tuple[bytes, dict[str, bytes]]]] = deque()
        self._free: list[_Process] = []
        self._at_work: dict[Connection, tuple[_Process, int]] = {}

    @property
    def workers(self) -> int:
        return len(os.sched_getaffinity(0))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._give_up()
        for process in self._free:
            process.end()
        self._free.clear()

    def carry_out(self, jobs: Iterator[Job]) -> Generator[tuple[ResolvedRun, batch.End], None, None]:
        """Carries out runs, all with traces of their own or none."""
        first = next(jobs, None)
        if first is not None:
            jobs = itertools.chain([first], jobs)
            yield from (self._with_traces if first.whole else super()).carry_out(jobs)

    def _submit(self, packed: bytes, needed: set[str]) -> int:
        name = next(self._names)
        shared = {digest: self.packer.shared[digest] for digest in needed}
        self._waiting.append((name, (packed, shared)))
        self._hand_out()
        return name

    def _hand_out(self) -> None:
        while self._waiting and (self._free or len(self._at_work) < self.workers):
            name, work = self._waiting.popleft()
            process = self._free.pop() if self._free else _Process()
            self._at_work[process.connection] = process, name
            with suppress(OSError):  # if it has died, that is read as its answer
                process.connection.send(work)

    def _next(self) -> tuple[int, batch.Returned | RunFailed]:
        with self._interruptible():
            connection = wait(self._at_work)[0]
        assert isinstance(connection, Connection)
        process, name = self._at_work.pop(connection)
        try:
            said = connection.recv()
        except (EOFError, OSError):
            said = WorkerKilled(f"it ended the process that simulated it: {linux.ended(process.end())}")
        else:
            self._free.append(process)
        self._hand_out()
        if isinstance(said, Refused | batch.OtherVersion):
            raise Refused(str(said))
        if isinstance(said, batch.Broken):
            said = RunFailed(str(said))
        return name, said

    def _give_up(self) -> None:
        for process, _ in self._at_work.values():
            process.kill()
        self._at_work.clear()
        self._waiting.clear()


class _Process:
    """A process that carries out one batch after the other until its connection is closed."""

    def __init__(self) -> None:
        self.connection, there = multiprocessing.Pipe()
        self._process = _STARTED.Process(target=_serve, args=(there,), daemon=True)
        before = os.environ.get(_THREADS)
        os.environ[_THREADS] = "1"  # it has one core, and reads this when it is started
        # Ctrl-C is for the process that writes. This one ignores it as soon as it can.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            del os.environ[_THREADS]
            if before is not None:
                os.environ[_THREADS] = before
        there.close()

    def end(self) -> int:
        """Lets it end; the exit code."""
        self.connection.close()
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self.end()


def _serve(connection: Connection) -> None:
    linux.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # The process that asks may be gone, also in the moment in which an answer is sent to it.
    with suppress(EOFError, ConnectionError):
        while True:
            packed, shared = connection.recv()
            try:
                said: object = batch.carry_out(packed, shared)
            except (Refused, batch.OtherVersion, batch.Broken) as error:
                said = error
            connection.send(said)
