"""Simulated runs on the workers of a Dask scheduler.

Dask hands the batches of a lost worker to others. A batch that killed
``distributed.scheduler.allowed-failures`` workers and one more comes back. Batches that only waited at those
workers come back, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirepaint.cluster import batch
from wirepaint.cluster.address import Tls, needs_dask, resolve, security
from wirepaint.cluster.batches import Batches
from wirepaint.cluster.connection import Connection, Offers, Workers, offer
from wirepaint.errors import RunFailed
from wirepaint.printing import say
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
    batch_s = 5.0
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
        for digest in needed - self._shared.keys():
            content = self.packer.shared.pop(digest)
            self._shared[digest] = self.connection.share(digest, content, resource=offer("simulator"))
        shared = {digest: self._shared[digest] for digest in needed}
        return self.connection.submit("batch", batch.carry_out, packed, shared, resource=offer("simulator"))

    def _next(self) -> tuple[Future, batch.Returned | RunFailed] | None:
        ended = self.connection.next(self.kind, self._look)
        if ended is None or ended.future not in self._sent:
            return None
        return ended.future, self.connection.result(ended)

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
