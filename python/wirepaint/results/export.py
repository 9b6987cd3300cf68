"""Results in the forms of other programs: CSV, Parquet, HAR 1.2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from wirepaint import metrics
from wirepaint.errors import UsageError
from wirepaint.results import har, journal
from wirepaint.results.reader import Results
from wirepaint.results.trace import polars_schema, tables

CONDITIONS = ("run_key", *journal.AXES, "visit")
"""Columns that every exported table begins with."""


def export(results_dir: Path, to: str, out: Path) -> list[Path]:
    """Writes the results in the form ``to`` into the folder ``out`` and returns the files.

    ``csv`` and ``parquet``: one file per table of the trace with all runs that have a result, and
    ``metrics``, which explains the metrics' columns of ``page``. ``page`` has a row for every run
    that ended: the scenario's axes, ``valid``, ``verdict`` and ``reasons``, the cause of a failure,
    every metric, and the visit's instants. ``har``: one file per run.

    Files of the same name are replaced.
    """
    if to not in FORMS:
        raise UsageError("--to", repr(to), ", ".join(FORMS))
    results = Results.open(results_dir)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(str(out), str(error.strerror).lower(), "a folder that can be written") from None
    return FORMS[to](results, out)


def _csv(results: Results, out: Path) -> list[Path]:
    return _tables(results, out, "csv", lambda frame, path: frame.sink_csv(path))


def _parquet(results: Results, out: Path) -> list[Path]:
    return _tables(results, out, "parquet", lambda frame, path: frame.sink_parquet(path))


def _har(results: Results, out: Path) -> list[Path]:
    done = results.runs("done")
    return [har.write(results, run, out / f"{run['run_key']}.har") for run in done.iter_rows(named=True)]


FORMS: dict[str, Callable[[Results, Path], list[Path]]] = {"csv": _csv, "parquet": _parquet, "har": _har}


def _tables(
    results: Results, out: Path, suffix: str, sink: Callable[[pl.LazyFrame, Path], object]
) -> list[Path]:
    """All tables; streamed from disk to disk, so that a trace of packets need not fit into memory."""
    written = []
    for name in tables():
        frame = pages(results).lazy() if name == "page" else _all_runs(results, name)
        path = out / f"{name}.{suffix}"
        sink(frame, path)
        written.append(path)
    path = out / f"metrics.{suffix}"
    sink(_explained().lazy(), path)
    return [*written, path]


def _all_runs(results: Results, table: str) -> pl.LazyFrame:
    """One table of all runs that have a result, warm-ups and invalid ones included."""
    runs = results.runs("done").select(CONDITIONS)
    own = [column for column in polars_schema(table) if column not in CONDITIONS]
    empty = pl.LazyFrame(schema=dict(runs.schema) | {name: polars_schema(table)[name] for name in own})
    frames = [empty]
    for run in runs.iter_rows(named=True):
        path = results.path(run["run_key"]) / f"{table}.parquet"
        if path.exists():
            conditions = [pl.lit(value, dtype=runs.schema[name]).alias(name) for name, value in run.items()]
            frames.append(pl.scan_parquet(path).select(*conditions, *own))
    return pl.concat(frames)


def pages(results: Results) -> pl.DataFrame:
    """The table ``page``: a row for every run that ended, with its metrics."""
    measured = metrics.table(results, verdicts=None)
    visits = results.all("page", ("valid", "suspect", "invalid"), warmup=True)
    instants = [column for column in visits.columns if column not in measured.columns]
    return measured.join(visits.select("run_key", *instants), on="run_key", how="left", maintain_order="left")


def _explained() -> pl.DataFrame:
    """What the metrics' columns mean: column, title, unit, better, source, summary."""
    return pl.DataFrame(
        [
            {
                "column": metric.column,
                "title": metric.title,
                "unit": metric.unit,
                "better": metric.better,
                "source": metric.source,
                "summary": metric.summary,
            }
            for metric in metrics.registry().values()
        ],
        infer_schema_length=None,
    )
