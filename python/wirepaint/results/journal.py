"""The journal: one row for each run of an evaluation, and one for each attempt, in SQLite.

```
planned ──begin──► running ──done──► done          has a result; never carried out again
   ▲                  │ ──failed───► failed        no result after all attempts; the next command tries again
   └── interrupted ───┘
planned ──skip──► skipped                           not needed: the interval is narrow enough
                                                    or the page cannot count: the next command decides again
```
A failed run has a ``kind``. A run that timed out is never carried out again: repeating it until it is
quick would make the load times of a slow condition too good.

The one row of ``plan`` says which rows of ``run`` are those of the evaluation: the first ``number`` ones. It
has the SHA-256 of their keys. The manifest has its ``id``.

A row of ``run`` and of ``calibration`` has the SHA-256 of its cells (``seal``). A done run also has those of
the files in its folder (``files``, a JSON object), so that a reader detects damage. If its trace was not
kept, ``files`` is empty, and ``trace`` has the digest of the trace (``parts``).

WAL with synchronous=FULL: in power cuts that combination lost no acknowledged row.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wirepaint.errors import Incomplete, NetworkFailed, PageFailed, PageTimeout, RunFailed, UsageError
from wirepaint.evaluation import axes
from wirepaint.results import journal_tables, names, sealed
from wirepaint.results.calibration import Place
from wirepaint.results.journal_tables import COLUMNS, FORMAT, TABLES
from wirepaint.results.outcome import Outcome

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun

NO_FILES = "{}"
"""The cell ``files`` of a run whose trace was not kept."""
State = Literal["planned", "running", "done", "failed", "skipped"]
Kind = Literal["timeout", "page", "network", "crash"]
"""Why a run failed: the page did not load in time, the page is at fault, the network could not be measured,
or a part of the run broke."""

CANNOT_COUNT = "the page cannot count: "
"""Begin of the cause of a run that was skipped for its page; other skipped runs were not needed."""

_FROM_WORST = ("failed", "invalid", "suspect", "valid")
"""Ends of an attempt; attempts that were stopped or interrupted do not count."""

_NEW = dict.fromkeys(COLUMNS) | {"state": "planned", "reasons": "[]", "attempts": 0}
_INSERT = f"INSERT INTO run ({', '.join(COLUMNS)}, seal) VALUES ({', '.join('?' * len(COLUMNS))}, ?)"
_AT_ONCE = 500
"""Keys of a query; SQLite takes 999 in any build."""
_OF_END = ("state", "verdict", "reasons", "cause", "kind", "attempts", "duration_ns", "files", "trace")
_END = f"UPDATE run SET {', '.join(f'{name} = ?' for name in (*_OF_END, 'seal'))} WHERE key = ?"
_RUN = f"SELECT {', '.join(COLUMNS)} FROM run WHERE key = ?"


@dataclass(frozen=True, slots=True)
class Row:
    """The state of one run."""

    key: str
    state: State
    attempts: int
    verdict: str | None
    cause: str | None
    kind: Kind | None
    host: str | None
    """The testbed that carried it out last; None for a simulated run, and before the first attempt."""
    outcome: Outcome | None
    """For a done run, without its duration."""
    files: dict[str, str] | None
    """For a done run: digests by path within its folder."""
    trace: str | None
    """For a done run whose trace was not kept: its digest."""


PLANNED = Row("", "planned", 0, None, None, None, None, None, None, None)
"""The state of each run of a new evaluation."""


class Journal:
    """The journal open for writing. Only the holder of the folder's lock may have one."""

    def __init__(self, folder: Path, *, new: str | None = None) -> None:
        """``new``, an identifier, begins one."""
        self.path = journal_tables.path_of(folder)
        if not new and not self.path.is_file():
            raise UsageError(str(self.path), "no such file", "the journal of a results folder")
        with self._guarded():
            self._db = sqlite3.connect(self.path, isolation_level=None)
            if not new:
                journal_tables.check_format(self._db, self.path)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            if new:
                self._db.executescript(f"BEGIN;{TABLES}PRAGMA user_version = {FORMAT};COMMIT;")
                self._db.execute("INSERT INTO plan VALUES (?, 0, ?)", (new, journal_tables.keys_digest(())))
            self._db.execute("PRAGMA foreign_keys = ON")
        self._file = self.path.stat()

    def close(self) -> None:
        self._db.close()

    def in_place(self) -> bool:
        """False if the file was removed or replaced, so that writes would be lost."""
        try:
            return os.path.samestat(self.path.stat(), self._file)
        except OSError:
            return False

    def plan(self, runs: Iterable[ResolvedRun]) -> None:
        """Makes these runs those of the evaluation, in one transaction.

        Of the others, those that ended stay behind them, and the rest is removed. A run that was not needed
        is planned again.
        """
        with self._transaction() as db:
            known: dict[str, str] = dict(db.execute("SELECT key, state FROM run ORDER BY position"))
            # Positions are unique, so they are free before they are given.
            db.execute("UPDATE run SET position = -1 - position")
            position, digest = -1, hashlib.sha256()
            conditions: dict[Any, dict[str, Any]] = {}

            def new() -> Iterator[list[Any]]:
                nonlocal position
                for position, run in enumerate(runs):
                    digest.update(journal_tables.of_key(run.key))
                    if run.key not in known:
                        yield _planned(run, position, conditions)
                        continue
                    if known.pop(run.key) == "skipped":
                        db.execute("UPDATE run SET state = 'planned', cause = NULL WHERE key = ?", (run.key,))
                    _change(db, run.key, position=position, scenario=run.scenario, seed=run.seed)

            db.executemany(_INSERT, new())
            db.execute("UPDATE plan SET number = ?, keys = ?", (position + 1, digest.hexdigest()))
            for key, state in known.items():
                if state in ("done", "failed"):
                    position += 1
                    _change(db, key, position=position)
                else:
                    db.execute("DELETE FROM attempt WHERE key = ?", (key,))
                    db.execute("DELETE FROM run WHERE key = ?", (key,))

    def conditions(self) -> Iterator[dict[str, Any]]:
        """All runs in order, as the columns of the table ``run``."""
        with self._guarded():
            yield from journal_tables.runs(self._db, self.path)

    def rows(self) -> Iterator[Row]:
        """All runs in order."""
        for row in self.conditions():
            yield Row(
                key=row["key"],
                state=row["state"],
                attempts=row["attempts"],
                verdict=row["verdict"],
                cause=row["cause"],
                kind=row["kind"],
                host=row["host"],
                outcome=Outcome(row["verdict"], row["reasons"]) if row["verdict"] else None,
                files=row["files"],
                trace=row["trace"],
            )

    def planned(self) -> journal_tables.Planned:
        """Which runs are those of the evaluation."""
        with self._guarded():
            return journal_tables.planned(self._db, self.path)

    def keys(self, number: int) -> Iterator[str]:
        """Keys of the first runs."""
        with self._guarded():
            for (key,) in self._db.execute("SELECT key FROM run ORDER BY position LIMIT ?", (number,)):
                yield names.run_key(key, str(self.path))

    def trace(self, key: str) -> str | None:
        """The digest of the trace of a done run that was not kept; None for any other run."""
        with self._guarded():
            found = self._db.execute("SELECT trace FROM run WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def traces_of(self, keys: Sequence[str]) -> dict[str, str | None]:
        """:meth:`trace` of many runs, without those that the journal lacks."""
        with self._guarded():
            return dict(_of_keys(self._db, ("key", "trace"), keys))

    def traces(self) -> Iterator[tuple[str, str]]:
        """Runs whose traces were not kept, each with the digest of its trace."""
        with self._guarded():
            yield from self._db.execute("SELECT key, trace FROM run WHERE trace IS NOT NULL")

    def size(self) -> int:
        """Number of all runs."""
        with self._guarded():
            return self._db.execute("SELECT count(*) FROM run").fetchone()[0]

    def repeats(self) -> tuple[int, int]:
        """Number of repeated attempts, and how many of them ended no better than the one before."""
        marks = ", ".join("?" * len(_FROM_WORST))
        query = f"SELECT key, outcome FROM attempt WHERE outcome IN ({marks}) ORDER BY key, number"
        with self._guarded():
            ends = self._db.execute(query, _FROM_WORST).fetchall()
        again = [(a[1], b[1]) for a, b in pairwise(ends) if a[0] == b[0]]
        return len(again), sum(_FROM_WORST.index(b) <= _FROM_WORST.index(a) for a, b in again)

    def begin(self, key: str) -> int:
        """Begins an attempt and returns its number, 1 for the first."""
        with self._transaction() as db:
            (attempts,) = db.execute("SELECT attempts FROM run WHERE key = ?", (key,)).fetchone()
            number = attempts + 1
            db.execute(
                "INSERT INTO attempt (key, number, began_unix_ns) VALUES (?, ?, ?)",
                (key, number, time.time_ns()),
            )
            _change(db, key, state="running", attempts=number, cause=None, kind=None)
        return number

    def done_thin(self, ended: Iterable[tuple[str, int, Outcome]]) -> None:
        """Stores the results of runs whose traces are not kept.

        Each is a key, when its attempt began in ns, and its outcome.
        """
        with self._transaction() as db:
            now = time.time_ns()
            attempts, changed = [], []
            some = list(ended)
            rows = {row[0]: row for row in _of_keys(db, COLUMNS, [key for key, *_ in some])}
            for key, began, outcome in some:
                row = dict(zip(COLUMNS, rows[key], strict=True))
                number, reasons = row["attempts"] + 1, json.dumps(outcome.reasons)
                attempts.append((key, number, began, now, outcome.verdict, reasons))
                cells = ("done", outcome.verdict, reasons, None, None, number, outcome.duration_ns)
                cells += (NO_FILES, outcome.trace)
                row |= zip(_OF_END, cells, strict=True)
                changed.append((*cells, sealed.digest([*row.values()]), key))
            db.executemany("INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?)", attempts)
            db.executemany(_END, changed)

    def done(self, key: str, number: int, outcome: Outcome, files: Mapping[str, str]) -> None:
        """Stores the result of a run; ``files`` are the digests of all files of its folder."""
        reasons = json.dumps(outcome.reasons)
        with self._transaction() as db:
            self._end(db, key, number, outcome.verdict, reasons)
            ended = {"verdict": outcome.verdict, "reasons": reasons, "duration_ns": outcome.duration_ns}
            _change(db, key, state="done", **ended, host=outcome.host, files=json.dumps(files))

    def thinned(self, traces: Mapping[str, str]) -> None:
        """The folders of these runs are not kept; ``traces`` are the digests of what was in them."""
        with self._transaction() as db:
            for key, trace in traces.items():
                _change(db, key, files=NO_FILES, trace=trace)

    def restored(self, key: str, files: Mapping[str, str]) -> None:
        """The folder of a run that was not kept is there again, with these files."""
        with self._transaction() as db:
            _change(db, key, files=json.dumps(files), trace=None)

    def forget(self, key: str) -> None:
        """Plans a done run again whose folder or metrics are gone."""
        with self._transaction() as db:
            (verdict,) = db.execute("SELECT verdict FROM run WHERE key = ?", (key,)).fetchone()
            removed = "UPDATE attempt SET outcome = 'removed' WHERE key = ? AND outcome = ?"
            db.execute(removed, (key, verdict))
            gone = dict.fromkeys(("verdict", "duration_ns", "host", "files", "trace"))
            _change(db, key, state="planned", reasons="[]", **gone)

    def repeat(self, key: str, number: int, outcome: str, detail: str) -> None:
        """Discards the attempt and plans the run again."""
        with self._transaction() as db:
            self._end(db, key, number, outcome, detail)
            _change(db, key, state="planned")

    def failed(self, key: str, number: int | None, cause: str, kind: Kind, host: str | None) -> None:
        """Marks a run as failed; ``number`` is its last attempt, None if an attempt would be useless."""
        with self._transaction() as db:
            if number is not None:
                self._end(db, key, number, "failed", cause)
            _change(db, key, state="failed", cause=cause, kind=kind, host=host)

    def skip(self, key: str, why: str) -> None:
        """Skips a run that is not needed, or whose page cannot count (``why`` has ``CANNOT_COUNT``)."""
        with self._transaction() as db:
            _change(db, key, state="skipped", cause=why, kind=None)

    def calibrated(self, place: Place, measured: str) -> None:
        """Stores the calibration of a network, as the text of its file."""
        with self._transaction() as db:
            cells = (*place, measured)
            db.execute(
                "INSERT OR REPLACE INTO calibration VALUES (?, ?, ?, ?)", (*cells, sealed.digest(cells))
            )

    def calibrations(self) -> dict[Place, str]:
        """The texts of the files in calibration/."""
        with self._guarded():
            return journal_tables.calibrations(self._db, self.path)

    def _end(self, db: sqlite3.Connection, key: str, number: int, outcome: str, detail: str) -> None:
        db.execute(
            "UPDATE attempt SET ended_unix_ns = ?, outcome = ?, detail = ? WHERE key = ? AND number = ?",
            (time.time_ns(), outcome, detail, key, number),
        )

    def hold(self) -> None:
        """Begins a batch: changes are on the disk when :meth:`commit` returns, all or none."""
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Ends a batch."""
        with self._guarded():
            self._db.execute("COMMIT")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One step: a transaction of its own, or a part of a batch; undone if the body fails."""
        begin, end, undo = "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"
        with self._guarded():
            if self._db.in_transaction:
                begin, end, undo = "SAVEPOINT step", "RELEASE step", "ROLLBACK TO step"
            self._db.execute(begin)
            try:
                yield self._db
                self._db.execute(end)
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute(undo)
                raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turns SQLite's errors of disk and file into clear errors."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF == sqlite3.SQLITE_ERROR:
                raise journal_tables.damaged(self.path, error) from None
            raise Incomplete(f"{self.path}: {error}. Mend that and give the same command again.") from None
        except sqlite3.DatabaseError as error:
            raise journal_tables.damaged(self.path, error) from None


def _planned(run: ResolvedRun, position: int, conditions: dict[Any, dict[str, Any]]) -> list[Any]:
    """The cells of a new run. ``conditions`` has what runs of one condition have in common."""
    alike = run.scenario, run.user_agent, run.page_name
    if alike not in conditions:
        conditions[alike] = _NEW | condition(run)
    own = {"key": run.key, "position": position, "visit": run.visit}
    cells = [*(conditions[alike] | own | {"warmup": int(run.warmup), "seed": run.seed}).values()]
    return [*cells, sealed.digest(cells)]


def _of_keys(
    db: sqlite3.Connection, columns: Sequence[str], keys: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """The rows of runs, in any order."""
    for first in range(0, len(keys), _AT_ONCE):
        some = keys[first : first + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        yield from db.execute(f"SELECT {', '.join(columns)} FROM run WHERE key IN ({marks})", some)


def _change(db: sqlite3.Connection, key: str, **cells: Any) -> None:
    """Changes cells of a run's row, and its seal with them."""
    row = dict(zip(COLUMNS, db.execute(_RUN, (key,)).fetchone(), strict=True)) | cells
    cells["seal"] = sealed.digest([*row.values()])
    columns = ", ".join(f"{name} = ?" for name in cells)
    db.execute(f"UPDATE run SET {columns} WHERE key = ?", [*cells.values(), key])


def kind_of(failure: RunFailed) -> Kind:
    """The kind of a failure of a run."""
    if isinstance(failure, PageTimeout):
        return "timeout"
    if isinstance(failure, NetworkFailed):
        return "network"
    return "page" if isinstance(failure, PageFailed) else "crash"


STANDINGS = (
    *("valid", "suspect", "invalid", "timed out", "failed"),
    *("cannot count", "planned", "running", "skipped"),
)
"""All that :func:`standing` gives."""


def standing(state: str, verdict: str | None, cause: str | None, kind: str | None = None) -> str:
    """The standing of a run: the verdict of a done run, ``timed out``, ``cannot count``, else the state."""
    if state == "skipped" and (cause or "").startswith(CANNOT_COUNT):
        return "cannot count"
    return "timed out" if kind == "timeout" else verdict or state


def condition(run: ResolvedRun) -> dict[str, str | int]:
    """The columns ``AXES`` of a run."""
    asked = {"scenario": run.scenario, "backend": run.backend}
    return asked | axes.levels(run) | {"user_agent": run.user_agent, "page": run.page_name}
