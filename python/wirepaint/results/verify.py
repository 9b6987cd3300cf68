"""``wirepaint verify``: hashes everything in results folders again and says what is whole and what is not."""

from __future__ import annotations

import itertools
import os
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.errors import UsageError
from wirepaint.printing import command_line, print_json
from wirepaint.results import calibration, journal_tables, manifest, measured, parts
from wirepaint.results.contents import Contents, Fault

_AT_ONCE = 20_000
"""Rows of the journal in memory as Python has them."""
MOST_LINES = 20
"""Faults of a folder, and runs to remove, that are printed."""


@dataclass
class Verified:
    """The findings on one results folder; ``whole`` and ``done`` are numbers of runs."""

    folder: Path
    faults: list[Fault] = field(default_factory=list)
    planned: int = 0
    done: int = 0
    whole: int = 0
    damaged: list[Path] = field(default_factory=list)
    """Folders of the runs that are not whole, of those that are there."""
    is_described: bool = False
    """Whether its manifest is whole, so that `run` can go on with it."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "results": str(self.folder),
            "planned": self.planned,
            "done": self.done,
            "whole": self.whole,
            "faults": [
                {"path": _text(fault.path), "kind": fault.kind, "found": fault.found} for fault in self.faults
            ],
        }


def command(folders: Sequence[Path], json: bool) -> None:
    """``wirepaint verify``: raises UsageError unless all is whole."""
    found = [verify(folder) for folder in folders]
    if json:
        print_json([one.as_dict() for one in found])
    else:
        for one in found:
            print("\n".join(_lines(one)))
    faults = [fault for one in found for fault in one.faults]
    if faults:
        kinds = ("damaged", "missing", "foreign")
        counts = {kind: sum(fault.kind == kind for fault in faults) for kind in kinds}
        said = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
        place = ", ".join(str(one.folder) for one in found if one.faults)
        raise UsageError(place, said, "results as they were kept")


def verify(folder: Path) -> Verified:
    """Finds all faults of a results folder, without the attempts that were set aside."""
    found = Verified(folder)
    # Listed before the journal is read, so that the journal knows a run that ends in between.
    there = _entries(folder / "runs")
    try:
        described = manifest.read(folder)
        found.is_described = True
    except UsageError as error:
        found.faults.append(_fault(folder / manifest.NAME, error))
        described = None
    if described is not None:
        try:
            manifest.evaluation(folder, described)
        except UsageError as error:
            found.faults.append(_fault(folder / manifest.EVALUATION, error))
    try:
        with journal_tables.reading(folder) as (db, path):
            for (said,) in db.execute("PRAGMA integrity_check(1)"):
                if said != "ok":
                    found.faults.append(Fault(path, "damaged", f"a damaged file ({said})"))
            planned = journal_tables.planned(db, path)
            rows, calibrations = _rows(db, path), journal_tables.calibrations(db, path)
    except UsageError as error:
        found.faults.append(_fault(folder / journal_tables.NAME, error))
        return found
    found.planned = planned.number
    if described is not None:
        try:
            keys = rows.every["key"].head(planned.number)
            journal_tables.check_plan(planned, described["journal"], keys, path)
        except UsageError as error:
            found.faults.append(_fault(path, error))
    found.faults += _of_calibration(folder, calibrations)
    try:
        found.faults += measured.faults(folder)
    except UsageError as error:
        found.faults.append(_fault(folder / measured.FOLDER, error))
    thin = rows.every.drop_nulls("trace")
    try:
        lost = list(parts.faults(folder, thin))
    except UsageError as error:
        lost = [_fault(folder / parts.FOLDER, error)]
    found.faults += lost
    found.done += thin.height
    found.whole += 0 if lost else thin.height
    for key, files in rows.kept.items():
        _check_run(found, folder / "runs" / key, files)
    known = rows.kept.keys() | rows.running
    for name in there:
        # ``.partial-``: a run in progress, or the rest of a killed command, which the next one removes.
        if name not in known and not name.startswith(".partial-"):
            found.faults.append(Fault(folder / "runs" / name, "foreign", "no run that is done"))
    return found


@dataclass(frozen=True)
class _Rows:
    """The runs of a journal: of all of them key and trace, for there may be a million without a folder."""

    every: pl.DataFrame
    """``key`` and ``trace``, the digest of a trace that was not kept, in the order of the journal."""
    kept: dict[str, dict[str, str]]
    """The files of the done runs whose traces were kept."""
    running: set[str]


def _rows(db: sqlite3.Connection, path: Path) -> _Rows:
    """Raises UsageError for a damaged row."""
    kept: dict[str, dict[str, str]] = {}
    running: set[str] = set()

    def cells() -> Iterator[tuple[str, str | None]]:
        for row in journal_tables.runs(db, path):
            if row["trace"] is None and row["state"] == "done":
                kept[row["key"]] = row["files"]
            elif row["trace"] is None and row["state"] == "running":
                running.add(row["key"])
            yield row["key"], row["trace"]

    schema = {"key": pl.String, "trace": pl.String}
    some = cells()
    chunks = iter(lambda: list(itertools.islice(some, _AT_ONCE)), [])
    every = [pl.DataFrame(schema=schema), *(pl.DataFrame(chunk, schema, orient="row") for chunk in chunks)]
    return _Rows(pl.concat(every), kept, running)


def _check_run(found: Verified, folder: Path, files: dict[str, str]) -> None:
    found.done += 1
    try:
        faults = list(Contents(folder, files).faults())
    except UsageError as error:
        faults = [_fault(folder, error)]
    if faults:
        found.faults += faults
        if os.path.lexists(folder):
            found.damaged.append(folder)
    else:
        found.whole += 1


def _of_calibration(folder: Path, texts: dict[calibration.Place, str]) -> Iterator[Fault]:
    for place, text in texts.items():
        try:
            fault = calibration.fault(folder, place, text)
        except UsageError as error:
            fault = _fault(folder / calibration.FOLDER, error)
        if fault:
            yield fault
    hosts = {place.host for place in texts}
    for host in _entries(folder / calibration.FOLDER):
        path = folder / calibration.FOLDER / host
        if host not in hosts:
            yield Fault(path, "foreign", "no host that measured")
        for name in _entries(path):
            if calibration.Place(name.removesuffix(".json"), host) not in texts and host in hosts:
                yield Fault(path / name, "foreign", "no network that was measured")


def _entries(folder: Path) -> list[str]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir())


def _fault(path: Path, error: UsageError) -> Fault:
    kind = "missing" if error.found.startswith("no such") else "damaged"
    within = "" if error.place == str(path.parent) else error.place.removeprefix(str(path)).removeprefix(": ")
    return Fault(path, kind, f"{within}: {error.found}" if within else error.found)


def _lines(found: Verified) -> Iterator[str]:
    yield f"{found.folder}: {found.whole} of {found.done} runs whole" + (
        f", {found.planned} planned" if found.planned > found.done else ""
    )
    for fault in found.faults[:MOST_LINES]:
        yield f"  {fault.kind}  {_text(fault.path.relative_to(found.folder))}: {fault.found}"
    if (more := len(found.faults) - MOST_LINES) > 0:
        yield f"  and {more} more (--json has all)"
    if found.done == found.whole or not found.is_described:
        return
    runs = found.folder / "runs"
    if not runs.is_dir():
        yield f"To carry all runs out again, make {_text(runs)}, an empty folder. Then:"
    elif found.damaged:
        yield "These runs are carried out again once their folders are gone:"
        yield f"  rm -r {shlex.join(_text(folder) for folder in found.damaged[:MOST_LINES])}"
        if (more := len(found.damaged) - MOST_LINES) > 0:
            yield f"  and {more} more, which verify names once these are gone"
    else:
        yield "The missing runs are carried out again:"
    yield f"  {command_line('run', _text(found.folder))}"


def _text(path: Path) -> str:
    """A path that can be printed, with any bytes in its name."""
    return str(path).encode("utf-8", "backslashreplace").decode()
