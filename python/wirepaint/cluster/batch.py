"""A batch of runs: how the client packs it, how a worker carries it out, and what comes back.

What many runs share (a network with its capacity trace, the load graph of a page, a C file) is packed apart,
under its SHA-256. Dask brings each to a worker once. So a packed run is small.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import polars as pl

import wirepaint
from wirepaint import dataplane, metrics
from wirepaint.errors import NetworkFailed, PageFailed, PageTimeout, Refused, RunFailed
from wirepaint.evaluation import ResolvedRun
from wirepaint.evaluation.congestion import UserFile
from wirepaint.evaluation.network import Network
from wirepaint.results import contents, journal
from wirepaint.results.outcome import Outcome
from wirepaint.runners import graphs
from wirepaint.runners.collected import Collected
from wirepaint.runners.contract import Job, Thin
from wirepaint.runners.simulator import Session
from wirepaint.scratch import scratch

End = Outcome | Thin | RunFailed
_SHARED = (Network, UserFile, graphs.Graph)
FAILURES: dict[str, type[RunFailed]] = {
    "timeout": PageTimeout, "page": PageFailed, "network": NetworkFailed, "crash": RunFailed
}  # fmt: skip
_MOST_VISITS = 1_000
_OWN = ("key", "seed", "visit", "warmup", "attempt")
"""What every run has of its own."""
_MEMORY, _ROOM = Path("/dev/shm"), 2**30
_AT_ONCE, _THIN_AT_ONCE = 128, 1024
"""Runs that one process of the data plane carries out for a worker: each leaves a trace of 100 to 300 kB, or
the tables that metrics read. Each process needs the pages of its runs anew."""
_for_this_process = ExitStack()
_ENDS = {
    "run": pl.UInt32,
    "verdict": pl.String,
    "reasons": pl.String,
    "duration_ns": pl.Int64,
    "trace": pl.String,
    "failure": pl.String,
    "message": pl.String,
}
_FILES = {"run": pl.UInt32, "name": pl.String, "content": pl.Binary}


class OtherVersion(Exception):
    """A worker is not of the version that the client is of."""


class Broken(Exception):
    """A worker could not carry a batch out; the text names the error."""


@cache
def versions() -> dict[str, str]:
    """The programs that the result of a run depends on; of wirepaint also a digest of its sources."""
    package = Path(wirepaint.__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*package.rglob("*.py"), *(package / "catalog/browsers").iterdir()]):
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return {
        "wirepaint": f"{wirepaint.__version__} ({digest.hexdigest()[:12]})",
        "data plane": dataplane.fingerprint(),
        "polars": pl.__version__,
    }


def fingerprint() -> str:
    """A digest of :func:`versions`; a worker offers itself under it, so another version gets no batch."""
    return hashlib.sha256(json.dumps(versions(), sort_keys=True).encode()).hexdigest()[:12]


@dataclass
class Packer:
    """Packs runs; ``shared`` gets what they share, by SHA-256."""

    metric_files: Sequence[Mapping[str, Any]] = ()
    """The evaluation's own files of metrics, as a manifest keeps them."""
    shared: dict[str, bytes] = field(default_factory=dict)
    _known: dict[int, tuple[object, str]] = field(default_factory=dict)
    _of_visits: dict[tuple[int, str], tuple[object, Sequence[tuple[graphs.Asked, graphs.Graph]]]] = field(
        default_factory=dict
    )
    """Load graphs by :func:`_loading`, with the visits, so that their id is not given again."""
    _graphs: dict[object, Sequence[tuple[graphs.Asked, graphs.Graph]]] = field(default_factory=dict)

    def graphs(self, run: ResolvedRun) -> Sequence[tuple[graphs.Asked, graphs.Graph]]:
        """The load graphs of a run; raises PageFailed for a page that cannot be read."""
        if (known := self._of_visits.get(_loading(run))) is not None:
            return known[1]
        visited = tuple((visit.page_name, visit.page, visit.viewport) for visit in run.visits)
        if (visited, run.servers) not in self._graphs:
            self._graphs[visited, run.servers] = tuple(graphs.needed(run))
        found = self._graphs[visited, run.servers]
        if len(self._of_visits) == _MOST_VISITS:
            self._of_visits.clear()
        self._of_visits[_loading(run)] = run.visits, found
        return found

    def pack(self, runs: Sequence[ResolvedRun], *, traces: bool) -> tuple[bytes, set[str]]:
        """A batch for :func:`carry_out`, and the SHA-256 of all that it needs beside.

        With ``traces`` the traces come back, else only metrics.
        """
        needed: set[str] = set()

        def name(value: object) -> str | None:
            if not isinstance(value, _SHARED):
                return None
            if id(value) not in self._known:
                content = pickle.dumps(value, protocol=5)
                digest = hashlib.sha256(content).hexdigest()
                self.shared[digest] = content
                self._known[id(value)] = value, digest  # the value stays, and so its id is not given again
            needed.add(digest := self._known[id(value)][1])
            return digest

        packed = io.BytesIO()
        pickler = pickle.Pickler(packed, protocol=5)
        pickler.persistent_id = name  # type: ignore[method-assign]
        visited = {_loading(run): run for run in runs}.values()
        loaded = {key: graph for run in visited for key, graph in self.graphs(run)}
        pickler.dump((fingerprint(), self.metric_files, traces, *_apart(runs), loaded))
        return packed.getvalue(), needed


