"""A results folder for reading: the one way in for metrics, statistics, report and export."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.errors import UsageError
from wirepaint.results import journal, manifest, trace

_RUNS = f"""
SELECT key AS run_key, position, {", ".join(journal.AXES)}, visit, warmup, seed,
       state, verdict, reasons, cause, attempts, duration_ns
FROM run ORDER BY position
"""
_RUNS_SCHEMA = {
    "run_key": pl.String,
    "position": pl.Int64,
    **{axis: pl.Int64 if axis == "initial_window" else pl.String for axis in journal.AXES},
    "visit": pl.Int64,
    "warmup": pl.Boolean,
    "seed": pl.Int64,
    "state": pl.String,
    "verdict": pl.String,
    "reasons": pl.String,
    "cause": pl.String,
    "attempts": pl.Int64,
    "duration_ns": pl.Int64,
}


class Results:
    """The results of an evaluation, as far as they are done."""

    def __init__(self, folder: Path, described: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = described

    @classmethod
    def open(cls, folder: Path | str) -> Results:
        """Opens a results folder; raises UsageError when it is none, damaged or of another format."""
        folder = Path(folder)
        return cls(folder, manifest.read(folder))

    @property
    def title(self) -> str:
        return self.manifest["title"]

    @cached_property
    def _all_runs(self) -> pl.DataFrame:
        names, rows = journal.read(self.folder, _RUNS)
        columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
        columns["warmup"] = [bool(value) for value in columns["warmup"]]
        return pl.DataFrame(columns, schema=_RUNS_SCHEMA)

    def runs(self, *states: str) -> pl.DataFrame:
        """One row per run in the order in which they were planned.

        Columns: run_key, position, the axes (``journal.AXES``), visit, warmup, seed, state (planned,
        running, done, failed, skipped), verdict (of a done run), reasons (JSON list), cause (of a
        failed or skipped run), attempts, duration_ns. ``states`` keeps only those states.
        """
        return self._all_runs.filter(pl.col("state").is_in(states)) if states else self._all_runs

    def cannot_count(self) -> dict[str, str]:
        """Why runs were skipped, by the page that cannot count; the first reason of each."""
        skipped = self.runs("skipped").filter(pl.col("cause").str.starts_with(journal.CANNOT_COUNT))
        first = skipped.unique("page", keep="first", maintain_order=True)
        causes = first["cause"].str.strip_prefix(journal.CANNOT_COUNT)
        return dict(zip(first["page"], causes, strict=True))

    def fidelity(self) -> str | None:
        """How true the simulator was on each page in its rehearsals; None without simulated runs."""
        if self.manifest["backend"] == "testbed":
            return None
        agents = self.manifest["evaluation"]["user_agents"]
        found = {agent["page"]: agent.get("rehearsal") for agent in agents}
        known = {page: of["error"] for page, of in found.items() if of and of["error"] is not None}
        said: list[str] = []
        if known:
            errors = ", ".join(
                f"{page} {error:.1%}".replace("%", " %") for page, error in sorted(known.items())
            )
            said.append(f"Simulated page load times in rehearsals kept out of the fit were off by: {errors}.")
        silent = {page for page, of in found.items() if of and page not in known and of.get("judged")}
        if silent:
            said.append(f"The simulator did not load in rehearsals: {', '.join(sorted(silent))}.")
        if unknown := sorted(page for page in found if page not in known and page not in silent):
            said.append(f"Never rehearsed, the recorded causes serve: {', '.join(unknown)}.")
        return " ".join(said)

    def attempts(self) -> pl.DataFrame:
        """One row per attempt: run_key, number, began_unix_ns, ended_unix_ns, outcome, detail."""
        query = "SELECT key AS run_key, number, began_unix_ns, ended_unix_ns, outcome, detail FROM attempt"
        names, rows = journal.read(self.folder, f"{query} ORDER BY began_unix_ns")
        text = {"run_key", "outcome", "detail"}
        schema = {name: pl.String if name in text else pl.Int64 for name in names}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def path(self, run_key: str) -> Path:
        """Folder of a done run."""
        return self.folder / "runs" / run_key

    def trace(self, run_key: str, table: str) -> pl.DataFrame:
        """One table of one run; empty, with all columns, when the run has none."""
        return _read(self.path(run_key), table)

    def all(
        self, table: str, verdicts: tuple[str, ...] = ("valid",), *, warmup: bool = False
    ) -> pl.DataFrame:
        """One table of all done runs with one of ``verdicts``, with the columns run_key, the axes and visit.

        Columns of the table keep their names; those that the axes already hold come once.
        """
        chosen = self.runs("done").filter(pl.col("verdict").is_in(verdicts))
        if not warmup:
            chosen = chosen.filter(~pl.col("warmup"))
        conditions = ["run_key", *journal.AXES, "visit"]
        frames = []
        for run in chosen.select(conditions).iter_rows(named=True):
            frame = _read(self.path(run["run_key"]), table)
            literals = [pl.lit(value, dtype=_RUNS_SCHEMA[name]).alias(name) for name, value in run.items()]
            frames.append(frame.select(*literals, pl.exclude(conditions)))
        if frames:
            return pl.concat(frames)
        empty = {name: _RUNS_SCHEMA[name] for name in conditions}
        return pl.DataFrame(schema=empty | dict(trace.polars_schema(table)) | empty)

    def calibrations(self) -> dict[str, dict[str, Any]]:
        """What was measured of each network before its first run, by name."""
        folder = self.folder / "calibration"
        files = sorted(folder.glob("*.json")) if folder.is_dir() else []
        return {file.stem: json.loads(file.read_bytes()) for file in files}


def _read(folder: Path, table: str) -> pl.DataFrame:
    try:
        return trace.read_table(folder, table)
    except (pl.exceptions.PolarsError, OSError) as error:
        place = str(folder / f"{table}.parquet")
        cause = str(error).splitlines()[0]
        raise UsageError(place, f"a file that cannot be read ({cause})", "a table of a run's trace") from None
