"""The tables of simulated runs whose traces nobody keeps: in one file for all runs of a process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.errors import RunFailed
from wirepaint.results import trace


class Collected:
    """What the simulator said of the tables of runs, for :class:`wirepaint.runners.simulator.Session`."""

    def __init__(self, place: Path, columns: Mapping[str, Sequence[str] | None]) -> None:
        """The files are in ``place``. Of the tables in ``columns`` these columns are read, or all."""
        self._place, self._columns = place, columns
        self._process = itertools.count()
        self._rows: dict[str, tuple[Path, Mapping[str, Mapping[str, int]]]] = {}
        self._own: dict[str, pl.DataFrame] = {}
        self._read = cache(self._whole)
        self._empty = cache(trace.empty)

    def begin(self) -> tuple[Path, Sequence[str]]:
        """Where the next process is to collect, and which tables."""
        self._folder = self._place / f"process-{next(self._process)}"
        self._folder.mkdir()
        return self._folder, list(self._columns)

    def add(self, key: str, said: Mapping[str, Any]) -> None:
        """Takes the end of a run."""
        self._rows[key] = self._folder, said["rows"]

    def put(self, key: str, run: pl.DataFrame) -> None:
        """Takes the table ``run`` of a run."""
        self._own[key] = run

    def trace(self, key: str) -> Callable[[str], pl.DataFrame]:
        """The tables of a run by name, once the process has ended; one that it lacks is empty."""
        return cache(partial(self._table, key))

    def _table(self, key: str, name: str) -> pl.DataFrame:
        if name == "run":
            return self._own.get(key, self._empty(name))
        folder, tables = self._rows[key]
        rows = tables.get(name)
        if rows is None:
            return self._empty(name)
        found = self._read(folder, name).slice(rows["first"], rows["number"])
        if found.height != rows["number"]:
            raise RunFailed(f"{_file(name)} of the simulator lacks rows of {key}")
        return found

    def _whole(self, folder: Path, name: str) -> pl.DataFrame:
        columns = self._columns[name]
        rows = pl.read_ipc_stream(folder / _file(name), columns=None if columns is None else list(columns))
        return rows.rechunk()  # a slice of one chunk costs half of one of a hundred


def _file(table: str) -> str:
    """Name of the file with a table of all runs of a process."""
    return f"{table}.arrows"
