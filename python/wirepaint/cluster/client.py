"""The session of ``run``: makes batches of runs, sends them to Dask, and gives the ends of the runs.

Batches are sized by the time that runs took so far, so that each message to the scheduler stands for some
seconds of work. Each worker has one batch under way, one waiting. Dask hands the batches of a lost worker to
others. A batch that killed ``distributed.scheduler.allowed-failures`` workers and one more comes back, and is
split: only a run that kills them when it is alone fails.
"""

from __future__ import annotations

import itertools
import queue
import time
from asyncio import CancelledError
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from wirepaint.cluster import batch
from wirepaint.cluster.address import Tls, needs_dask, resolve, security
from wirepaint.errors import Incomplete, Refused, RunFailed, UsageError
from wirepaint.evaluation import ResolvedRun
from wirepaint.printing import counted, say
from wirepaint.runners.contract import Backend, Interruptible, Job

if TYPE_CHECKING:
    from distributed import Client, Future

BATCH_S = 3.0
"""Seconds of work in a batch: Dask's scheduler takes about a millisecond for each."""
_FIRST_RUNS, _MOST_RUNS = 4, 10_000
_PIECES = 16
"""Pieces of a batch that killed its workers."""
_WAITS = 2
"""Batches per worker: one under way, one waiting."""
_LOOK_S = 2.0
"""How often to look for new and lost workers."""
_CONNECT_S = 10.0
OFFER = "wirepaint"
"""Begin of the names under which workers offer themselves to Dask (its resources)."""


def offer(kind: str) -> str:
    """Name of the resource of a worker that carries out runs of a back end."""
    return f"{OFFER}-{kind}-{batch.fingerprint()}"


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
        return Session(address, secured, batch.Packer(metric_files), interruptible, quiet)

    return Backend(
        "simulator", opened, many=True, versions={"data plane": batch.versions()["data plane"]}, remote=True
    )


@dataclass
class _Sent:
    """A batch that Dask has."""

    jobs: list[Job]
    future: Future


