"""The files of parts/: what stays of runs whose traces were not kept (``[results] keep``).

Each is Parquet with the metrics of some runs. It is on the disk before the journal says that these runs are
done, and never changed; at the end of a command small ones are joined to larger ones. Its name is the SHA-256
of its content, and the journal has the digest of each run's trace, so that a reader detects damage.
"""

from __future__ import annotations

import hashlib
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from wirepaint.results import durable, names
from wirepaint.results.contents import Fault
from wirepaint.results.trace import UNREADABLE

FOLDER = "parts"
OF_RUN = ["run_key", "trace"]
"""Columns that say what a row was computed from."""
_SUFFIX = ".parquet"
_LARGE = 25_000
"""Rows of a file that is not joined with others."""
_MANY = 16
_JOINED = 8 * _LARGE
"""Rows of files that are looked for at once: a search costs as much for few as for many."""


def of_trace(files: Mapping[str, str], but: str = "run") -> str:
    """A digest of a run's trace, from those of its files; without the table ``but``.

    The table ``run`` says when the run was carried out. Without it, a run that is simulated again has the
    same digest.
    """
    tables = sorted(name for name in files if name.endswith(_SUFFIX) and name != f"{but}{_SUFFIX}")
    return hashlib.sha256("\n".join(f"{name} {files[name]}" for name in tables).encode()).hexdigest()[:32]


def files(results: Path) -> list[Path]:
    """The files; raises UsageError if ``parts/`` is a symbolic link."""
    return sorted(names.inside(results, FOLDER).glob(f"*{_SUFFIX}"))


def write(results: Path, rows: Sequence[pl.DataFrame]) -> Path:
    """Writes rows of runs to a new file, which is on the disk when the call returns."""
    folder = names.inside(results, FOLDER)
    if not folder.is_dir():
        folder.mkdir()
        durable.sync(results)
    content = io.BytesIO()
    pl.concat(rows, how="diagonal_relaxed").write_parquet(content)
    path = folder / f"{_digest(content.getvalue())}{_SUFFIX}"
    durable.write(path, content.getvalue())
    return path


def read(results: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[Path, pl.DataFrame]]:
    """The whole files with their rows: all columns, or those of ``columns`` that a file has."""
    return _read(files(results), columns)


def _read(paths: Iterable[Path], columns: Sequence[str] | None = None) -> Iterator[tuple[Path, pl.DataFrame]]:
    for path in paths:
        if (content := _content(path)) is None:
            continue
        with suppress(*UNREADABLE):
            there = pl.read_parquet_schema(content)
            asked = None if columns is None else [name for name in columns if name in there]
            yield path, pl.read_parquet(content, columns=asked)


def lost(results: Path, traces: Iterable[tuple[str, str]]) -> list[str]:
    """Those runs of ``traces``, each with the digest of its trace, that no whole file has."""
    return _lost(results, _frame(traces))["run_key"].to_list()


def _lost(results: Path, asked: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``asked`` that no whole file has."""
    some: list[pl.DataFrame] = []

    def without() -> pl.DataFrame:
        return asked.join(pl.concat(some), on=OF_RUN, how="anti", maintain_order="left") if some else asked

    for _, rows in read(results, OF_RUN) if asked.height else ():
        some.append(rows)
        if sum(each.height for each in some) >= _JOINED:
            asked, some = without(), []
    return without()


def join(results: Path, traces: Callable[[Sequence[str]], Mapping[str, str | None]]) -> None:
    """Makes few files of many small ones; a row stays if ``traces`` has its trace for its run.

    The new file is on the disk before the old ones go, so a reader finds each row at least once.
    """
    small = [(path, rows.height) for path, rows in read(results, OF_RUN) if rows.height < _LARGE]
    if len(small) < _MANY:
        return
    for group in _groups(small):
        rows = pl.concat([rows for _, rows in _read(group)], how="diagonal_relaxed")
        keys = rows["run_key"].to_list()
        wanted = pl.Series(map(traces(keys).get, keys), dtype=pl.String)
        joined = write(results, [rows.filter(pl.col("trace") == wanted).unique(maintain_order=True)])
        for path in group:
            if path != joined:
                path.unlink(missing_ok=True)


def _groups(small: Iterable[tuple[Path, int]]) -> Iterator[list[Path]]:
    group: list[Path] = []
    rows = 0
    for path, height in small:
        group.append(path)
        rows += height
        if rows >= _LARGE:
            yield group
            group, rows = [], 0
    if len(group) > 1:
        yield group


def _frame(traces: Iterable[tuple[str, str]]) -> pl.DataFrame:
    schema = dict.fromkeys(OF_RUN, pl.String)
    some = iter(traces)
    chunks = iter(lambda: list(itertools.islice(some, _LARGE)), [])
    return pl.concat([pl.DataFrame(schema=schema), *(pl.DataFrame(c, schema, orient="row") for c in chunks)])


def faults(results: Path, traces: pl.DataFrame) -> Iterator[Fault]:
    """Damaged files, and runs that no whole file has: ``traces`` has ``key`` and ``trace`` of each."""
    for path in files(results):
        if _content(path) is None:
            yield Fault(path, "damaged", "a damaged file; once it is gone its runs are carried out again")
    if gone := _lost(results, traces.rename({"key": "run_key"}))["run_key"].sort().to_list():
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        found = f"no metrics of the run {gone[0]}{more}; the next `run` carries them out again"
        yield Fault(results / FOLDER, "missing", found)


def _content(path: Path) -> bytes | None:
    """The content of a whole file; None if it is damaged, gone or a symbolic link."""
    try:
        found = b"" if path.is_symlink() else path.read_bytes()
    except OSError:
        return None
    return found if path.name == f"{_digest(found)}{_SUFFIX}" else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
