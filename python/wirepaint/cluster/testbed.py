"""The testbed of a host, for a client elsewhere: one run at a time, in a process of its own.

The process is single-threaded, as one that forks must be, and a Dask worker is not. It ends with its worker.
It keeps the pages that it got, what it measured for a client, and the testbed itself while runs come.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import select
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepaint import linux
from wirepaint.cluster import batch
from wirepaint.errors import MachineLacks, NetworkFailed, Refused, RunFailed, WirepaintError
from wirepaint.evaluation import ResolvedRun
from wirepaint.results import contents, journal, provenance
from wirepaint.results.outcome import Outcome
from wirepaint.runners import calibrating
from wirepaint.runners.contract import Calibration, Job
from wirepaint.scratch import scratch

if TYPE_CHECKING:
    from wirepaint.runners.testbed.session import Session

IDLE_S = 2.0
"""A host without a run for so long leaves the testbed to other commands; to take it again takes a second."""


@dataclass(frozen=True)
class Asked:
    """A run for a host: ``packed``, and the SHA-256 of the ``pages`` that it loads.

    Networks are measured once for each ``command``. Without ``files`` the trace is not returned.
    """

    version: str
    host: str
    command: str
    packed: bytes
    pages: frozenset[str]
    files: bool


@dataclass(frozen=True)
class Lacks:
    """The pages that a host needs first, by SHA-256."""

    pages: frozenset[str]


@dataclass(frozen=True)
class Ended:
    """How a run ended: an outcome, or the kind and the cause of its failure.

    ``calibration`` is there if the network was measured before the run, ``notes`` say what failed in that.
    """

    outcome: Outcome | None
    failure: tuple[str, str] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    calibration: Calibration | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def tools() -> dict[str, str]:
    """The programs of this machine that results of its testbed depend on.

    Raises MachineLacks if it cannot be a testbed.
    """
    from wirepaint.runners import backends
    from wirepaint.runners.testbed import iperf3

    if os.geteuid() != 0:
        raise MachineLacks("the testbed needs root", "Run the command with sudo.")
    found = backends.testbed().versions | {"kernel": provenance.versions()["kernel"]}
    with suppress(MachineLacks):
        found["iperf3"] = iperf3.version()
    return found


def digest(of: Mapping[str, str]) -> str:
    """A digest of :func:`tools`: hosts whose runs are compared have the same."""
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()[:12]


def pack(run: ResolvedRun) -> tuple[bytes, dict[str, Path]]:
    """A run without its pages, and the folders of these by SHA-256."""
    from wirepaint.pages.model import read_index

    folders: dict[str, Path] = {}
    names: dict[Path, str] = {}
    for page in {visit.page for visit in run.visits}:
        names[page] = hashlib.sha256(read_index(page)).hexdigest()
        folders[names[page]] = page
    packed = io.BytesIO()
    pickler = pickle.Pickler(packed, protocol=5)
    pickler.persistent_id = lambda value: names.get(value) if isinstance(value, Path) else None  # type: ignore[method-assign]
    pickler.dump(run)
    return packed.getvalue(), folders


def pack_page(folder: Path) -> bytes:
    """The archive of a page as it travels."""
    from wirepaint.pages import bodies

    packed = io.BytesIO()
    with scratch() as place, tarfile.open(fileobj=packed, mode="w") as archive:
        bodies.copy(folder, place)
        archive.add(place, ".")
    return packed.getvalue()


_process: subprocess.Popen[bytes] | None = None


def carry_out(asked: bytes, pages: Mapping[str, bytes]) -> Lacks | Ended:
    """Has the process of this host's testbed carry out a run; ``asked`` is an :class:`Asked`, pickled.

    Raises ``Refused`` for what is no run's fault, ``batch.OtherVersion`` for a run of another version.
    """
    global _process
    if _process is None or _process.poll() is not None:
        _process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    assert _process.stdin is not None and _process.stdout is not None
    try:
        pickle.dump((asked, pages), _process.stdin)
        _process.stdin.flush()
        answer = pickle.load(_process.stdout)
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        return Ended(None, ("crash", f"the process of the testbed ended with {_process.wait()}"))
    if isinstance(answer, BaseException):
        raise answer
    return answer


def serve() -> None:
    """The process: a request on stdin, an answer on stdout, until stdin ends."""
    linux.die_with_parent()
    sys.argv = ["wirepaint", "worker"]  # the lock of the testbed names its owner
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Not in /dev/shm, which a cell hides.
    with scratch() as place, _Host(place) as host:
        while True:
            if host.is_busy and not select.select([sys.stdin], [], [], IDLE_S)[0]:
                host.rest()
            try:
                packed, pages = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            asked: Asked = pickle.loads(packed)
            try:
                answer: Any = host.carry_out(asked, pages)
            except WirepaintError as error:
                answer = Refused(f"{asked.host}: {error}")
            except batch.OtherVersion as error:
                answer = error
            pickle.dump(answer, answers)
            answers.flush()


class _Host:
    """A testbed, with the pages that it got; its files are in ``place``. A context manager."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._open = ExitStack()
        self._session: Session | None = None
        self._pages: dict[str, Path] = {}
        self._command = ""
        self._calibrations: dict[str, Calibration | NetworkFailed] = {}
        """By the name of the network."""

    def __enter__(self) -> _Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.rest()

    @property
    def is_busy(self) -> bool:
        """Whether it keeps the testbed from other commands."""
        return self._session is not None

    def rest(self) -> None:
        """Leaves the testbed to other commands."""
        self._session = None
        self._open.close()

    def carry_out(self, asked: Asked, pages: Mapping[str, bytes]) -> Lacks | Ended:
        if asked.version != batch.fingerprint():
            raise batch.OtherVersion(f"{asked.version}, not {batch.fingerprint()}")
        for name, packed in pages.items():
            self._take(name, packed)
        if lacking := asked.pages - self._pages.keys():
            return Lacks(lacking)
        unpickler = pickle.Unpickler(io.BytesIO(asked.packed))
        unpickler.persistent_load = self._pages.__getitem__  # type: ignore[method-assign]
        run: ResolvedRun = unpickler.load()
        if asked.command != self._command:
            self._command, self._calibrations = asked.command, {}
        folder = self._place / "run"
        folder.mkdir()
        try:
            return self._carried_out(run, folder, asked)
        except BaseException:
            self.rest()
            raise
        finally:
            shutil.rmtree(folder)

    def _carried_out(self, run: ResolvedRun, folder: Path, asked: Asked) -> Ended:
        from wirepaint.runners.testbed import at_once
        from wirepaint.runners.testbed.session import Session

        if len(run.users) > 1:
            at_once.check([run])
        notes: list[str] = []
        fresh: Calibration | None = None
        if self._session is None:
            self._session = self._open.enter_context(Session(nullcontext, wait_s=float("inf")))
        began = time.monotonic()
        network = run.network.name
        if network not in self._calibrations:
            try:
                fresh = calibrating.measured(run.network, self._session.calibrate, notes.append)
                fresh["machine"]["host"] = asked.host
                self._calibrations[network] = fresh
            except NetworkFailed as failure:
                self._calibrations[network] = failure
        found = self._calibrations[network]
        if isinstance(found, NetworkFailed):
            return _failed(found, {}, tuple(notes))
        ((_, end),) = self._session.carry_out(iter([Job(run, folder, found)]))
        files = (
            {name: (folder / name).read_bytes() for name in contents.record(folder)} if asked.files else {}
        )
        seconds = time.monotonic() - began
        if isinstance(end, RunFailed):
            return replace(_failed(end, files, tuple(notes)), calibration=fresh, seconds=seconds)
        assert isinstance(end, Outcome)
        return Ended(replace(end, host=asked.host), None, files, fresh, tuple(notes), seconds)

    def _take(self, name: str, packed: bytes) -> None:
        folder = self._place / name
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        self._pages[name] = folder


def _failed(failure: RunFailed, files: Mapping[str, bytes], notes: tuple[str, ...]) -> Ended:
    return Ended(None, (journal.kind_of(failure), str(failure)), files, None, notes)
