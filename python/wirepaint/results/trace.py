"""Reads and writes the tables of a trace, by the schema of the data plane."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.errors import UsageError

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""Exceptions of Polars for a file that is no table."""
_FILE = "path of the file"
_TYPES: dict[str, type[pl.DataType]] = {
    "int64": pl.Int64,
    "float64": pl.Float64,
    "utf8": pl.String,
    "boolean": pl.Boolean,
}


@cache
def tables() -> dict[str, dict[str, Any]]:
    """Tables of the trace by name, from the data plane's schema (schema/trace.json)."""
    text = resources.files("wirepaint").joinpath("schema/trace.json").read_text("utf-8")
    return {table["name"]: table for table in json.loads(text)}


@cache
def polars_schema(name: str) -> pl.Schema:
    """Column names and types of a table."""
    return pl.Schema({column["name"]: _TYPES[column["type"]]() for column in tables()[name]["columns"]})


def write_table(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Writes ``folder/name.parquet``; the store syncs it with the run's other files.

    Missing columns of a row are null; raises ``KeyError`` for a column that the table lacks.
    """
    return write_frame(folder, name, table(name, rows))


def table(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as the table ``name``; see :func:`write_table`."""
    schema = polars_schema(name)
    rows = [dict(row) for row in rows]
    if unknown := {key for row in rows for key in row} - set(schema):
        raise KeyError(f"table {name} has no column {sorted(unknown)}")
    columns = {key: [row.get(key) for row in rows] for key in schema}
    return pl.DataFrame(columns, schema=schema, strict=True)


def write_frame(folder: Path, name: str, frame: pl.DataFrame) -> Path:
    """Writes a frame with the columns of the table, in any order."""
    path = folder / f"{name}.parquet"
    schema = polars_schema(name)
    if frame.schema != schema:
        frame = frame.select(pl.col(column).cast(dtype) for column, dtype in schema.items())
    content = io.BytesIO()  # into a file, Polars writes by threads that it has to wake
    frame.write_parquet(content)
    path.write_bytes(content.getbuffer())
    return path


def read_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """One table of a run, or some of its columns; empty if the run has none."""
    path = folder / f"{name}.parquet"
    if path.exists():
        return pl.read_parquet(path, columns=list(columns) if columns else None, glob=False)
    return empty(name).select(columns or pl.all())


def read_file(path: Path | None, name: str) -> pl.DataFrame:
    """The table ``name`` in a file; empty without a file.

    Raises UsageError if the file cannot be read or has other columns than the table.
    """
    if path is None:
        return empty(name)
    try:
        frame = pl.read_parquet(path, glob=False)
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    _check_columns(path, name, frame.schema)
    return frame


def read_files(
    paths: Mapping[str, Sequence[Path]], columns: Mapping[str, Sequence[str]] | None = None
) -> dict[str, list[pl.DataFrame]]:
    """Tables by name, each in several files, read at once; of those in ``columns`` only these columns.

    Raises UsageError as :func:`read_file`; not for a fault in a column that is not read.
    """
    asked = {name: list((columns or {}).get(name, polars_schema(name))) for name in paths}
    given = {name: list(files) for name, files in paths.items() if files}
    scans = [
        pl.scan_parquet(files, glob=False, include_file_paths=_FILE, schema=polars_schema(name)).select(
            *asked[name], _FILE
        )
        for name, files in given.items()
    ]
    try:
        found = dict(zip(given, pl.collect_all(scans), strict=True))
    except UNREADABLE:
        found = {}
    return {name: _apart(name, files, asked[name], found.get(name)) for name, files in paths.items()}


def _apart(
    name: str, paths: Sequence[Path], columns: list[str], every: pl.DataFrame | None
) -> list[pl.DataFrame]:
    """The rows of each file. Files that could not be read at once are read one by one: that names the file at
    fault."""
    if every is not None:
        # Rows of one file follow each other.
        rows = {path: length for length, path in every[_FILE].rle().struct.unnest().iter_rows()}
        lengths = [rows.get(str(path), 0) for path in paths]
        if sum(lengths) == every.height:  # Polars may name a file otherwise: its rows would be lost
            starts = itertools.accumulate(lengths, initial=0)
            every = every[columns]
            return [every.slice(start, length) for start, length in zip(starts, lengths, strict=False)]
    return [read_file(path, name).select(columns) for path in paths]


def empty(name: str) -> pl.DataFrame:
    """The table ``name`` without a row."""
    return pl.DataFrame(schema=polars_schema(name))


def scan_file(path: Path, name: str) -> pl.LazyFrame:
    """The table ``name`` in a file as a lazy frame; raises UsageError as :func:`read_file`."""
    try:
        frame = pl.scan_parquet(path, glob=False)
        _check_columns(path, name, frame.collect_schema())
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    return frame


def unreadable(path: Path, error: BaseException) -> UsageError:
    """The error for a file that is no table."""
    cause = (str(error).splitlines() or [type(error).__name__])[0]
    return UsageError(str(path), f"a file that cannot be read ({cause})", "a table of a run's trace")


def _check_columns(path: Path, name: str, found: pl.Schema) -> None:
    asked = polars_schema(name)
    for column in dict.fromkeys([*asked, *found]):
        if asked.get(column) != found.get(column):
            was = f"the type {found[column]}" if column in found else "nothing"
            accepted = f"the type {asked[column]}" if column in asked else f"a column of the table {name}"
            raise UsageError(f"{path}: column {column}", was, accepted)


def main_link(link: pl.DataFrame) -> pl.DataFrame:
    """The rows of the table ``link`` that are of the scenario's network: the run's first segment."""
    return link.filter(pl.col("segment").eq_missing(pl.col("segment").first()))
