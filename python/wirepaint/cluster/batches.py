"""Simulated runs in batches, for workers on this machine or elsewhere.

A batch is sized by the time that runs took so far, so that what it costs to hand it over is small beside it.
Each worker has one under way, one waiting. A batch that killed its worker comes back and is split. So a run
fails only if it kills workers in the end, when nothing else is under way.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from wirepaint.cluster import batch
from wirepaint.errors import RunFailed, WorkerKilled
from wirepaint.evaluation import ResolvedRun
from wirepaint.runners.contract import Job

Name = TypeVar("Name", bound=Hashable)
_FIRST_RUNS, _MOST_RUNS = 4, 10_000
_PIECES = 16
"""Pieces of a batch that killed its workers."""
_WAITS = 2
"""Batches per worker: one under way, one waiting."""


class Timed:
    """The time that workers took for the runs that came back."""

    _seconds, _runs = 0.0, 0

    @property
    def seconds_of_run(self) -> float | None:
        """How long one of them took for a run so far; None before the first."""
        return self._seconds / self._runs if self._runs else None


@dataclass
class _Sent:
    """A batch under way; ``alone`` if there is no other."""

    jobs: list[Job]
    alone: bool


class Batches(Timed, ABC, Generic[Name]):
    """Makes batches of runs, and gives the ends of the runs as their batches come back.

    A ``Name`` is what a batch under way is known by.
    """

    batch_s: float
    """Seconds of work in a batch."""

    def __init__(self, packer: batch.Packer) -> None:
        self.packer = packer
        self._sent: dict[Name, _Sent] = {}
        self._suspects: deque[Job] = deque()
        """Runs that may have killed workers."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many there are now."""

    @abstractmethod
    def _submit(self, packed: bytes, needed: set[str]) -> Name:
        """Hands a batch over, with what ``packer.shared`` has under the SHA-256 in ``needed``."""

    @abstractmethod
    def _next(self) -> tuple[Name, batch.Returned | RunFailed] | None:
        """Waits for a batch to end: its name, and what came back or why nothing did.

        None if none ended for a while. Raises ``Refused`` for what is no run's fault.
        """

    @abstractmethod
    def _give_up(self) -> None:
        """Ends the batches that are under way."""

    def carry_out(self, jobs: Iterator[Job]) -> Generator[tuple[ResolvedRun, batch.End], None, None]:
        """Gives the ends of runs as their batches come back."""
        failed: list[tuple[ResolvedRun, batch.End]] = []
        left = self._readable(jobs, failed)
        try:
            while True:
                while len(self._sent) < _WAITS * max(self.workers, 1):
                    if not (some := list(itertools.islice(left, self._size()))):
                        break
                    self._send(some)
                yield from failed
                failed.clear()
                if not self._sent:
                    if not self._suspects:
                        return
                    self._send([self._suspects.popleft()], alone=True)
                ended = self._next()
                if ended is not None and (sent := self._sent.pop(ended[0], None)) is not None:
                    yield from self._ends(sent, ended[1])
        finally:
            if self._sent:
                self._give_up()
            self._sent.clear()
            self._suspects.clear()

    def _readable(self, jobs: Iterator[Job], failed: list[tuple[ResolvedRun, batch.End]]) -> Iterator[Job]:
        """The jobs whose pages can be read; the others go to ``failed``."""
        for job in jobs:
            try:
                self.packer.graphs(job.run)
            except RunFailed as failure:
                failed.append((job.run, failure))
                continue
            yield job

    def _size(self) -> int:
        """Runs of the next batch."""
        if self.seconds_of_run is None:
            return _FIRST_RUNS
        return max(1, min(_MOST_RUNS, round(self.batch_s / self.seconds_of_run)))

    def _send(self, jobs: list[Job], *, alone: bool = False) -> None:
        packed, needed = self.packer.pack([job.run for job in jobs], traces=any(job.whole for job in jobs))
        self._sent[self._submit(packed, needed)] = _Sent(jobs, alone)

    def _ends(self, sent: _Sent, end: batch.Returned | RunFailed) -> Iterator[tuple[ResolvedRun, batch.End]]:
        if isinstance(end, batch.Returned):
            self._seconds += end.seconds
            self._runs += len(sent.jobs)
            yield from batch.ends(end, sent.jobs)
        elif len(sent.jobs) > 1:
            length = -(-len(sent.jobs) // _PIECES)
            for first in range(0, len(sent.jobs), length):
                self._send(sent.jobs[first : first + length])
        elif isinstance(end, WorkerKilled) and not sent.alone:
            self._suspects += sent.jobs
        else:
            yield sent.jobs[0].run, end
