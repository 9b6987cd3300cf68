"""A results folder open for writing: begins, resumes and fills an evaluation's results.

```
RESULTS/
├── manifest.json        what was asked, versions, machine, sessions; written last when a folder is begun
├── evaluation.toml      the file as it was
├── journal.sqlite       the state of every run
├── calibration/         <network>.json: what the emulated path really gave
├── runs/<run key>/      the trace of a run: whole, or not there
│   └── .partial-...     a run under way; what a killed command left is removed by the next one
└── set-aside/           attempts that failed or were repeated, for a look at their logs
```
A run's folder is filled under another name, synced, renamed, and only then journalled. A command
that is killed between the last two is made good by the next: the folder holds its outcome.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepaint.errors import Incomplete, UsageError
from wirepaint.results import durable, manifest
from wirepaint.results.journal import NAME as JOURNAL
from wirepaint.results.journal import Journal, Row
from wirepaint.results.lock import Lock
from wirepaint.results.outcome import Outcome

if TYPE_CHECKING:
    from wirepaint.evaluation import Plan

_OUTCOME = "outcome.json"
_LOCK = ".lock"
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG}
_BEFORE_MANIFEST = {_LOCK, JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm", f"{JOURNAL}-journal"} | {
    "evaluation.toml",
    ".evaluation.toml.new",
    ".manifest.json.new",
}
"""What a command that was killed while it began a folder may have left there."""


class Store:
    """A results folder that this process may write. A context manager."""

    def __init__(self, folder: Path, plan: Plan, versions: dict[str, str]) -> None:
        """Begins the folder or resumes it; raises UsageError when it belongs to something else.

        ``versions`` are those of the back end.
        """
        self.folder = folder
        with disk_errors(folder):
            _refuse_foreign(folder)
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(folder / _LOCK, str(folder), "a folder that no other command is working on")
            try:
                if not (folder / manifest.NAME).exists():
                    self._begin(plan, versions)
                manifest.continue_session(folder, plan, versions)
                self._journal = Journal(folder)
                self._recover()
            except BaseException:
                self._lock.release()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()
        self._lock.release()

    def rows(self) -> list[Row]:
        """The state of all runs, in their order."""
        return self._journal.rows()

    def repeats(self) -> tuple[int, int]:
        """Number of attempts after a run's first, and of those that were in vain."""
        return self._journal.repeats()

    def begin(self, key: str) -> tuple[int, Path]:
        """A new attempt at a run: its number and the folder to fill."""
        number = self._journal.begin(key)
        folder = self._partial(key, number)
        with disk_errors(folder):
            folder.mkdir()
        return number, folder

    def done(self, key: str, number: int, outcome: Outcome) -> None:
        """Keeps the run for good; on return it is on the disk and in the journal."""
        folder = self._partial(key, number)
        with disk_errors(folder):
            (folder / _OUTCOME).write_text(outcome.to_json())
            durable.sync_tree(folder)
            folder.rename(self._run(key))
            durable.sync(self._runs)
        self._journal.done(key, number, outcome)

    def repeat(self, key: str, number: int, outcome: str, detail: str) -> None:
        """Sets the attempt aside; the run is planned again."""
        self._journal.repeat(key, number, outcome, detail)
        self._set_aside(key, number)

    def failed(self, key: str, number: int, cause: str) -> None:
        """Sets the last attempt aside; the run has no result."""
        self._journal.failed(key, number, cause)
        self._set_aside(key, number)

    def dropped(self, key: str, number: int) -> None:
        """Removes an attempt that was stopped; the run is planned again."""
        shutil.rmtree(self._partial(key, number), ignore_errors=True)
        self._journal.repeat(key, number, "stopped", "")

    def skip(self, key: str, why: str) -> None:
        """A planned run is not needed, or its page cannot count (``why`` begins with ``CANNOT_COUNT``)."""
        self._journal.skip(key, why)

    def keep_calibration(self, network: str, measured: dict[str, Any]) -> Path:
        """Stores what the emulated path of a network really gave."""
        path = self.folder / "calibration" / f"{network}.json"
        with disk_errors(path):
            path.parent.mkdir(exist_ok=True)
            durable.write(path, json.dumps(measured, indent=1).encode() + b"\n")
        return path

    @property
    def _runs(self) -> Path:
        return self.folder / "runs"

    def _run(self, key: str) -> Path:
        return self._runs / key

    def _partial(self, key: str, number: int) -> Path:
        return self._runs / f".partial-{key}-{number}"

    def _begin(self, plan: Plan, versions: dict[str, str]) -> None:
        for name in _BEFORE_MANIFEST - {_LOCK}:
            (self.folder / name).unlink(missing_ok=True)
        durable.write(self.folder / "evaluation.toml", plan.text)
        journal = Journal(self.folder, new=True)
        journal.plan(plan.runs)
        journal.close()
        manifest.create(self.folder, plan, versions)

    def _recover(self) -> None:
        """Makes good what a killed command left: adopts whole runs, removes parts of runs."""
        self._runs.mkdir(exist_ok=True)
        for row in self.rows():
            folder = self._run(row.key)
            if row.state == "done":
                if not folder.is_dir():
                    raise UsageError(
                        str(folder), "no folder", "the trace of a run that the journal calls done"
                    )
                continue
            if row.state == "running":
                try:
                    outcome = Outcome.from_json((folder / _OUTCOME).read_bytes())
                    self._journal.done(row.key, row.attempts, outcome)
                    continue
                except (OSError, ValueError):
                    self._journal.repeat(row.key, row.attempts, "interrupted", "")
            if folder.exists():
                shutil.rmtree(folder)
        for leftover in self._runs.glob(".partial-*"):
            shutil.rmtree(leftover)

    def _set_aside(self, key: str, number: int) -> None:
        """For a look at the logs only, so a full disk is no error here."""
        aside = self.folder / "set-aside" / f"{key}-{number}"
        with suppress(OSError):
            aside.parent.mkdir(exist_ok=True)
            self._partial(key, number).rename(aside)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns a full or failing disk into a clear stop that the same command resumes."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_ERRORS:
            place = error.filename or path
            raise Incomplete(
                f"{place}: {error.strerror}. Mend that and give the same command again."
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST):
            found = str(error.strerror).lower()
            raise UsageError(
                str(error.filename or path), found, "a folder that this user may write"
            ) from None
        raise


def _refuse_foreign(folder: Path) -> None:
    """A folder with other content is not ours to fill."""
    if not folder.is_dir() or (folder / manifest.NAME).exists():
        return
    for entry in folder.iterdir():
        if entry.name not in _BEFORE_MANIFEST:
            raise UsageError(str(folder), f"{entry.name} in it", "a new or empty folder, or one with results")