def _loading(run: ResolvedRun) -> tuple[int, str]:
    """What the load graphs of a run depend on, quickly: most runs share their visits with others."""
    return id(run.visits), run.servers


def _apart(runs: Sequence[ResolvedRun]) -> tuple[list[ResolvedRun], bytes, dict[int, dict[str, Any]]]:
    """The first run of each condition; of each run which one it is like, ``_OWN``, and what else differs."""
    first: dict[tuple[str, str, str], int] = {}
    whole: list[ResolvedRun] = []
    own: list[tuple[Any, ...]] = []
    others: dict[int, dict[str, Any]] = {}
    for place, run in enumerate(runs):
        number = first.setdefault((run.scenario, run.user_agent, run.page_name), len(whole))
        if number == len(whole):
            whole.append(run)
        fields, like = vars(run), vars(whole[number])
        own.append((number, *map(fields.__getitem__, _OWN)))
        other = {name: of for name, of in fields.items() if of is not like[name] and name not in _OWN}
        if other:
            others[place] = other
    # By itself, since the pickler for shared parts looks at each value.
    return whole, pickle.dumps(own, protocol=5), others


def _whole(
    whole: Sequence[ResolvedRun], own: bytes, others: Mapping[int, dict[str, Any]]
) -> list[ResolvedRun]:
    """The runs that were taken apart."""
    return [
        whole[number].model_copy(update=dict(zip(_OWN, fields, strict=True)) | others.get(place, {}))
        for place, (number, *fields) in enumerate(pickle.loads(own))
    ]


@lru_cache(maxsize=256)
def _unpacked(content: bytes) -> Any:
    return pickle.loads(content)


@dataclass(frozen=True)
class Returned:
    """What a worker returns: tables as Arrow record batches, and the seconds that the runs took."""

    ends: bytes
    metrics: bytes
    files: bytes
    seconds: float


def carry_out(batch: bytes, shared: Mapping[str, bytes]) -> Returned:
    """Simulates a batch on one core, in a folder of its own that is gone in the end.

    Raises ``Refused`` for what is the evaluation's fault and not a run's, ``OtherVersion`` for a batch of
    another version, ``Broken`` for any other error.
    """
    try:
        return _carried_out(batch, shared)
    except (Refused, OtherVersion):
        raise
    except Exception as error:
        found = f"{type(error).__name__} on a worker: {error}"
    # Dask's client waits for ever if an error, or the one before it, cannot be pickled, as of deep recursion.
    raise Broken(found)


