"""Reads a results folder: the only access for metrics, statistics, report and export."""

from __future__ import annotations

import itertools
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.errors import UsageError, show
from wirepaint.pages.show import is_busy
from wirepaint.printing import command_line, counted, say
from wirepaint.results import calibration, journal, journal_tables, manifest, names, trace
from wirepaint.results.contents import Contents

_RUNS_SCHEMA = {
    "run_key": pl.String,
    "position": pl.Int64,
    **{axis: pl.Int64 if of is int else pl.String for axis, of in journal_tables.AXES.items()},
    "visit": pl.Int64,
    "warmup": pl.Boolean,
    "seed": pl.Int64,
    "state": pl.String,
    "verdict": pl.String,
    "reasons": pl.String,
    "cause": pl.String,
    "kind": pl.String,
    "attempts": pl.Int64,
    "duration_ns": pl.Int64,
    "host": pl.String,
}


_JOURNAL = {
    "key": pl.String,
    **{name: of for name, of in _RUNS_SCHEMA.items() if name != "run_key"},
    "warmup": pl.Int64,
    "files": pl.String,
    "trace": pl.String,
}
_JOURNAL = {name: _JOURNAL[name] for name in journal_tables.COLUMNS}
_AT_ONCE = 20_000
"""Rows of the journal in memory as Python has them."""
_FEW = pl.Categorical()
_COMPACT: dict[Any, Any] = {
    name: _FEW for name, of in _JOURNAL.items() if of == pl.String and name not in ("key", "files", "trace")
}
"""Columns in which many runs have the same text: in memory each text is there once."""


def examined(folder: Path) -> Results:
    """As :meth:`Results.open`, for a command that reads: it says on stderr if folders of runs are missing."""
    results = Results.open(folder)
    if missing := results.without_folder:
        verb = "is" if missing == 1 else "are"
        then = f"{command_line('verify', str(folder))} tells which"
        say(f"{folder}: {counted(missing, 'run folder')} {verb} missing; {then}.")
    return results


