"""A results folder open for writing: begins, resumes, extends and fills an evaluation's results.

```
RESULTS/
├── manifest.json        what was asked, versions, machine, sessions; written last when a folder is begun
├── evaluation.toml      the file, with the options of the command line
├── journal.sqlite       the state of every run
├── metrics/             the metrics of the runs, computed once (``measured``)
├── parts/               the metrics of the runs whose traces are not kept (``parts``)
├── calibration/<host>/  <network>.json: what the emulated path really gave
├── runs/<run key>/      the trace of a run: whole, or not there
│   └── .partial-...     a run under way; what a killed command left is removed by the next one
└── set-aside/           attempts that failed or were repeated, for a look at their logs
```
A run's folder is filled under another name, synced, renamed, and only then journalled, with the digests of
its files; simulated runs many at once (``batches``). If a command is killed between the last two steps, the
next one completes them: the folder holds the outcome.

``names`` checks each name from the folder before it becomes a path.
"""

from __future__ import annotations

import errno
import itertools
import json
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from wirepaint.errors import Incomplete, RunFailed, UsageError, WirepaintError
from wirepaint.results import (
    calibration,
    contents,
    durable,
    growth,
    journal,
    journal_tables,
    manifest,
    measured,
    names,
    parts,
    trace,
)
from wirepaint.results.contents import Contents
from wirepaint.results.journal import Journal, Row
from wirepaint.results.journal_tables import NAME as JOURNAL
from wirepaint.results.lock import Lock
from wirepaint.results.outcome import Outcome

if TYPE_CHECKING:
    import polars as pl

    from wirepaint.evaluation import Plan

_OUTCOME = "outcome.json"
_LOCK = ".lock"
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG}
_RUNS, _ASIDE = "runs", "set-aside"
ELSEWHERE = 0
"""Number of an attempt whose begin is not in the journal."""
_BATCH_S = 1.0
_LONGEST_BATCH_S, _OF_TIME = 10.0, 0.1
"""Of runs without folders: a tenth of the time so far. Parquet takes as long for few rows as for many."""
_LOADS = ["run_key", "page_load_time"]
_BEFORE_MANIFEST = {_LOCK, JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm", f"{JOURNAL}-journal"} | {
    manifest.EVALUATION,
    f".{manifest.EVALUATION}.new",
    ".manifest.json.new",
}
"""Files that a command may leave if it is killed before the manifest is written."""


