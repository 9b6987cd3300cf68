"""What is computed from the runs once, and kept in ``metrics/`` of the results folder.

Each file there is Parquet with rows of one :class:`Table`: the metrics of one definition, their values inside
the runs, or facts of the runs. Its name is the definition and the SHA-256 of its content. A command that
carries out runs writes the metrics of ``BATCH`` at a time. A reader computes what is missing and joins files.

``run_key`` and ``trace`` (:func:`of_trace`) say what a row was computed from. Rows of another trace and files
of another definition do not count: they are computed again. So nothing is lost with these files, and they are
not synced: after kill -9 or a power cut the next reader computes what they lack.
"""

from __future__ import annotations

import hashlib
import inspect
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import polars as pl

from wirepaint.errors import UsageError
from wirepaint.metrics._computing import (
    BATCH,
    MISSING,
    READ,
    WHOSE,
    Run,
    computed,
    frame,
    needed,
    of_run,
    why,
)
from wirepaint.metrics._metric import Frame, Metric, Trace
from wirepaint.metrics._registry import registry
from wirepaint.results import Results, measured, parts, trace
from wirepaint.results.parts import OF_RUN as _OF_RUN

_TABLE = ".parquet"
_digests: WeakKeyDictionary[Results, dict[str, str]] = WeakKeyDictionary()
"""The digests of the whole traces of runs that were asked for, by results as they were opened."""
NOT_KEPT = "neither this number nor the run's trace was kept"
"""Why a metric is null that was not known when a run without trace ended."""
Thinned = tuple[dict[str, str], Frame]
"""Runs whose traces are no longer needed: the digests of their traces by key, and their metrics."""


class Table(NamedTuple):
    """What is kept: a digest of its definition, and the function that computes the rows of runs.

    Each run must have a row.
    """

    definition: str
    compute: Callable[[Sequence[Run]], Frame]


def of_trace(files: Mapping[str, str]) -> str:
    """A digest of a run's whole trace, from those of its files in the journal."""
    return parts.of_trace(files, but="")


@cache
def definition(metric: Metric) -> str:
    """A digest of the source of a metric: of this room, and of the metric's own file if it is elsewhere.

    The source on the disk may be replaced while a command runs, so a command asks before its first run ends.
    """
    if metric.sha256 is not None:
        return hashlib.sha256(_room() + metric.sha256.encode()).hexdigest()[:16]
    file = Path(inspect.getfile(metric.function))
    own = b"" if file.parent == Path(__file__).parent else file.read_bytes()
    return hashlib.sha256(_room() + own).hexdigest()[:16]