class Results:
    """The results of an evaluation so far."""

    def __init__(self, folder: Path, described: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = described
        self._checked: dict[str, Contents | None] = {}

    @classmethod
    def open(cls, folder: Path | str) -> Results:
        """Opens a results folder; raises UsageError if it is none, damaged or of another format."""
        folder = Path(folder)
        return cls(folder, manifest.read(folder))

    @property
    def title(self) -> str:
        return self.manifest["title"]

    @property
    def evaluation(self) -> str:
        """The evaluation file as it was carried out."""
        return manifest.evaluation(self.folder, self.manifest)

    @cached_property
    def _rows(self) -> pl.DataFrame:
        """The journal's rows of the evaluation's runs, in order; raises UsageError if one is missing."""
        planned, journalled = self._journalled
        rows = journalled.head(planned.number)
        path = self.folder / journal_tables.NAME
        journal_tables.check_plan(planned, self.manifest["journal"], rows["key"], path)
        if odd := set(rows["scenario"].unique()) - self.manifest["evaluation"]["scenarios"].keys():
            found = f"runs of {min(odd)}, which the manifest does not name"
            accepted = (
                "the journal of this folder; if a `run` with it was killed, the same command completes it"
            )
            raise UsageError(str(path), found, accepted)
        return rows

    @cached_property
    def _journalled(self) -> tuple[journal_tables.Planned, pl.DataFrame]:
        """Which runs are the evaluation's, and all rows of the journal in order."""
        columns = [pl.DataFrame(schema=_JOURNAL).cast(_COMPACT)]
        with journal_tables.reading(self.folder) as (db, path):
            planned, cells = journal_tables.planned(db, path), journal_tables.checked(db, path)
            try:
                while some := list(itertools.islice(cells, _AT_ONCE)):
                    by_column = dict(zip(_JOURNAL, zip(*some, strict=True), strict=True))
                    columns.append(pl.DataFrame(by_column, schema=_JOURNAL).cast(_COMPACT))
            except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
                raise journal_tables.damaged(path, error) from None
        rows = pl.concat(columns)
        for key, reasons in rows.select("key", "reasons").unique("reasons", keep="first").iter_rows():
            journal_tables.parsed(reasons, list, f"{path}: run {key}")
        return planned, rows

    @property
    def unasked(self) -> int:
        """Number of runs that ended and that the evaluation no longer asks for: no reader counts them."""
        others = self._journalled[1].slice(self._rows.height)
        return others.filter(pl.col("state").is_in(["done", "failed"])).height

    @property
    def without_folder(self) -> int:
        """Number of done runs whose traces were kept and whose folders are gone.

        What is kept of them in ``metrics/`` can be read all the same.
        """
        kept = self._rows.filter((pl.col("files") != journal.NO_FILES).fill_null(False))["key"]
        folder = self.folder / "runs"
        there = [each.name for each in folder.iterdir()] if kept.len() and folder.is_dir() else []
        return kept.filter(~kept.is_in(there)).len()

    @cached_property
    def _all_runs(self) -> pl.DataFrame:
        rows = self._rows.rename({"key": "run_key"}).with_columns(pl.col("warmup").cast(pl.Boolean))
        return rows.select(*_RUNS_SCHEMA)

    def compact(self, *states: str) -> pl.DataFrame:
        """As :meth:`runs`, in less memory: texts that many runs share are categoricals."""
        return self._all_runs.filter(pl.col("state").is_in(states)) if states else self._all_runs

    @cached_property
    def thin(self) -> pl.DataFrame:
        """The done runs whose traces were not kept: ``run_key``, and the digest of its ``trace``."""
        return self._rows.filter(pl.col("trace").is_not_null()).select(run_key="key", trace="trace")

    def with_trace(self, runs: pl.DataFrame) -> pl.DataFrame:
        """Those of ``runs``, with the column ``run_key``, whose traces were kept."""
        return runs.join(self.thin, on="run_key", how="anti", maintain_order="left")

    @cached_property
    def _files(self) -> dict[str, str | None]:
        """For each run of the evaluation its files as JSON; None for a run that is not done."""
        return dict(self._rows.select("key", "files").iter_rows())

    def _digests(self, run_key: str) -> dict[str, str]:
        text = self._files[run_key]
        place = f"{self.folder / journal_tables.NAME}: run {run_key}"
        return {} if text is None else journal_tables.parsed(text, dict, place)

    def has_trace(self, run_key: str) -> bool:
        """Whether the trace of a run was kept; False, too, for a run that is not done."""
        return bool(self._digests(run_key))

    def _contents(self, run_key: str) -> Contents | None:
        """The files of a run; None for a run that is not done, or whose trace was not kept."""
        if run_key not in self._checked:
            files = self._digests(run_key)
            folder = self.folder / "runs" / run_key
            self._checked[run_key] = Contents(folder, files) if files else None
        return self._checked[run_key]

    def runs(self, *states: str) -> pl.DataFrame:
        """One row per run in the order in which they were planned.

        Columns: run_key, position, the axes (``journal_tables.AXES``), visit, warmup, seed, state (planned,
        running, done, failed, skipped), verdict (of a done run), reasons (JSON list), cause (of a
        failed or skipped run), kind (of a failed run: ``journal.Kind``), attempts, duration_ns, host (whose
        testbed carried it out; null for a simulated run). ``states`` selects rows by state.
        """
        return self.compact(*states).cast(dict[Any, Any](_RUNS_SCHEMA))

    def cannot_count(self) -> dict[str, str]:
        """The pages that cannot count, each with the first reason."""
        skipped = self.runs("skipped").filter(pl.col("cause").str.starts_with(journal.CANNOT_COUNT))
        first = skipped.unique("page", keep="first", maintain_order=True)
        causes = first["cause"].str.strip_prefix(journal.CANNOT_COUNT)
        return dict(zip(first["page"], causes, strict=True))

    def rehearsals(self) -> dict[str, dict[str, Any] | None]:
        """The rehearsal of each page that runs load, by its name; None for a page that was never rehearsed.

        The https version of a page of plain http has its own: "NAME by https".
        """
        found: dict[str, dict[str, Any] | None] = {}
        for agent in self.manifest["evaluation"]["user_agents"]:
            found[agent["page"]] = agent.get("rehearsal")
            if "rehearsal_by_https" in agent:
                found[f"{agent['page']} by https"] = agent["rehearsal_by_https"]
        return found

    def replay_in_part(self) -> list[str]:
        """In words, the pages of which more than a tenth of the recorded requests is left out."""
        return [
            f"{of['requests'] - of['left_out']} of {of['requests']} requests of {page} replay"
            for page, of in self.rehearsals().items()
            if of and 10 * of["left_out"] > of.get("requests", 10 * of["left_out"])
        ]

    def fidelity(self) -> str | None:
        """In words, the simulator's error on each page in its rehearsals, and which of these were disturbed.

        None without simulated runs.
        """
        if self.manifest["backend"] == "testbed":
            return None
        found = self.rehearsals()
        known = {page: of["error"] for page, of in found.items() if of and of["error"] is not None}
        said: list[str] = []
        if known:
            largest = sorted(known.items(), key=lambda one: (-one[1], one[0]))
            errors = ", ".join(f"{page} {100 * error:.1f} %" for page, error in largest)
            said.append(f"Simulated page load times in rehearsals kept out of the fit were off by: {errors}.")
        silent = {page for page, of in found.items() if of and page not in known and of.get("judged")}
        if silent:
            said.append(f"The simulator did not load in rehearsals: {', '.join(sorted(silent))}.")
        if unknown := sorted(page for page in found if page not in known and page not in silent):
            said.append(f"Never rehearsed, the recorded causes serve: {', '.join(unknown)}.")
        busy = {page: of["others_cpu"] for page, of in found.items() if of and is_busy(of.get("others_cpu"))}
        if busy:
            shares = ", ".join(f"{page} {100 * others:.0f} %" for page, others in sorted(busy.items()))
            then = (
                "rehearse again on a calm machine: recordings by wirepaint run with another folder (-o), "
                "page folders by wirepaint page rehearse"
            )
            said.append(f"Rehearsed while others had much of the CPU time: {shares}; {then}.")
        return " ".join(said)

    def upgraded(self) -> str | None:
        """In words, the pages of plain http that HTTP/2 asks for by https beside HTTP/1.1, which does not.

        None if there are none.
        """
        agents = self.manifest["evaluation"]["user_agents"]
        pages = sorted({agent["page"] for agent in agents if "page_by_https_sha256" in agent})
        if not pages:
            return None
        return (
            f"Recorded over plain http, at least in part: {', '.join(pages)}. Browsers speak HTTP/2 over TLS "
            "only, so h2 asks by https and its visits have TLS handshakes that those of h1 lack."
        )

    def attempts(self) -> pl.DataFrame:
        """One row per attempt: run_key, number, began_unix_ns, ended_unix_ns, outcome, detail."""
        query = "SELECT key AS run_key, number, began_unix_ns, ended_unix_ns, outcome, detail FROM attempt"
        with journal_tables.reading(self.folder) as (db, path):
            cursor = db.execute(f"{query} ORDER BY began_unix_ns")
            columns, rows = [column[0] for column in cursor.description], cursor.fetchall()
        text = {"run_key", "outcome", "detail"}
        schema = {name: pl.String if name in text else pl.Int64 for name in columns}
        try:
            return pl.DataFrame(rows, schema=schema, orient="row")
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
            raise journal_tables.damaged(path, error) from None

    def path(self, run_key: str) -> Path:
        """Folder of a done run."""
        return names.inside(self.folder, "runs", names.run_key(run_key, str(self.folder)))

    def files(self, run_key: str) -> list[str]:
        """Relative paths of all files of a done run."""
        contents = self._contents(run_key)
        return contents.files if contents else []

    def digests(self, run_key: str) -> dict[str, str]:
        """Digests of all files of a done run by their relative paths, as they were when it ended."""
        found = self._digests(run_key)
        place = f"{self.folder}/runs/{run_key}"
        for name in found:
            names.file(name, place)
        return found

    def file(self, run_key: str, name: str) -> Path | None:
        """Path of an unchanged file of a run; None if the run had no such file.

        Raises UsageError if it has changed, if files of the run are missing or added, or if the run's trace
        was not kept.
        """
        if run_key not in self._files:
            raise UsageError(str(self.folder), f"no run {show(run_key)}", "a run key of these results")
        if self._files[run_key] == journal.NO_FILES:
            accepted = (
                f"a run whose trace was kept; `wirepaint run {self.folder} --only {run_key}` brings it back"
            )
            raise UsageError(f"{self.folder}: {run_key}", "no trace: results.keep left it out", accepted)
        contents = self._contents(run_key)
        return contents and contents.path(name)

    def check(self, run_key: str) -> None:
        """Checks all files of a done run; raises UsageError for the first that has changed."""
        if contents := self._contents(run_key):
            contents.check()

    def trace(self, run_key: str, table: str) -> pl.DataFrame:
        """One table of one run; empty, with all columns, if the run had none.

        Raises UsageError if the table has changed, or if the run's trace was not kept.
        """
        return trace.read_file(self.file(run_key, f"{table}.parquet"), table)

    def scan(self, run_key: str, table: str) -> pl.LazyFrame | None:
        """The same table as a lazy frame; None if the run had none."""
        path = self.file(run_key, f"{table}.parquet")
        return None if path is None else trace.scan_file(path, table)

    def all(
        self, table: str, verdicts: tuple[str, ...] = ("valid",), *, warmup: bool = False
    ) -> pl.DataFrame:
        """One table of all done runs with one of ``verdicts``, with the columns run_key, the axes and visit.

        Runs whose traces were not kept are left out; raises UsageError if that is all of them.
        Columns of the table keep their names; columns that are also axes occur once.
        """
        chosen = self.runs("done").filter(pl.col("verdict").is_in(verdicts))
        if not warmup:
            chosen = chosen.filter(~pl.col("warmup"))
        kept = self.with_trace(chosen)
        if chosen.height and not kept.height:
            accepted = "results with traces (results.keep), or wirepaint.open(...).metrics()"
            raise UsageError(str(self.folder), f"no trace of {chosen.height} runs", accepted)
        conditions = ["run_key", *journal_tables.AXES, "visit"]
        frames = []
        for run in kept.select(conditions).iter_rows(named=True):
            frame = self.trace(run["run_key"], table)
            literals = [pl.lit(value, dtype=_RUNS_SCHEMA[name]).alias(name) for name, value in run.items()]
            frames.append(frame.select(*literals, pl.exclude(conditions)))
        if frames:
            return pl.concat(frames)
        empty = {name: _RUNS_SCHEMA[name] for name in conditions}
        return pl.DataFrame(schema=empty | dict(trace.polars_schema(table)) | empty)

    def calibrations(self) -> dict[calibration.Place, dict[str, Any]]:
        """The calibration of each network on each host before its first run there."""
        with journal_tables.reading(self.folder) as (db, path):
            texts = journal_tables.calibrations(db, path)
        for place, text in texts.items():
            if fault := calibration.fault(self.folder, place, text):
                raise fault.error()
        return {place: json.loads(text) for place, text in texts.items()}
