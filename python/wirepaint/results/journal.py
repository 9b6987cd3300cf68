"""The journal: one row for each run of an evaluation, and one for each attempt, in SQLite.

```
planned ──begin──► running ──done──► done          has a result; never carried out again
   ▲                  │ ──failed───► failed        no result after all attempts; the next command tries again
   └── interrupted ───┘
planned ──skip──► skipped                           not needed: the interval is narrow enough
                                                    or the page cannot count: the next command decides again
```
WAL with synchronous=FULL: in power cuts that combination lost no acknowledged row.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from wirepaint.errors import Incomplete, UsageError
from wirepaint.results.outcome import Outcome

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun

FORMAT = 2
"""Version of the tables, kept in ``user_version``; another one is refused."""
NAME = "journal.sqlite"
State = Literal["planned", "running", "done", "failed", "skipped"]

CANNOT_COUNT = "the page cannot count: "
"""The cause of a run that was skipped for its page begins so; others were not needed."""

AXES = (
    "scenario",
    "backend",
    "network",
    "congestion",
    "initial_window",
    "http",
    "proxy",
    "user_agent",
    "page",
)
"""Columns that tell which condition a run belongs to."""

_FROM_WORST = ("failed", "invalid", "suspect", "valid")
"""Ends of an attempt; one that was stopped or interrupted is none."""

_TABLES = """
CREATE TABLE run (
  key TEXT PRIMARY KEY,
  position INTEGER NOT NULL UNIQUE,
  scenario TEXT NOT NULL, backend TEXT NOT NULL, network TEXT NOT NULL, congestion TEXT NOT NULL,
  initial_window INTEGER NOT NULL,
  http TEXT NOT NULL, proxy TEXT NOT NULL, user_agent TEXT NOT NULL, page TEXT NOT NULL,
  visit INTEGER NOT NULL, warmup INTEGER NOT NULL, seed INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'planned' CHECK (state IN ('planned','running','done','failed','skipped')),
  verdict TEXT CHECK (verdict IN ('valid','suspect','invalid')),
  reasons TEXT NOT NULL DEFAULT '[]',
  cause TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  duration_ns INTEGER,
  CHECK ((state = 'done') = (verdict IS NOT NULL))
) STRICT;
CREATE TABLE attempt (
  key TEXT NOT NULL REFERENCES run (key),
  number INTEGER NOT NULL,
  began_unix_ns INTEGER NOT NULL,
  ended_unix_ns INTEGER,
  outcome TEXT,
  detail TEXT,
  PRIMARY KEY (key, number)
) STRICT;
"""


@dataclass(frozen=True)
class Row:
    """The state of one run."""

    key: str
    state: State
    attempts: int
    verdict: str | None
    cause: str | None
    outcome: Outcome | None
    """Of a done run, without its duration."""


class Journal:
    """The journal open for writing. Only the holder of the folder's lock may have one."""

    def __init__(self, folder: Path, *, new: bool = False) -> None:
        self.path = folder / NAME
        if not new and not self.path.is_file():
            raise UsageError(str(self.path), "no such file", "the journal of a results folder")
        with self._guarded():
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            if new:
                self._db.executescript(f"BEGIN;{_TABLES}PRAGMA user_version = {FORMAT};COMMIT;")
            _check_format(self._db, self.path)
            self._db.execute("PRAGMA foreign_keys = ON")

    def close(self) -> None:
        self._db.close()

    def plan(self, runs: Iterable[ResolvedRun]) -> None:
        """Adds the runs of a new evaluation, all or none."""
        rows = [
            {"key": run.key, "position": position, **axes(run), "visit": run.visit, "warmup": int(run.warmup)}
            | {"seed": run.seed}
            for position, run in enumerate(runs)
        ]
        with self._transaction() as db:
            for row in rows:
                names = ", ".join(row)
                marks = ", ".join(f":{name}" for name in row)
                db.execute(f"INSERT INTO run ({names}) VALUES ({marks})", row)

    def rows(self) -> list[Row]:
        """All runs in their order."""
        with self._guarded():
            query = "SELECT key, state, attempts, verdict, cause, reasons FROM run ORDER BY position"
            return [
                Row(*row, outcome=Outcome(row[3], json.loads(reasons)) if row[3] else None)
                for *row, reasons in self._db.execute(query)
            ]

    def repeats(self) -> tuple[int, int]:
        """Number of attempts after a run's first, and of those that ended no better than the one before."""
        marks = ", ".join("?" * len(_FROM_WORST))
        query = f"SELECT key, outcome FROM attempt WHERE outcome IN ({marks}) ORDER BY key, number"
        with self._guarded():
            ends = self._db.execute(query, _FROM_WORST).fetchall()
        again = [(a[1], b[1]) for a, b in pairwise(ends) if a[0] == b[0]]
        return len(again), sum(_FROM_WORST.index(b) <= _FROM_WORST.index(a) for a, b in again)

    def begin(self, key: str) -> int:
        """A new attempt; returns its number, 1 for the first."""
        with self._transaction() as db:
            highest = db.execute("SELECT coalesce(max(number), 0) FROM attempt WHERE key = ?", (key,))
            number = highest.fetchone()[0] + 1
            db.execute(
                "INSERT INTO attempt (key, number, began_unix_ns) VALUES (?, ?, ?)",
                (key, number, time.time_ns()),
            )
            db.execute(
                "UPDATE run SET state = 'running', attempts = ?, cause = NULL WHERE key = ?", (number, key)
            )
        return number

    def done(self, key: str, number: int, outcome: Outcome) -> None:
        """The run has its result."""
        reasons = json.dumps(outcome.reasons)
        with self._transaction() as db:
            self._end(db, key, number, outcome.verdict, reasons)
            db.execute(
                "UPDATE run SET state = 'done', verdict = ?, reasons = ?, duration_ns = ? WHERE key = ?",
                (outcome.verdict, reasons, outcome.duration_ns, key),
            )

    def repeat(self, key: str, number: int, outcome: str, detail: str) -> None:
        """The attempt counts for nothing and the run is planned again."""
        with self._transaction() as db:
            self._end(db, key, number, outcome, detail)
            db.execute("UPDATE run SET state = 'planned' WHERE key = ?", (key,))

    def failed(self, key: str, number: int, cause: str) -> None:
        """The last attempt failed."""
        with self._transaction() as db:
            self._end(db, key, number, "failed", cause)
            db.execute("UPDATE run SET state = 'failed', cause = ? WHERE key = ?", (cause, key))

    def skip(self, key: str, why: str) -> None:
        """A planned run is not needed, or its page cannot count (``why`` begins with ``CANNOT_COUNT``)."""
        with self._transaction() as db:
            db.execute("UPDATE run SET state = 'skipped', cause = ? WHERE key = ?", (why, key))

    def _end(self, db: sqlite3.Connection, key: str, number: int, outcome: str, detail: str) -> None:
        db.execute(
            "UPDATE attempt SET ended_unix_ns = ?, outcome = ?, detail = ? WHERE key = ? AND number = ?",
            (time.time_ns(), outcome, detail, key, number),
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turns what SQLite says of disk and file into a clear stop."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise Incomplete(f"{self.path}: {error}. Mend that and give the same command again.") from None
        except sqlite3.DatabaseError as error:
            raise damaged(self.path, error) from None


def standing(state: str, verdict: str | None, cause: str | None) -> str:
    """How a run stands in one word or two: the verdict of a done run, ``cannot count``, else the state."""
    if state == "skipped" and (cause or "").startswith(CANNOT_COUNT):
        return "cannot count"
    return verdict or state


def axes(run: ResolvedRun) -> dict[str, Any]:
    """The columns ``AXES`` of a run."""
    return {
        "scenario": run.scenario,
        "backend": run.backend,
        "network": run.network.name,
        "congestion": run.congestion.label,
        "initial_window": run.initial_window,
        "http": run.http,
        "proxy": run.proxy,
        "user_agent": run.user_agent,
        "page": run.page_name,
    }


def read(folder: Path, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of a query, without changing anything, also in a folder of another user."""
    path = folder / NAME
    # A WAL that was closed in order is gone; then no writer is at work and no lock is needed, which
    # SQLite could not take in a folder that this user may not write.
    mode = "mode=ro" if path.with_name(f"{NAME}-wal").exists() else "immutable=1"
    try:
        db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)
        try:
            _check_format(db, path)
            cursor = db.execute(query)
            return [column[0] for column in cursor.description], cursor.fetchall()
        finally:
            db.close()
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> UsageError:
    """The error for a file that is no journal or no longer one."""
    return UsageError(
        str(path), f"a journal that cannot be read ({error})", "the journal of a results folder"
    )


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != FORMAT:
        raise UsageError(
            str(path), f"format {version}", f"format {FORMAT}; start a new results folder with this wirepaint"
        )
