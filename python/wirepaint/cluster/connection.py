"""A client of a Dask scheduler, and the workers there that offer themselves for our runs."""

from __future__ import annotations

import asyncio
import logging
import operator
import pickle
import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import uuid4

from wirepaint.cluster import batch
from wirepaint.cluster.batches import Timed
from wirepaint.errors import Incomplete, Refused, RunFailed, UsageError, WorkerKilled
from wirepaint.printing import counted, say
from wirepaint.runners.contract import Interruptible

if TYPE_CHECKING:
    from concurrent import futures

    from distributed import Client, Future

LOOK_S = 2.0
"""How often to look for new and lost workers."""
_CONNECT_S = 10.0
OFFER = "wirepaint"
"""Begin of the names under which workers offer themselves to Dask (its resources)."""
Offers = Mapping[str, Mapping[str, float]]
"""The names under which workers offer themselves, by address."""


def offer(kind: str) -> str:
    """Name of the resource of a worker of this version that carries out runs of a back end."""
    return f"{OFFER}-{kind}-{batch.fingerprint()}"


class Ended(NamedTuple):
    """A task that has ended, and what it returned or raised, which is here."""

    future: Future
    outcome: futures.Future[Any]


@dataclass
class Connection:
    """A client. A context manager: raises UsageError where no scheduler answers."""

    address: str
    security: Any
    interruptible: Interruptible
    quiet: bool = False

    def __enter__(self) -> Connection:
        from distributed import Client

        # We say ourselves that a scheduler is lost; Dask adds pages of stack to that.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        try:
            self.client: Client = Client(
                self.address, security=self.security, timeout=_CONNECT_S, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            found = (str(error.__cause__ or error).splitlines() or ["no answer"])[0]
            raise UsageError(
                "--on", f"no scheduler at {self.address} ({found})", "a scheduler that runs"
            ) from None
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._looked = 0.0
        self._others: set[str] = set()
        self._functions: dict[tuple[Callable[..., Any], str], Future] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._functions.clear()
        self.client.close(timeout=1)

    def submit(self, what: str, function: Callable[..., Any], *given: Any, resource: str) -> Future:
        """Has a worker with the resource call the function; :meth:`next` gives the future and its outcome.

        The scheduler reads what is given and has no wirepaint, so it is of Python's own types.
        """
        key = f"{OFFER}-{what}-{uuid4().hex}"
        with self._asking():
            named = self._named(function, resource)
            future = self.client.submit(
                operator.call, named, *given, key=key, pure=False, resources={resource: 1}
            )
        future.add_done_callback(self._fetch)
        return future

    def _fetch(self, future: Future) -> None:
        """Fetches what a task returned. If its worker was lost meanwhile, another does the task first."""
        if future.cancelled():
            return
        gathered: Any = self.client.gather(future, asynchronous=True)
        loop: Any = self.client.loop
        fetched = asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop)
        fetched.add_done_callback(lambda outcome: self._ended.put(Ended(future, outcome)))

    def share(self, digest: str, content: bytes, *, resource: str) -> Future:
        """Content that workers with the resource get with the tasks that are given this future."""
        # A task and not scattered data: if the worker that has it is lost, Dask makes it again.
        with self._asking():
            name = f"{OFFER}-shared-{digest}"
            return self.client.submit(bytes, content, key=name, resources={resource: 0})

    def _named(self, function: Callable[..., Any], resource: str) -> Future:
        """The function, which a worker looks up by its name and keeps."""
        if (function, resource) not in self._functions:
            key = f"{OFFER}-function-{uuid4().hex}"
            self._functions[function, resource] = self.client.submit(
                pickle.loads, pickle.dumps(function), key=key, resources={resource: 0}
            )
        return self._functions[function, resource]

    def next(self, kind: str, look: Callable[[Offers], None]) -> Ended | None:
        """Waits some seconds for a task to end and its outcome to come; None if none did.

        ``look`` gets the workers now and then. Those of the kind that came with other versions are told once.
        Raises Incomplete if the scheduler is lost.
        """
        with self.interruptible():
            try:
                ended = self._ended.get(timeout=LOOK_S)
            except queue.Empty:
                ended = None
        if time.monotonic() > self._looked + LOOK_S:
            offers = self.offers()
            look(offers)
            for address in _of_other_versions(kind, offers):
                if address not in self._others:
                    self._others.add(address)
                    say(f"{self._differs(address)}. It gets no run.")
        return ended

    def offers(self) -> Offers:
        """What the workers offer; raises Incomplete if the scheduler is lost."""
        self._looked = time.monotonic()
        with self._asking(), self.interruptible():
            # Dask knows no workers, not even none, once it has lost the scheduler.
            known = self.client.scheduler_info(n_workers=-1).get("workers", {})
        self.check()
        return {address: worker.get("resources", {}) for address, worker in known.items()}

    def wait_for_workers(self, kind: str, found: Callable[[Offers], bool]) -> None:
        """Waits until there is a worker; raises UsageError if workers of the kind have other versions."""
        said = False
        while True:
            offers = self.offers()
            if others := _of_other_versions(kind, offers):
                raise self._differs(others[0])
            if found(offers):
                return
            if not said and not self.quiet:
                said = True
                say(f"No worker for the {kind} yet. On each machine: wirepaint worker {self.address}")
            with self.interruptible():
                time.sleep(LOOK_S / 4)

    def _differs(self, address: str) -> UsageError:
        return differ(address, self.ask(address, batch.versions), batch.versions(), "as here")

    def ask(self, address: str, function: Callable[[], dict[str, str]]) -> dict[str, str]:
        """The answer of a worker to a question; empty if it has none."""
        with self._asking():
            answers: Any = self.client.run(function, workers=[address], on_error="return")
        found = answers.get(address) if isinstance(answers, dict) else None
        return found if isinstance(found, dict) else {}

    def result(self, ended: Ended) -> Any:
        """What the function returned, or why it failed: a RunFailed.

        Raises ``Refused`` for what is no run's fault, ``Incomplete`` if the scheduler was lost meanwhile.
        """
        with self._asking():
            try:
                return ended.outcome.result()
            except CancelledError:
                raise
            except Exception as error:
                if ended.future.status != "error":
                    raise
                return _failure(error)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Raises Incomplete for the errors of a client that has lost its scheduler."""
        from distributed.client import ClosedClientError

        self.check()
        try:
            yield
        except (ClosedClientError, CancelledError, OSError, TimeoutError):
            raise self.lost() from None

    def check(self) -> None:
        """Raises Incomplete if the scheduler is lost."""
        if self.client.status not in ("running", "connecting"):
            raise self.lost()

    def lost(self) -> Incomplete:
        return Incomplete(f"{self.address}: the scheduler is lost. The same command again resumes.")


class Workers(Timed, ABC):
    """A session on the workers of a scheduler (:class:`wirepaint.runners.contract.Session`)."""

    kind: str
    """The back end whose runs they carry out."""
    calibrate = None

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def team(self) -> Workers:
        """Itself (:class:`wirepaint.runners.contract.Team`)."""
        return self

    @property
    @abstractmethod
    def workers(self) -> int: ...

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.connection)
            self.connection.wait_for_workers(self.kind, self._found)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @abstractmethod
    def _found(self, offers: Offers) -> bool:
        """Takes the first workers; False if there is none."""


def _of_other_versions(kind: str, offers: Offers) -> list[str]:
    """The workers that offer themselves for runs of the kind, none of them in this version."""
    found: list[str] = []
    for address, names in offers.items():
        of_kind = [name for name in names if name.startswith(f"{OFFER}-{kind}-")]
        if of_kind and not any(name.startswith(offer(kind)) for name in of_kind):
            found.append(address)
    return found


def _failure(error: Exception) -> RunFailed:
    """What a run failed of as its worker says; raises ``Refused`` for what is no run's fault."""
    if isinstance(error, Refused | batch.OtherVersion):
        raise Refused(str(error))
    if isinstance(error, batch.Broken):
        return RunFailed(str(error))
    if type(error).__name__ != "KilledWorker":
        return RunFailed(f"{type(error).__name__} on a worker: {error}")
    allowed = getattr(error, "allowed_failures", None)
    killed = "its workers" if allowed is None else counted(allowed + 1, "worker")
    return WorkerKilled(f"it killed {killed}")


def differ(whose: str, theirs: Mapping[str, str], wanted: Mapping[str, str], where: str) -> UsageError:
    """The error for a worker with other versions than those ``wanted``, which are so ``where``."""
    names = [name for name in wanted if theirs.get(name) != wanted[name]] or list(wanted)[:1]
    return UsageError(
        f"the worker {whose}",
        ", ".join(f"{name} {theirs.get(name, 'that cannot be told')}" for name in names),
        f"{', '.join(f'{name} {wanted[name]}' for name in names)}, {where}",
    )