class Store:
    """A results folder that this process may write. A context manager."""

    def __init__(self, folder: Path, plan: Plan, versions: dict[str, str]) -> None:
        """Begins the folder or resumes it; raises UsageError if it has other content.

        ``versions`` are those of the back end.
        """
        self.folder = folder
        self.plan = plan
        """The plan, with the keys that its runs have in this folder."""
        self.notes: list[str] = []
        """Messages for the user about the resumed folder."""
        self._contents: dict[str, Contents] = {}
        self._rows: list[pl.DataFrame] = []
        """Metrics that are not written yet, and below the runs that the journal does not have yet."""
        self._ended: list[tuple[str, int, Outcome]] = []
        self._loads: dict[str, float] | None = None
        """Page load times of runs without traces, in ms; read when the first is asked for."""
        self._batch: float | None = None
        """When the batch of runs began; None if each run is stored by itself."""
        self._batches_since = 0.0
        """When the first batch began."""
        for run in plan.runs.first_of_each():
            names.run_key(run.key, str(plan.path))
            names.network(run.network.name, str(plan.path))
        with disk_errors(folder):
            _refuse_foreign(folder)
            folder.mkdir(parents=True, exist_ok=True)
            for name in (_LOCK, _RUNS, _ASIDE, calibration.FOLDER, measured.FOLDER, parts.FOLDER):
                names.inside(folder, name)
            self._lock = Lock(folder / _LOCK, str(folder), "a folder that no other command is working on")
            self._is_new = not (folder / manifest.NAME).exists()
            try:
                if self._is_new:
                    self._begin(plan, versions)
                self._journal = Journal(folder)
                if not self._is_new:
                    self.plan = self._grown(plan, versions)
            except BaseException:
                self._lock.release()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, WirepaintError):  # files that stay apart are whole, too
            parts.join(self.folder, self._journal.traces_of)
        self._journal.close()
        self._lock.release()

    @contextmanager
    def mishaps(self) -> Iterator[None]:
        """Turns errors that are no run's fault (a full disk, a missing folder) into clear ones."""
        try:
            yield
        except (OSError, RunFailed) as error:
            self.check_place()
            if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                raise _disk_error(error, self.folder) from None
            raise

    def check_place(self) -> None:
        """Raises Incomplete if the folder was removed or replaced meanwhile: results would be lost."""
        if self._lock.in_place() and self._journal.in_place():
            return
        if not (self.folder / _LOCK).exists():
            # A running simulator makes its own folder again.
            with suppress(OSError):
                self._runs.rmdir()
                self.folder.rmdir()
        raise Incomplete(
            f"{self.folder}: the results folder was removed or replaced while the command was at work. "
            "Give the same command again."
        )

    def rows(self) -> Iterator[Row]:
        """The state of all runs of the plan, in their order, as it was when the folder was opened."""
        if self._is_new:
            return itertools.repeat(journal.PLANNED, len(self.plan.runs))
        return itertools.islice(self._journal.rows(), len(self.plan.runs))

    def repeats(self) -> tuple[int, int]:
        """Number of repeated attempts, and how many of them ended no better than the one before."""
        return self._journal.repeats()

    def begin(self, key: str, *, make: bool = True) -> tuple[int, Path]:
        """Begins an attempt at a run; returns its number and the folder to fill, there if ``make``.

        An attempt elsewhere of which only metrics come back needs no begin: its number is ``ELSEWHERE``.
        """
        self.check_place()
        number = self._journal.begin(key)
        folder = self._partial(key, number)
        if make:
            with disk_errors(folder):
                folder.mkdir()
        return number, folder

    def done(self, key: str, number: int, outcome: Outcome) -> Contents:
        """Stores the run and returns its files; on return it is on the disk and in the journal.

        In :meth:`batches` it is so when its batch ends.
        """
        self.check_place()
        folder = self._partial(key, number)
        alone = self._batch is None
        with disk_errors(folder):
            (folder / _OUTCOME).write_text(outcome.to_json())
            if alone:
                durable.sync_tree(folder)
            files = contents.record(folder)
            folder.rename(self._run(key))
            if alone:
                durable.sync(self._runs)
        self._journal.done(key, number, outcome, files)
        self._contents[key] = Contents(self._run(key), files)
        self._next_batch()
        return self._contents[key]

    def done_thin(self, key: str, began_ns: int, outcome: Outcome, rows: pl.DataFrame | None) -> None:
        """Stores a run of which only its metrics stay.

        Runs that end together hand over their ``rows`` together, with the first. It is on the disk and in the
        journal on return, in :meth:`batches` when its batch ends.
        """
        if rows is not None:
            self._rows.append(rows)
            self._learn_loads(rows)
        self._ended.append((key, began_ns, outcome))
        if self._batch is None:
            self._write_rows()
        so_far = time.monotonic() - self._batches_since
        self._next_batch(min(_OF_TIME * so_far, _LONGEST_BATCH_S))

    def is_thin(self, key: str) -> bool:
        """Whether the trace of a done run was not kept."""
        return self._journal.trace(key) is not None

    def begin_again(self, key: str, *, make: bool = True) -> Path:
        """The folder to fill with the trace of a done run that was not kept, there if ``make``."""
        self.check_place()
        folder = self._partial(key, 0)
        if make:
            with disk_errors(folder):
                folder.mkdir()
        return folder

    def restore(self, key: str, outcome: Outcome) -> bool:
        """Keeps the trace of a run that was carried out again; False if it is another trace than it had."""
        self.check_place()
        folder = self._partial(key, 0)
        with disk_errors(folder):
            if outcome.trace != self._journal.trace(key):
                _remove(folder)
                return False
            (folder / _OUTCOME).write_text(outcome.to_json())
            files = contents.record(folder)
            durable.sync_tree(folder)
            folder.rename(self._run(key))
            durable.sync(self._runs)
        self._journal.restored(key, files)
        self._contents[key] = Contents(self._run(key), files)
        return True

    def thin(self, digests: Mapping[str, str], rows: pl.DataFrame) -> None:
        """Keeps ``rows``, the metrics of done runs, in place of the folders of these runs.

        ``digests`` are those of their traces.
        """
        self.check_place()
        with disk_errors(self.folder):
            parts.write(self.folder, [rows])
        self._learn_loads(rows)
        self._journal.thinned(digests)
        if self._batch is not None:
            # The folders go once the journal no longer asks for them.
            self._end_batch()
            self._begin_batch()
        for key in digests:
            self._contents.pop(key, None)
            _remove(self._run(key))

    def _write_rows(self) -> None:
        if self._rows:
            with disk_errors(self.folder):
                parts.write(self.folder, self._rows)
            self._rows = []
        if self._ended:
            self.check_place()
            self._journal.done_thin(self._ended)
            self._ended = []

    @contextmanager
    def batches(self) -> Iterator[None]:
        """In the body, runs are stored in batches: those of a second are on the disk, or none of them.

        To sync each file of many short runs takes longer than to simulate them. What is lost with a batch is
        carried out again. Runs without folders have longer ones, of up to 10 s.
        """
        self._batches_since = time.monotonic()
        self._begin_batch()
        try:
            yield
        except BaseException:
            with suppress(OSError, WirepaintError):  # the cause is what the user must hear of
                self._end_batch()
            raise
        self._end_batch()

    def _next_batch(self, length_s: float = 0.0) -> None:
        if self._batch is not None and time.monotonic() > self._batch + max(length_s, _BATCH_S):
            self._end_batch()
            self._begin_batch()

    def _begin_batch(self) -> None:
        self._journal.hold()
        self._batch = time.monotonic()

    def _end_batch(self) -> None:
        self._batch = None
        self._write_rows()
        with disk_errors(self._runs):
            durable.sync_filesystem(self._runs)
        self._journal.commit()

    def load_times(self, key: str) -> list[float]:
        """The page load times of a done run, in ms; raises UsageError if its files have changed."""
        if (files := self._contents.get(key)) is None:
            if self._loads is None:
                self._loads = {}
                for _, rows in parts.read(self.folder, _LOADS):
                    self._learn_loads(rows)
                for rows in self._rows:
                    self._learn_loads(rows)
            return [self._loads[key]] if key in self._loads else []
        page = trace.read_file(files.path("page.parquet"), "page")
        return ((page["load_event"] - page["navigation_start"]).drop_nulls() / 1e6).to_list()

    def _learn_loads(self, rows: pl.DataFrame) -> None:
        if self._loads is not None:
            self._loads |= dict(rows.select(_LOADS).drop_nulls().iter_rows())

    def contents(self, key: str) -> Contents | None:
        """The files of a done run; None if its trace was not kept."""
        return self._contents.get(key)

    def repeat(self, key: str, number: int, outcome: str, detail: str) -> None:
        """Sets the attempt aside; the run is planned again."""
        self._journal.repeat(key, number, outcome, detail)
        self._set_aside(key, number)

    def failed(
        self, key: str, number: int, cause: str, kind: journal.Kind = "crash", host: str | None = None
    ) -> None:
        """Sets the last attempt aside; the run has no result."""
        if number == ELSEWHERE:
            number = self._journal.begin(key)
        self._journal.failed(key, number, cause, kind, host)
        self._set_aside(key, number)

    def unattempted(self, key: str, cause: str, kind: journal.Kind) -> None:
        """Marks a run as failed without an attempt, which would be useless."""
        self._journal.failed(key, None, cause, kind, None)

    def dropped(self, key: str, number: int) -> None:
        """Removes an attempt that was stopped; the run is planned again."""
        if number == ELSEWHERE:
            return
        if self._lock.in_place() or not (self.folder / _LOCK).exists():
            shutil.rmtree(self._partial(key, number), ignore_errors=True)
        self._journal.repeat(key, number, "stopped", "")

    def skip(self, key: str, why: str) -> None:
        """Skips a run that is not needed, or whose page cannot count (``why`` has ``CANNOT_COUNT``)."""
        self._journal.skip(key, why)

    def keep_calibration(self, network: str, measured: dict[str, Any]) -> Path:
        """Stores the calibration of a network on the machine that it names."""
        text = json.dumps(measured, indent=1) + "\n"
        place = calibration.Place(network, measured["machine"]["host"])
        calibration.path(self.folder, place)  # the names are checked before the journal has them
        self._journal.calibrated(place, text)
        return self._write_calibration(place, text)

    def _write_calibration(self, place: calibration.Place, text: str) -> Path:
        path = calibration.path(self.folder, place)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.write(path, text.encode())
        return path

    @property
    def _runs(self) -> Path:
        return self.folder / _RUNS

    def _run(self, key: str) -> Path:
        return self._runs / key

    def _partial(self, key: str, number: int) -> Path:
        return self._runs / f".partial-{key}-{number}"

    def _begin(self, plan: Plan, versions: dict[str, str]) -> None:
        for name in _BEFORE_MANIFEST - {_LOCK}:
            (self.folder / name).unlink(missing_ok=True)
        durable.write(self.folder / manifest.EVALUATION, plan.text)
        new = Journal(self.folder, new=(identifier := uuid4().hex))
        new.plan(plan.runs)
        new.close()
        manifest.create(self.folder, plan, versions, identifier)
        self._runs.mkdir()

    def _grown(self, plan: Plan, versions: dict[str, str]) -> Plan:
        """Repairs the folder, and takes over what is new in the plan (``growth``)."""
        described, planned = manifest.read(self.folder), self._journal.planned()
        path = self._journal.path
        journal_tables.check_plan(planned, described["journal"], self._journal.keys(planned.number), path)
        manifest.check_versions(self.folder, described, versions)
        is_edited = not manifest.is_of(described, plan)
        has_other_runs = is_edited or not _are(planned, plan)
        if has_other_runs:
            plan = self._renamed(plan, described)
            has_other_runs = is_edited or not _are(planned, plan)
        self._recover()
        # First, so that a reader finds the scenario of each run there.
        manifest.continue_session(self.folder, plan, versions)
        if has_other_runs:
            self._journal.plan(plan.runs)
        if stay := self._journal.size() - len(plan.runs):
            runs_stay = f"{stay} runs stay" if stay > 1 else "1 run stays"
            self.notes.append(f"no longer asked for: {runs_stay} in the folder, not counted")
        return plan

    def _renamed(self, plan: Plan, described: dict[str, Any]) -> Plan:
        """The plan with the keys of the folder; raises UsageError if it would change finished runs.

        A run that the folder has under another key keeps that one: its scenario got another name since.
        """
        known: dict[bytes, str] = {}
        foreign: dict[str, bytes] = {}
        finished: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self._journal.conditions():
            known[asked := growth.identity(row)] = row["key"]
            foreign[row["key"]] = asked
            if row["state"] == "done" or row["kind"] == "timeout":
                finished.setdefault(growth.conditions(row), row)
        manifest.check_growth(self.folder, described, plan, [*finished.values()])
        renamed: dict[str, str] = {}
        for run in plan.runs:
            asked = growth.identity({**journal.condition(run), "visit": run.visit})
            key = known.get(asked, run.key)
            if foreign.get(key, asked) != asked:
                accepted = f"a name that the other runs of {self.folder} do not have, or another folder (-o)"
                raise UsageError(str(plan.path), f"a second run {key}, of other conditions", accepted)
            if key != run.key:
                renamed[run.key] = key
        return plan.renamed(renamed)

    def _recover(self) -> None:
        """Repairs the folder after a killed command: adopts complete runs, removes partial ones."""
        folders = {entry.name for entry in self._runs.iterdir()} if self._runs.is_dir() else None
        gone = dict.fromkeys(parts.lost(self.folder, self._journal.traces()), "its metrics are")
        running: list[Row] = []
        done = whole = 0
        for row in self._journal.rows():
            done += row.state == "done"
            whole += bool(row.files)
            if row.key in (folders or ()):
                names.inside(self.folder, _RUNS, row.key)
                if row.trace is not None or row.state not in ("done", "running"):
                    _remove(self._run(row.key))
            if row.state == "running":
                running.append(row)
            elif row.files and folders is not None:
                if self._run(row.key).is_dir():
                    self._contents[row.key] = Contents(self._run(row.key), row.files)
                else:
                    gone[row.key] = "its folder is"
        if whole and folders is None:
            # It may be moved or not mounted. An empty folder says that its runs are to be made anew.
            accepted = (
                f"the folder of the {done} runs that are done, or an empty one to carry them out again "
                f"(mkdir {shlex.quote(str(self._runs))})"
            )
            raise UsageError(str(self._runs), "no folder", accepted)
        self._runs.mkdir(exist_ok=True)
        for key, what in gone.items():
            self._journal.forget(key)
            self.notes.append(f"{key}: {what} gone, so it is carried out again")
        for row in running:
            self._adopt(row)
        for leftover in self._runs.glob(".partial-*"):
            _remove(leftover)
        for place, text in self._journal.calibrations().items():
            if calibration.fault(self.folder, place, text):
                self._write_calibration(place, text)

    def _adopt(self, row: Row) -> None:
        """Completes a run that was under way, if its folder is whole."""
        folder = self._run(row.key)
        try:
            outcome = Outcome.from_json((folder / _OUTCOME).read_bytes())
            files = contents.record(folder)
        except (OSError, ValueError):
            self._journal.repeat(row.key, row.attempts, "interrupted", "")
            _remove(folder)
            return
        self._journal.done(row.key, row.attempts, outcome, files)
        self._contents[row.key] = Contents(folder, files)

    def _set_aside(self, key: str, number: int) -> None:
        """Keeps an attempt only for its logs, so a full disk is no error here."""
        aside = self.folder / _ASIDE / f"{key}-{number}"
        with suppress(OSError):
            aside.parent.mkdir(exist_ok=True)
            self._partial(key, number).rename(aside)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns a full or failing disk into ``Incomplete``: the same command resumes."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise _disk_error(error, path) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.ELOOP):
            found = str(error.strerror).lower()
            raise UsageError(
                str(error.filename or path), found, "a folder that this user may write"
            ) from None
        raise


def _are(planned: journal_tables.Planned, plan: Plan) -> bool:
    """Whether the runs of a journal are those of the plan."""
    return journal_tables.keys_digest(run.key for run in plan.runs) == planned.keys


def _disk_error(error: OSError, path: Path) -> Incomplete:
    place = error.filename or path
    return Incomplete(f"{place}: {error.strerror}. Mend that and give the same command again.")


def _remove(path: Path) -> None:
    """Removes a folder, or a file or link of that name."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _refuse_foreign(folder: Path) -> None:
    """Raises UsageError for a folder with other content."""
    if not folder.is_dir() or (folder / manifest.NAME).exists():
        return
    for entry in folder.iterdir():
        if entry.name not in _BEFORE_MANIFEST:
            raise UsageError(str(folder), f"{entry.name} in it", "a new or empty folder, or one with results")
