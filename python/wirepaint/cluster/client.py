"""Simulated runs on workers: makes batches of runs, sends them to Dask, and gives the ends of the runs.

Batches are sized by the time that runs took so far, so that each message to the scheduler stands for some
seconds of work. Each worker has one batch under way, one waiting. Dask hands the batches of a lost worker to
others. A batch that killed ``distributed.scheduler.allowed-failures`` workers and one more comes back, and is
split. Batches that only waited at those workers come back, too. So a run fails only if it kills workers in
the end, when nothing else is under way.
"""

from __future__ import annotations

import itertools
from asyncio import CancelledError
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wirepaint.cluster import batch
from wirepaint.cluster.address import Tls, needs_dask, resolve, security
from wirepaint.cluster.connection import OFFER, Connection, Offers, Workers, offer
from wirepaint.errors import Refused, RunFailed, WorkerKilled
from wirepaint.evaluation import ResolvedRun
from wirepaint.printing import counted, say
from wirepaint.runners.contract import Backend, Interruptible, Job

if TYPE_CHECKING:
    from distributed import Future

BATCH_S = 3.0
"""Seconds of work in a batch: Dask's scheduler takes about a millisecond for each."""
_FIRST_RUNS, _MOST_RUNS = 4, 10_000
_PIECES = 16
"""Pieces of a batch that killed its workers."""
_WAITS = 2
"""Batches per worker: one under way, one waiting."""


def backend(
    on: str, tls: Tls, *, metric_files: Sequence[Mapping[str, Any]] = (), quiet: bool = False
) -> Backend:
    """The simulator on the workers of a scheduler; raises UsageError for an address that is none.

    ``metric_files`` are the evaluation's own files of metrics, as a manifest keeps them.
    """
    needs_dask()
    address = resolve(on, "--on")
    secured = security(address, tls, "--on")

    def opened(interruptible: Interruptible) -> Session:
        return Session(Connection(address, secured, interruptible, quiet), batch.Packer(metric_files))

    return Backend(
        "simulator", opened, many=True, versions={"data plane": batch.versions()["data plane"]}, remote=True
    )


@dataclass
class _Sent:
    """A batch that Dask has; ``alone`` if it has no other."""

    jobs: list[Job]
    future: Future
    alone: bool


class Session(Workers):
    """Workers that carry out batches of simulated runs."""

    kind = "simulator"

    def __init__(self, connection: Connection, packer: batch.Packer) -> None:
        super().__init__(connection)
        self.packer = packer
        self._workers = 0
        self._shared: dict[str, Future] = {}
        self._sent: dict[str, _Sent] = {}
        self._suspects: deque[Job] = deque()
        """Runs that may have killed workers."""

    @property
    def workers(self) -> int:
        return self._workers

    def __exit__(self, *error: object) -> None:
        self._shared.clear()
        super().__exit__(*error)

    def carry_out(self, jobs: Iterator[Job]) -> Generator[tuple[ResolvedRun, batch.End], None, None]:
        """Gives the ends of runs as their batches come back."""
        failed: list[tuple[ResolvedRun, batch.End]] = []
        left = self._readable(jobs, failed)
        try:
            while True:
                while len(self._sent) < _WAITS * max(self._workers, 1):
                    if not (some := list(itertools.islice(left, self._size()))):
                        break
                    self._send(some)
                yield from failed
                failed.clear()
                if not self._sent:
                    if not self._suspects:
                        return
                    self._send([self._suspects.popleft()], alone=True)
                future = self.connection.next(self._look)
                if future is not None and (sent := self._sent.pop(str(future.key), None)) is not None:
                    yield from self._ends(sent)
        finally:
            for sent in self._sent.values():
                sent.future.cancel()
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
        return max(1, min(_MOST_RUNS, round(BATCH_S / self.seconds_of_run)))

    def _send(self, jobs: list[Job], *, alone: bool = False) -> None:
        packed, needed = self.packer.pack([job.run for job in jobs], traces=any(job.whole for job in jobs))
        self.connection.check()
        for digest in needed - self._shared.keys():
            # A task and not scattered data: if the worker that has it is lost, Dask makes it again.
            content = self.packer.shared.pop(digest)
            name = f"{OFFER}-shared-{digest}"
            self._shared[digest] = self.connection.client.submit(
                bytes, content, key=name, resources={offer("simulator"): 0}
            )
        shared = {digest: self._shared[digest] for digest in needed}
        future = self.connection.submit("batch", batch.carry_out, packed, shared, resource=offer("simulator"))
        self._sent[str(future.key)] = _Sent(jobs, future, alone)

    def _ends(self, sent: _Sent) -> Iterator[tuple[ResolvedRun, batch.End]]:
        if sent.future.status == "finished":
            try:
                returned: batch.Returned = sent.future.result()
            except (OSError, TimeoutError, CancelledError):
                raise self.connection.lost() from None
            self._seconds += returned.seconds
            self._runs += len(sent.jobs)
            yield from batch.ends(returned, sent.jobs)
            return
        error = failure(sent.future, self.connection)
        if len(sent.jobs) > 1:
            length = -(-len(sent.jobs) // _PIECES)
            for first in range(0, len(sent.jobs), length):
                self._send(sent.jobs[first : first + length])
        elif isinstance(error, WorkerKilled) and not sent.alone:
            self._suspects += sent.jobs
        else:
            yield sent.jobs[0].run, error

    def _found(self, offers: Offers) -> bool:
        self._workers = round(sum(names.get(offer(self.kind), 0) for names in offers.values()))
        return self._workers > 0

    def _look(self, offers: Offers) -> None:
        before = self._workers
        if not self._found(offers) and before:
            say(f"All workers are lost; the runs wait for one: wirepaint worker {self.connection.address}")


def failure(future: Future, connection: Connection) -> RunFailed:
    """Why a task has no result.

    Raises ``Refused`` for what is no run's fault, ``Incomplete`` without a scheduler.
    """
    if future.status in ("cancelled", "lost"):
        raise connection.lost()
    error = future.exception()
    assert isinstance(error, BaseException)
    if isinstance(error, Refused | batch.OtherVersion):
        raise Refused(str(error))
    if isinstance(error, batch.Broken):
        return RunFailed(str(error))
    if type(error).__name__ != "KilledWorker":
        return RunFailed(f"{type(error).__name__} on a worker: {error}")
    allowed = getattr(error, "allowed_failures", None)
    killed = "its workers" if allowed is None else counted(allowed + 1, "worker")
    return WorkerKilled(f"it killed {killed}")
