"""Testbed runs on hosts elsewhere: each has one run at a time, and measures its own networks.

All runs of a page at a visit go to one host (``contract.block``): they are compared with each other, and two
hosts are never quite alike. A host joins when its worker does. If one is lost, its runs go to the others.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from wirepaint.cluster import batch, testbed
from wirepaint.cluster.address import Tls, needs_dask, resolve, security
from wirepaint.cluster.connection import Connection, Offers, Workers, differ, offer
from wirepaint.errors import Incomplete, MachineLacks, PageFailed, RunFailed, UsageError
from wirepaint.evaluation import ResolvedRun
from wirepaint.printing import say
from wirepaint.results.outcome import Outcome
from wirepaint.runners.contract import Backend, Block, Interruptible, Job

if TYPE_CHECKING:
    from distributed import Future

LOST_S = 60.0
"""After so many seconds without its worker a host is lost: a new process of a worker takes some."""
End = Outcome | RunFailed


def resource(host: str, tools: str) -> str:
    """Name of the resource of a host's testbed; ``tools`` is the digest of its programs."""
    return f"{offer('testbed')}-{tools}@{host}"


def backend(on: str, tls: Tls, *, iperf3: bool = False, quiet: bool = False) -> Backend:
    """The testbeds of hosts at a scheduler; raises UsageError for an address that is none."""
    needs_dask()
    address = resolve(on, "--on")
    secured = security(address, tls, "--on")
    versions: dict[str, str] = {}

    def opened(interruptible: Interruptible) -> Session:
        return Session(Connection(address, secured, interruptible, quiet), versions, iperf3)

    return Backend("testbed", opened, versions=versions, remote=True)


@dataclass
class _Task:
    """A run that a host has; a ``copy`` of another host's run only warms it up."""

    job: Job
    future: Future
    copy: bool


@dataclass
class _Host:
    """A host, and the runs that wait for it."""

    name: str
    resource: str
    seen: float
    """When its worker was last there, monotonic."""
    waiting: deque[Job] = field(default_factory=deque)
    task: _Task | None = None
    warm: set[str] = field(default_factory=set)
    """The warm-ups that it has, by key."""


