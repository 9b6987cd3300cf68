"""Simulated runs on the workers of a Dask scheduler.

Dask hands the batches of a lost worker to others. A batch that killed
``distributed.scheduler.allowed-failures`` workers and one more comes back. Batches that only waited at those
workers come back, too.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirepaint.cluster import batch
from wirepaint.cluster.address import Tls, needs_dask, resolve, security
from wirepaint.cluster.batches import Batches
from wirepaint.cluster.connection import OFFER, Connection, Offers, Workers, offer
from wirepaint.errors import Refused, RunFailed, WorkerKilled
from wirepaint.printing import counted, say
from wirepaint.runners import backends
from wirepaint.runners.contract import Backend, Interruptible

if TYPE_CHECKING:
    from distributed import Future


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

    return replace(backends.simulator(), open=opened, remote=True, thin=True)


class Session(Workers, Batches["Future"]):
    """Workers that carry out batches of simulated runs."""

    kind = "simulator"
    batch_s = 3.0
    """Dask's scheduler takes about a millisecond for each."""

    def __init__(self, connection: Connection, packer: batch.Packer) -> None:
        Workers.__init__(self, connection)
        Batches.__init__(self, packer)
        self._workers = 0
        self._shared: dict[str, Future] = {}

    @property
    def workers(self) -> int:
        return self._workers

    def __exit__(self, *error: object) -> None:
        self._shared.clear()
        super().__exit__(*error)

    def _submit(self, packed: bytes, needed: set[str]) -> Future:
        self.connection.check()
        for digest in needed - self._shared.keys():
            # A task and not scattered data: if the worker that has it is lost, Dask makes it again.
            content = self.packer.shared.pop(digest)
            name = f"{OFFER}-shared-{digest}"
            self._shared[digest] = self.connection.client.submit(
                bytes, content, key=name, resources={offer("simulator"): 0}
            )
        shared = {digest: self._shared[digest] for digest in needed}
        return self.connection.submit("batch", batch.carry_out, packed, shared, resource=offer("simulator"))

    def _next(self) -> tuple[Future, batch.Returned | RunFailed] | None:
        future = self.connection.next(self._look)
        if future is None or future not in self._sent:
            return None
        if future.status != "finished":
            return future, failure(future, self.connection)
        try:
            return future, future.result()
        except (OSError, TimeoutError, CancelledError):
            raise self.connection.lost() from None

    def _give_up(self) -> None:
        for future in self._sent:
            future.cancel()

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
