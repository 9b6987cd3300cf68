"""The journal's tables: their columns, and how they are read and checked; ``journal`` writes them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wirepaint.errors import UsageError
from wirepaint.evaluation import axes
from wirepaint.results import names, sealed
from wirepaint.results.calibration import Place

FORMAT = 7
"""Version of the tables, stored in ``user_version``; other versions are refused."""
NAME = "journal.sqlite"
AXES: dict[str, type[str] | type[int]] = {
    "scenario": str,
    "backend": str,
    **{name: axis.column for name, axis in axes.axes().items()},
    "user_agent": str,
    "page": str,
}
"""Columns that identify the condition of a run, and their types."""

_AXES_SQL = ", ".join(f"{name} {'INTEGER' if of is int else 'TEXT'} NOT NULL" for name, of in AXES.items())
TABLES = f"""
CREATE TABLE run (
  key TEXT PRIMARY KEY,
  position INTEGER NOT NULL UNIQUE,
  {_AXES_SQL},
  visit INTEGER NOT NULL, warmup INTEGER NOT NULL, seed INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('planned','running','done','failed','skipped')),
  verdict TEXT CHECK (verdict IN ('valid','suspect','invalid')),
  reasons TEXT NOT NULL,
  cause TEXT,
  kind TEXT CHECK (kind IN ('timeout','page','network','crash')),
  attempts INTEGER NOT NULL,
  duration_ns INTEGER,
  host TEXT,
  files TEXT,
  trace TEXT,
  seal TEXT NOT NULL,
  CHECK ((state = 'done') = (verdict IS NOT NULL)),
  CHECK ((state = 'done') = (files IS NOT NULL)),
  CHECK ((trace IS NOT NULL) = coalesce(files = '{{}}', FALSE)),
  CHECK ((state = 'failed') = (kind IS NOT NULL))
) STRICT;
CREATE TABLE plan (
  id TEXT NOT NULL,
  number INTEGER NOT NULL,
  keys TEXT NOT NULL
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
CREATE TABLE calibration (
  network TEXT NOT NULL,
  host TEXT NOT NULL,
  measured TEXT NOT NULL,
  seal TEXT NOT NULL,
  PRIMARY KEY (network, host)
) STRICT;
"""

COLUMNS = (
    *("key", "position", *AXES, "visit", "warmup", "seed", "state", "verdict", "reasons", "cause", "kind"),
    *("attempts", "duration_ns", "host", "files", "trace"),
)
"""Columns of the table ``run``, in the order of its seal."""
_RUNS = f"SELECT {', '.join(COLUMNS)}, seal FROM run ORDER BY position"
_CALIBRATIONS = "SELECT network, host, measured, seal FROM calibration ORDER BY network, host"


@dataclass(frozen=True)
class Planned:
    """The row of ``plan``."""

    id: str
    number: int
    keys: str


def planned(db: sqlite3.Connection, path: Path) -> Planned:
    """The row of ``plan``; raises UsageError if there is not one."""
    match db.execute("SELECT id, number, keys FROM plan").fetchall():
        case [row]:
            return Planned(*row)
    raise UsageError(f"{path}: plan", "a damaged table", "what wirepaint wrote there")


def keys_digest(keys: Iterable[str]) -> str:
    """The SHA-256 of keys in their order."""
    digest = hashlib.sha256()
    for key in keys:
        digest.update(of_key(key))
    return digest.hexdigest()


def of_key(key: str) -> bytes:
    return f"{key}\n".encode()


def check_plan(planned: Planned, id: str, keys: Iterable[str], path: Path) -> None:
    """Raises UsageError unless the journal is that of the manifest with ``id``, and has its runs.

    ``keys`` are those of the runs that are the evaluation's.
    """
    if planned.id != id or keys_digest(keys) != planned.keys:
        found = "other runs than those of the manifest"
        raise UsageError(str(path), found, "the journal of this results folder, as it was")


def runs(db: sqlite3.Connection, path: Path) -> Iterator[dict[str, Any]]:
    """All rows of the table ``run`` in order, with ``reasons`` and ``files`` parsed.

    Raises UsageError for a damaged row.
    """
    for cells in checked(db, path):
        row = dict(zip(COLUMNS, cells, strict=True))
        place = f"{path}: run {row['key']}"
        if row["files"] is not None:
            row["files"] = parsed(row["files"], dict, place)
        row["reasons"] = parsed(row["reasons"], list, place)
        yield row


def checked(db: sqlite3.Connection, path: Path) -> Iterator[list[Any]]:
    """All rows of the table ``run`` in order, as ``COLUMNS``; raises UsageError for a damaged row."""
    file = str(path)
    for *cells, seal in db.execute(_RUNS):
        _check_seal(seal, cells, f"{file}: run {names.run_key(cells[0], file)}")
        yield cells


def calibrations(db: sqlite3.Connection, path: Path) -> dict[Place, str]:
    """The texts of the files in calibration/.

    Raises UsageError for a damaged row.
    """
    found = {}
    for network, host, measured, seal in db.execute(_CALIBRATIONS):
        where = f"{path}: network {names.network(network, str(path))}"
        _check_seal(seal, (network, names.host(host, str(path)), measured), where)
        parsed(measured, dict, where)
        found[Place(network, host)] = measured
    return found


def _check_seal(seal: Any, cells: Any, place: str) -> None:
    if seal != sealed.digest(cells):
        raise UsageError(place, "a damaged row", "what wirepaint wrote there")


def parsed(text: Any, kind: type, place: str) -> Any:
    """The JSON value in a cell; raises UsageError if it is of another kind."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise UsageError(place, "a damaged row", "what wirepaint wrote there")
    return value


@contextmanager
def reading(folder: Path) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """The journal and its path, read-only, also in a folder of another user.

    In the body, errors of the file become UsageErrors.
    """
    path = path_of(folder)
    # Without a WAL file there is no writer, so no lock is needed. SQLite could not take one in a folder
    # that this user may not write.
    more = "" if path.with_name(f"{NAME}-wal").exists() else "&immutable=1"
    if not path.is_file():
        raise UsageError(str(path), "no such file", "the journal of a results folder")
    try:
        db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro{more}", uri=True)
        try:
            check_format(db, path)
            db.execute("BEGIN")  # all of it as it is now
            yield db, path
        finally:
            db.close()
    except sqlite3.Error as error:
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> UsageError:
    """The error for a file that is no journal, or a damaged one."""
    found = f"a journal that cannot be read ({error})"
    return UsageError(str(path), found, "the journal of a results folder")


def path_of(folder: Path) -> Path:
    for suffix in ("-wal", "-shm", "-journal"):
        names.inside(folder, NAME + suffix)
    return names.inside(folder, NAME)


def check_format(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != FORMAT:
        raise UsageError(
            str(path), f"format {version}", f"format {FORMAT}; start a new results folder with this wirepaint"
        )
    if _schema(db) != _own_schema():
        raise UsageError(
            str(path), f"other tables than those of format {FORMAT}", "the journal as it was made"
        )


def _schema(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    query = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
    return db.execute(query).fetchall()


@cache
def _own_schema() -> list[tuple[Any, ...]]:
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(TABLES)
        return _schema(db)
    finally:
        db.close()