class Session(Workers):
    """Hosts at work."""

    kind = "testbed"

    def __init__(self, connection: Connection, versions: dict[str, str], iperf3: bool) -> None:
        """``versions`` gets those of the hosts' programs; ``iperf3``: the runs need it."""
        super().__init__(connection)
        self._versions, self._iperf3 = versions, iperf3
        self._command = uuid4().hex
        self._hosts: dict[str, _Host] = {}
        self._others: set[str] = set()
        """Hosts with other programs, which get no run."""
        self._blocks: dict[Block, str] = {}
        self._again: deque[Job] = deque()
        """Runs of lost hosts."""
        self._warmups: list[Job] = []

    @property
    def workers(self) -> int:
        return len(self._hosts)

    def _found(self, offers: Offers) -> bool:
        """Takes the first hosts; raises UsageError unless all of them have the same programs."""
        there = list(_testbeds(offers))
        if not there:
            return False
        first, wanted = there[0], self.connection.ask(there[0].address, testbed.tools)
        if not wanted:
            raise Incomplete(f"{first.host} does not say what its programs are: its worker may be lost")
        for other in there[1:]:
            if other.tools != first.tools:
                theirs = self.connection.ask(other.address, testbed.tools)
                raise differ(other.host, theirs, wanted, f"as on {first.host}")
        found = wanted.pop("iperf3", None)
        if self._iperf3 and found is None:
            raise MachineLacks(f"{first.host} has no iperf3", "Install it there: apt install iperf3.")
        self._versions |= wanted | ({"iperf3": found} if self._iperf3 and found else {})
        self._tools = first.tools
        self._look(offers)
        return True

    def _look(self, offers: Offers) -> None:
        """Takes hosts that have come, and gives the runs of lost ones to others."""
        now = time.monotonic()
        for there in _testbeds(offers):
            if there.tools == self._tools:
                name = resource(there.host, there.tools)
                self._hosts.setdefault(there.host, _Host(there.host, name, now)).seen = now
            elif there.host not in self._others:
                self._others.add(there.host)
                say(f"{there.host} gets no run: its browser or kernel is another one.")
        for host in [host for host in self._hosts.values() if now > host.seen + LOST_S]:
            say(f"{host.name} is lost; its runs go to other hosts.")
            del self._hosts[host.name]
            if host.task is not None:
                host.task.future.cancel()
                if not host.task.copy:
                    self._again.append(host.task.job)
            self._again.extend(host.waiting)
            self._blocks = {block: name for block, name in self._blocks.items() if name != host.name}
            if not self._hosts:
                say(f"All hosts are lost; the runs wait for one: wirepaint worker {self.connection.address}")

    def carry_out(self, jobs: Iterator[Job]) -> Generator[tuple[ResolvedRun, End], None, None]:
        """Gives the ends of runs as hosts have carried them out."""
        try:
            while True:
                yield from self._deal(jobs)
                if self._nothing_left(jobs):
                    return
                ended = self.connection.next(self.kind, self._look)
                for host in self._hosts.values():
                    if ended and host.task and host.task.future.key == ended.future.key:
                        yield from self._ended(host, host.task, self.connection.result(ended))
        finally:
            for host in self._hosts.values():
                if host.task is not None:
                    host.task.future.cancel()
                host.task = None
                host.waiting.clear()

    def _nothing_left(self, jobs: Iterator[Job]) -> bool:
        """Whether no host has a run, and there is none to give."""
        if self._hosts:
            return all(host.task is None for host in self._hosts.values())
        if not self._again and (job := next(jobs, None)) is not None:
            self._again.append(job)
        return not self._again

    def _deal(self, jobs: Iterator[Job]) -> Iterator[tuple[ResolvedRun, End]]:
        """Gives each idle host its next run; yields the ends of runs whose page cannot be read."""
        while idle := [host for host in self._hosts.values() if host.task is None]:
            for host in idle:
                if not host.waiting:
                    self._draw(jobs, host)
                if host.waiting and (failed := self._send(host)) is not None:
                    yield failed
            if all(host.task is None and not host.waiting for host in idle):
                return

    def _draw(self, jobs: Iterator[Job], host: _Host) -> None:
        """Draws jobs, each for the host of its block, until there is one for this host."""
        while not host.waiting:
            job = self._again.popleft() if self._again else next(jobs, None)
            if job is None:
                return
            name = self._blocks.get(job.block, job.host)
            if name not in self._hosts:
                name = host.name
            self._blocks[job.block] = name
            if job.run.warmup:
                self._warmups.append(job)
                self._hosts[name].warm.add(job.run.key)
            self._hosts[name].waiting.append(job)

    def _send(self, host: _Host) -> tuple[ResolvedRun, End] | None:
        """Sends a host the next of its runs, warm-ups of other hosts first; returns its end if it failed."""
        cold = next((job for job in self._warmups if job.run.key not in host.warm), None)
        job = cold or host.waiting.popleft()
        host.warm.add(job.run.key)
        try:
            self._submit(host, job, copy=cold is not None, given={})
        except UsageError as error:
            return None if cold else (job.run, PageFailed(str(error)))
        return None

    def _submit(self, host: _Host, job: Job, *, copy: bool, given: dict[str, bytes]) -> None:
        packed, folders = testbed.pack(job.run)
        asked = testbed.Asked(
            batch.fingerprint(), host.name, self._command, packed, frozenset(folders), files=not copy
        )
        future = self.connection.submit(
            "run", testbed.carry_out, pickle.dumps(asked), given, resource=host.resource
        )
        host.task = _Task(job, future, copy)

    def _ended(
        self, host: _Host, task: _Task, ended: testbed.Lacks | testbed.Ended | RunFailed
    ) -> Iterator[tuple[ResolvedRun, End]]:
        host.task = None
        if isinstance(ended, RunFailed):
            ended.host = host.name
            if task.copy:
                _warn_of_cold(host, task, str(ended))
            else:
                yield task.job.run, ended
            return
        if isinstance(ended, testbed.Lacks):
            _, folders = testbed.pack(task.job.run)
            given = {name: testbed.pack_page(folders[name]) for name in ended.pages}
            self._submit(host, task.job, copy=task.copy, given=given)
            return
        for note in ended.notes:
            say(f"{host.name}: {note}")
        if ended.calibration is not None and task.job.calibrated is not None:
            task.job.calibrated(task.job.run.network, ended.calibration)
        self._seconds += ended.seconds
        self._runs += 1
        if task.copy:
            if ended.failure is not None:
                _warn_of_cold(host, task, ended.failure[1])
            return
        folder = task.job.folder
        for name, content in ended.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if ended.failure is not None:
            kind, cause = ended.failure
            error = batch.FAILURES[kind](cause)
            error.host = host.name
            yield task.job.run, error
        else:
            assert ended.outcome is not None
            yield task.job.run, ended.outcome


def _warn_of_cold(host: _Host, task: _Task, cause: str) -> None:
    say(f"{host.name}: the warm-up {task.job.run.key} failed, the next run there may be slower: {cause}")


@dataclass(frozen=True)
class _There:
    """The testbed that a worker offers, and the digest of its programs."""

    address: str
    host: str
    tools: str


def _testbeds(offers: Offers) -> Iterator[_There]:
    """The testbeds of this version."""
    for address, names in offers.items():
        for name in names:
            if name.startswith(f"{offer('testbed')}-"):
                tools, _, host = name.removeprefix(f"{offer('testbed')}-").partition("@")
                yield _There(address, host, tools)