@cache
def _room() -> bytes:
    """Everything that decides the numbers: this room, how it reads tables, and Polars, which computes."""
    digest = hashlib.sha256(f"polars {pl.__version__}\0".encode())
    for path in [*sorted(Path(__file__).parent.glob("*.py")), Path(trace.__file__)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def named(name: str) -> str:
    """The definition of a table of this room, other than metrics."""
    return hashlib.sha256(_room() + name.encode()).hexdigest()[:16]


def _by_definition(metrics: Iterable[Metric]) -> dict[str, list[Metric]]:
    found: dict[str, list[Metric]] = {}
    for metric in metrics:
        found.setdefault(definition(metric), []).append(metric)
    return found


def _tables() -> dict[str, Table]:
    """The tables of all metrics, by definition."""
    return {
        digest: Table(digest, lambda runs, metrics=metrics: frame(computed(runs, metrics), metrics))
        for digest, metrics in _by_definition(registry().values()).items()
    }


def thin(runs: Iterable[tuple[str, str, Path]]) -> Frame:
    """The rows that stay of runs whose traces are not kept: all metrics, and why some are null.

    A run is its key, the digest of its trace, and its folder.
    """
    metrics = list(registry().values())
    asked = [
        Run(key, digest, {file.stem: file for file in folder.glob(f"*{_TABLE}")}.get)
        for key, digest, folder in runs
    ]
    return frame(computed(asked, metrics), metrics)


def read_by_all() -> dict[str, Sequence[str] | None] | None:
    """The tables that metrics read, each with the columns, or None for all of them.

    None if there are metrics of a user's own: they may read any table.
    """
    metrics = list(registry().values())
    if any(metric.file is not None for metric in metrics):
        return None
    return {table: READ.get(table) for table in needed(metrics)}


def thin_of(runs: Iterable[tuple[str, str, Trace]]) -> Frame:
    """As :func:`thin`; a run is its key, the digest of its trace, and its tables."""
    metrics = list(registry().values())
    rows = [row for key, digest, tables in runs for row in of_run(key, digest, tables, metrics)]
    return frame(rows, metrics)


class Keeper:
    """Computes and keeps the metrics of runs as they end. A context manager: at its end all are written."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._thin: list[tuple[str, str, Path]] = []
        self._runs: list[Run] = []
        # Before the runs: while they last, another version may be installed over this source.
        self._tables = _tables()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()
        for definition in self._tables:
            with suppress(OSError, UsageError):
                _join(self._results, definition)

    def add(self, key: str, files: Mapping[str, str], folder: Path) -> None:
        """Takes a run that ended, with the digests of the files in its folder."""
        tables = {Path(name).stem: folder / name for name in files if name.endswith(_TABLE)}
        self._runs.append(Run(key, of_trace(files), tables.get))
        if len(self._runs) >= BATCH:
            self._write()

    def take(self, key: str, trace: str, folder: Path) -> Thinned | None:
        """Takes a run that ended and whose trace, which has this digest, is not to be kept.

        Now and then it hands metrics back.
        """
        self._thin.append((key, trace, folder))
        return self.rest() if len(self._thin) >= BATCH else None

    def rest(self) -> Thinned | None:
        """The digests of the traces that it took, by run, and the metrics, for ``parts/``."""
        runs, self._thin = self._thin, []
        return ({key: digest for key, digest, _ in runs}, thin(runs)) if runs else None

    def _write(self) -> None:
        runs, self._runs = self._runs, []
        for table in self._tables.values():
            if runs:
                # A full disk, or a folder that is gone: the next reader computes them, or says what is wrong.
                with suppress(OSError, UsageError):
                    _write(self._results, table.definition, table.compute(runs))


def read(results: Results, keys: Iterable[str], metrics: Sequence[Metric], *, reasons: bool) -> Frame:
    """The rows of the done runs ``keys`` with the columns of ``metrics`` and, if asked, their reasons."""
    tables = _tables()
    every = pl.DataFrame({"run_key": pl.Series(keys, dtype=pl.String)})
    without = every.join(results.thin, on="run_key", maintain_order="left")
    keys = results.with_trace(every)["run_key"]
    found = frame([], []) if not metrics else None
    for digest, of_one in _by_definition(metrics).items():
        columns = [name for each in of_one for name in (each.column, *([why(each)] if reasons else []))]
        part = rows(results, keys, tables[digest], [*WHOSE, *columns])
        found = part if found is None else found.join(part, on=WHOSE, nulls_equal=True, maintain_order="left")
    assert found is not None
    return pl.concat([found, _of_parts(results, without, found)]) if without.height else found


def _of_parts(results: Results, asked: Frame, like: Frame) -> Frame:
    """The metrics of runs whose traces were not kept, with the columns of ``like``.

    They are as they were computed when the runs ended. Raises UsageError for runs that no whole file has.
    """
    found: list[Frame] = []
    for _, part in parts.read(results.folder, like.columns):
        lacking = [name for name in like.columns if name not in part.columns]
        reasons = {name for name in lacking if name.endswith(MISSING)}
        new = [pl.lit(NOT_KEPT if name in reasons else None).alias(name) for name in lacking]
        part = part.with_columns(new).select(pl.col(name).cast(of) for name, of in like.schema.items())
        found.append(part.join(asked, on=_OF_RUN, how="semi", maintain_order="left"))
        asked = asked.join(part, on=_OF_RUN, how="anti", maintain_order="left")
    if asked.height:
        what = f"no metrics of {asked['run_key'][0]}, whose trace was not kept"
        more = f", and of {asked.height - 1} more" if asked.height > 1 else ""
        accepted = "parts/ as it was kept (`wirepaint run` carries these runs out again)"
        raise UsageError(str(results.folder / parts.FOLDER), what + more, accepted)
    return pl.concat(found)


def rows(results: Results, keys: Iterable[str], table: Table, columns: Sequence[str] | None = None) -> Frame:
    """The rows of those of the done runs ``keys`` whose traces were kept, with all columns by default.

    Rows that are not kept are computed, and kept if the folder may be written.
    """
    every = pl.DataFrame({"run_key": pl.Series(keys, dtype=pl.String)})
    having = results.with_trace(every)["run_key"]
    known = _digests.setdefault(results, {})
    for key in having:
        if key not in known and results.has_trace(key):
            known[key] = of_trace(results.digests(key))
    digests = [(key, known[key]) for key in having if key in known]
    asked = pl.DataFrame(digests, schema=dict.fromkeys(_OF_RUN, pl.String), orient="row")
    found: list[Frame] = []
    for _, part in _parts(results.folder, table.definition, columns):
        found.append(part.join(asked, on=_OF_RUN, how="semi", maintain_order="left"))
        asked = asked.join(part, on=_OF_RUN, how="anti", maintain_order="left")
    if asked.height or not found:
        new = [Run(key, digest, partial(_file, results, key)) for key, digest in asked.rows()]
        missing = table.compute(new)
        if new:
            with suppress(OSError):
                _write(results.folder, table.definition, missing)
        found.append(missing if columns is None else missing.select(columns))
    if len(found) > 1:
        with suppress(OSError):
            _join(results.folder, table.definition)
    return pl.concat(found, how="vertical_relaxed")


def _file(results: Results, key: str, table: str) -> Path | None:
    return results.file(key, f"{table}{_TABLE}")


def _parts(
    results: Path, definition: str, columns: Sequence[str] | None = None
) -> Iterator[tuple[Path, Frame]]:
    """The whole files of a table that have the columns, with their rows."""
    for path in measured.files(results, definition):
        if (content := measured.content(path)) is None:
            continue
        # A file of one's own that declares other metrics on another machine left other columns.
        with suppress(*trace.UNREADABLE):
            yield path, pl.read_parquet(content, columns=None if columns is None else list(columns))


def _join(results: Path, definition: str) -> None:
    """Makes one file of those of a table. Of a run that is in two of them, the first counts."""
    parts = list(_parts(results, definition))
    if len(parts) < 2 or len({tuple(part.columns) for _, part in parts}) > 1:
        return
    every: list[Frame] = []
    for _, part in parts:
        for before in every:
            part = part.join(before, on=_OF_RUN, how="anti", maintain_order="left")
        every.append(part)
    joined = _write(results, definition, pl.concat(every, how="vertical_relaxed"))
    for path, _ in parts:
        if path != joined:
            path.unlink(missing_ok=True)


def _write(results: Path, definition: str, rows: Frame) -> Path:
    content = io.BytesIO()
    rows.write_parquet(content)
    return measured.write(results, definition, content.getvalue())