def _carried_out(batch: bytes, shared: Mapping[str, bytes]) -> Returned:
    began = time.monotonic()
    unpickler = pickle.Unpickler(io.BytesIO(batch))
    unpickler.persistent_load = lambda digest: _unpacked(shared[digest])  # type: ignore[method-assign]
    asked, metric_files, traces, *apart, loaded = unpickler.load()
    runs = _whole(*apart)
    if asked != fingerprint():
        raise OtherVersion(f"{asked}, not {fingerprint()}")
    metrics.enrol(metric_files, "metrics", agreed=True)
    ends: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    rows: list[pl.DataFrame] = []
    at_once = _AT_ONCE if traces else _THIN_AT_ONCE
    for first in range(0, len(runs), at_once):
        numbered = list(enumerate(runs))[first : first + at_once]
        with tempfile.TemporaryDirectory(dir=_scratch()) as place:
            some, of_some = _simulated(numbered, Path(place), loaded.__getitem__, traces, files)
        ends += some
        rows.append(of_some)
    return Returned(
        _arrow(pl.DataFrame(ends, schema=_ENDS, orient="row")),
        _arrow(pl.concat(rows)),
        _arrow(pl.DataFrame(files, schema=_FILES, orient="row")),
        time.monotonic() - began,
    )


def _simulated(
    numbered: Sequence[tuple[int, ResolvedRun]],
    place: Path,
    load: graphs.Load,
    traces: bool,
    files: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """How runs end, in the order of their ends, and their metrics.

    With ``traces``, their files are added to ``files``. For that, and for metrics of a user's own, runs have
    files of their own.
    """
    numbers = {run.key: number for number, run in numbered}
    tables = None if traces else metrics.read_by_all()
    collected = None if tables is None else Collected(place, tables)

    def jobs() -> Iterator[Job]:
        for number, run in numbered:
            folder = place / str(number)
            if collected is None:
                folder.mkdir()
            yield Job(run, folder, whole=traces)

    ends: list[dict[str, Any]] = []
    done: list[tuple[str, str, Path]] = []
    with Session(nullcontext, load=load, cores=1, collected=collected) as session:
        for run, end in session.carry_out(jobs()):
            number = numbers[run.key]
            row: dict[str, Any] = dict.fromkeys(_ENDS) | {"run": number}
            if isinstance(end, RunFailed):
                row |= {"failure": journal.kind_of(end), "message": str(end)}
            else:
                folder = place / str(number)
                assert end.trace is not None
                row |= {"verdict": end.verdict, "reasons": json.dumps(end.reasons)}
                row |= {"duration_ns": end.duration_ns, "trace": end.trace}
                done.append((run.key, end.trace, folder))
                if traces:
                    files += [
                        {"run": number, "name": name, "content": (folder / name).read_bytes()}
                        for name in contents.record(folder)
                    ]
            ends.append(row)
    if collected is None:
        return ends, metrics.thin(done)
    return ends, metrics.thin_of((key, digest, collected.trace(key)) for key, digest, _ in done)


def ends(returned: Returned, jobs: Sequence[Job]) -> list[tuple[ResolvedRun, End]]:
    """The ends of the runs of a batch. Files that came back are in the folders of the jobs."""
    rows: pl.DataFrame | None = _frame(returned.metrics)
    for number, name, content in _frame(returned.files).iter_rows():
        jobs[number].folder.mkdir(exist_ok=True)
        path = jobs[number].folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    found: list[tuple[ResolvedRun, End]] = []
    for number, verdict, reasons, duration_ns, trace, failure, message in _frame(returned.ends).iter_rows():
        job = jobs[number]
        if failure is not None:
            found.append((job.run, FAILURES[failure](message)))
            continue
        outcome = Outcome(verdict, [] if reasons == "[]" else json.loads(reasons), duration_ns, trace=trace)
        if job.whole:
            found.append((job.run, outcome))
        else:
            found.append((job.run, Thin(outcome, rows)))
            rows = None
    return found


@cache
def _scratch() -> Path:
    """A folder for the traces of a process, in memory where there is room; gone with the process."""
    try:
        room = os.statvfs(_MEMORY)
        within = _MEMORY if room.f_bavail * room.f_frsize >= _ROOM and os.access(_MEMORY, os.W_OK) else None
    except OSError:
        within = None
    return _for_this_process.enter_context(scratch(within=within))


def _arrow(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_ipc_stream(content, compression="zstd")
    return content.getvalue()


def _frame(content: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(content))