@dataclass
class Session:
    """A client of a scheduler (:class:`wirepaint.runners.contract.Session`)."""

    address: str
    security: Any
    packer: batch.Packer
    interruptible: Interruptible
    quiet: bool = False
    calibrate = None
    workers: int = 0
    _seconds: float = 0.0
    """Of work that came back."""
    _runs: int = 0

    @property
    def team(self) -> Session:
        """Itself (:class:`wirepaint.runners.contract.Team`)."""
        return self

    @property
    def seconds_of_run(self) -> float | None:
        """How long a worker took for a run so far; None before the first."""
        return self._seconds / self._runs if self._runs else None

    def __enter__(self) -> Session:
        from distributed import Client

        try:
            self._client: Client = Client(
                self.address, security=self.security, timeout=_CONNECT_S, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            found = (str(error.__cause__ or error).splitlines() or ["no answer"])[0]
            raise UsageError(
                "--on", f"no scheduler at {self.address} ({found})", "a scheduler that runs"
            ) from None
        self._shared: dict[str, Future] = {}
        self._sent: dict[str, _Sent] = {}
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._looked = 0.0
        try:
            self._wait_for_workers()
        except BaseException:
            self._client.close(timeout=1)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._shared.clear()
        self._client.close(timeout=1)

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
                    return
                yield from self._ends(self._next())
        finally:
            for sent in self._sent.values():
                sent.future.cancel()
            self._sent.clear()

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

    def _send(self, jobs: list[Job]) -> None:
        packed, needed = self.packer.pack([job.run for job in jobs], traces=any(job.whole for job in jobs))
        for digest in needed - self._shared.keys():
            # A task and not scattered data: if the worker that has it is lost, Dask makes it again.
            content = self.packer.shared.pop(digest)
            name = f"{OFFER}-shared-{digest}"
            self._shared[digest] = self._client.submit(
                bytes, content, key=name, resources={offer("simulator"): 0}
            )
        if self._client.status not in ("running", "connecting"):
            raise self._lost()
        future = self._client.submit(
            batch.carry_out,
            packed,
            {digest: self._shared[digest] for digest in needed},
            key=f"{OFFER}-batch-{uuid4().hex}",
            pure=False,
            resources={offer("simulator"): 1},
        )
        self._sent[str(future.key)] = _Sent(jobs, future)
        future.add_done_callback(self._ended.put)

    def _next(self) -> _Sent:
        """Waits for a batch that came back. Raises Incomplete if the scheduler is lost."""
        while True:
            with self.interruptible():
                try:
                    future = self._ended.get(timeout=_LOOK_S)
                except queue.Empty:
                    future = None
            if time.monotonic() > self._looked + _LOOK_S:
                self._look()
            if future is not None and (sent := self._sent.pop(str(future.key), None)) is not None:
                return sent

    def _ends(self, sent: _Sent) -> Iterator[tuple[ResolvedRun, batch.End]]:
        if sent.future.status == "finished":
            try:
                returned: batch.Returned = sent.future.result()
            except (OSError, TimeoutError, CancelledError):
                raise self._lost() from None
            self._seconds += returned.seconds
            self._runs += len(sent.jobs)
            yield from batch.ends(returned, sent.jobs)
            return
        if sent.future.status in ("cancelled", "lost"):
            raise self._lost()
        error = sent.future.exception()
        assert isinstance(error, BaseException)
        if isinstance(error, Refused | batch.OtherVersion):
            raise Refused(str(error))
        if len(sent.jobs) > 1:
            length = -(-len(sent.jobs) // _PIECES)
            for first in range(0, len(sent.jobs), length):
                self._send(sent.jobs[first : first + length])
            return
        yield sent.jobs[0].run, RunFailed(_cause(error))

    def _look(self) -> None:
        """Counts the workers that take batches."""
        self._looked = time.monotonic()
        if self._client.status not in ("running", "connecting"):
            raise self._lost()
        try:
            with self.interruptible():
                known = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError):
            raise self._lost() from None
        offered = [worker.get("resources", {}).get(offer("simulator"), 0) for worker in known.values()]
        before, self.workers = self.workers, round(sum(offered))
        if before and not self.workers:
            say(f"All workers are lost; the runs wait for one: wirepaint worker {self.address}")

    def _wait_for_workers(self) -> None:
        """Waits for the first worker; raises UsageError if there are workers of other versions."""
        said = False
        while True:
            self._look()
            self._refuse_others()
            if self.workers:
                return
            if not said and not self.quiet:
                said = True
                say(f"No worker yet. On each machine: wirepaint worker {self.address}")
            with self.interruptible():
                time.sleep(_LOOK_S / 4)

    def _refuse_others(self) -> None:
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        others = [
            address
            for address, worker in known.items()
            if any(name.startswith(f"{OFFER}-simulator-") for name in worker.get("resources", {}))
            and offer("simulator") not in worker["resources"]
        ]
        if not others:
            return
        answers: Any = self._client.run(batch.versions, workers=others[:1], on_error="return")
        found = answers[others[0]]
        mine = batch.versions()
        theirs = found if isinstance(found, dict) else {}
        differ = [name for name in mine if theirs.get(name) != mine[name]] or ["wirepaint"]
        raise UsageError(
            f"the worker {others[0]}",
            ", ".join(f"{name} {theirs.get(name, 'that cannot be told')}" for name in differ),
            f"{', '.join(f'{name} {mine[name]}' for name in differ)}, as here",
        )

    def _lost(self) -> Incomplete:
        return Incomplete(f"{self.address}: the scheduler is lost. The same command again resumes.")


def _cause(error: BaseException) -> str:
    """Why a run failed on its worker."""
    if type(error).__name__ == "KilledWorker":
        allowed = getattr(error, "allowed_failures", None)
        return (
            f"it killed {counted(allowed + 1, 'worker')}" if allowed is not None else "it killed its workers"
        )
    return f"{type(error).__name__} on a worker: {error}"
