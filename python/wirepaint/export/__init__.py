"""Exports results in formats of other programs: CSV, Parquet, HAR 1.2, pcapng, OpenMetrics."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import polars as pl

from wirepaint import metrics
from wirepaint.errors import UsageError, show
from wirepaint.export import har, openmetrics, packets
from wirepaint.reading import nearest
from wirepaint.results import captures, journal_tables, names
from wirepaint.results.reader import Results, examined
from wirepaint.results.trace import UNREADABLE, polars_schema, tables

CONDITIONS = ("run_key", *journal_tables.AXES, "visit")
_WHOSE = ("run_key", "user_agent", "page")
"""First columns of every exported table."""


def export(results_dir: Path, to: str, out: Path, only: Sequence[str] = ()) -> list[Path]:
    """Writes the results in the format ``to`` into the folder ``out`` and returns the files.

    ``csv`` and ``parquet``: one file per table of the trace with all runs that have a result, and
    ``metrics``, which explains the metrics' columns of ``page``. ``page`` has a row for every run
    that ended: the scenario's axes, ``valid``, ``verdict`` and ``reasons``, kind and cause of a failure,
    every metric, and the visit's instants. ``har``: one file per run. ``pcapng``: one file per run, user and
    side, from its captures or, where it has none, from its table ``packet``; runs with neither have no file.
    ``openmetrics``: one file with the medians of the counted visits. ``only`` are the tables to write, all
    when empty.

    Files of the same name are replaced. Raises UsageError before anything is written if results are missing
    or damaged, or if no run has packets for ``pcapng``.
    """
    if to not in FORMS:
        raise UsageError("--to", show(to), nearest(to, FORMS))
    if only and to not in OF_TABLES:
        raise UsageError(
            "--table", f"{', '.join(only)} with --to {to}", f"--to {' or --to '.join(OF_TABLES)}"
        )
    for name in only:
        if name not in (known := (*tables(), EXPLAINED)):
            raise UsageError("--table", show(name), nearest(name, known))
    results = examined(results_dir)
    for key in results.runs("done")["run_key"]:
        results.check(key)
    if out.parent.absolute() == results_dir.absolute():
        names.inside(results_dir, out.name)
    write = FORMS[to](results, only)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(str(out), str(error.strerror).lower(), "a folder that can be written") from None
    return write(out)


Write = Callable[[Path], list[Path]]
"""Writes the checked results into a folder."""


def _with_trace(results: Results) -> pl.DataFrame:
    """The done runs whose traces were kept; raises UsageError if none was."""
    done = results.runs("done")
    kept = results.with_trace(done)
    if done.height and not kept.height:
        accepted = "results with traces (results.keep), or --table page, or --to openmetrics"
        raise UsageError(str(results.folder), f"no trace of {done.height} runs", accepted)
    return kept


def _csv(results: Results, only: Sequence[str]) -> Write:
    return _tables(results, only, "csv", lambda frame, path: frame.sink_csv(path))


def _parquet(results: Results, only: Sequence[str]) -> Write:
    return _tables(results, only, "parquet", lambda frame, path: frame.sink_parquet(path))


def _openmetrics(results: Results, _: Sequence[str]) -> Write:
    text = openmetrics.text(results)

    def write(out: Path) -> list[Path]:
        path = out / openmetrics.NAME
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(str(path), str(error.strerror).lower(), "a file that can be written") from None
        return [path]

    return write


def _har(results: Results, _: Sequence[str]) -> Write:
    done = _with_trace(results)
    for key, table in product(done["run_key"], har.TABLES):
        results.scan(key, table)
    return lambda out: [
        har.write(results, run, out / f"{run['run_key']}.har") for run in done.iter_rows(named=True)
    ]


def _pcapng(results: Results, _: Sequence[str]) -> Write:
    # Run, user and side, and the capture; None: from the table.
    wanted: list[tuple[str, captures.Name, Path | None]] = []
    for run in _with_trace(results).iter_rows(named=True):
        key = run["run_key"]
        files = results.files(key)
        if held := captures.among(files):
            wanted += [(key, name, results.file(key, name.file)) for name in held]
        elif results.scan(key, packets.TABLE) is not None:
            wanted += [(key, captures.Name.of(run["user_agent"], side), None) for side in captures.SIDES]
    if not wanted:
        accepted = "results of an evaluation with [capture] (testbed) or packet_trace = true (any back end)"
        raise UsageError(str(results.folder), "no run with captures or a table packet", accepted)

    def write(out: Path) -> list[Path]:
        written = []
        for key, name, capture in wanted:
            path = out / f"{key}.{name.user}.{name.side}.pcapng"
            try:
                path.unlink(missing_ok=True)
                if capture is not None:
                    shutil.copyfile(capture, path)
                else:
                    packets.write(results, key, name.user, name.side, path)
            except OSError as error:
                raise UsageError(
                    str(path), str(error.strerror).lower(), "a file that can be written"
                ) from None
            written.append(path)
        return written

    return write


OF_TABLES = ("csv", "parquet")
"""Formats with a file for each table."""
EXPLAINED = "metrics"
"""The table that explains the metrics."""
FORMS: dict[str, Callable[[Results, Sequence[str]], Write]] = {
    "csv": _csv,
    "parquet": _parquet,
    "har": _har,
    "pcapng": _pcapng,
    "openmetrics": _openmetrics,
}


def _tables(
    results: Results, only: Sequence[str], suffix: str, sink: Callable[[pl.LazyFrame, Path], object]
) -> Write:
    """The tables, streamed from disk to disk, so that a packet trace need not fit into memory."""

    def frame(name: str) -> pl.LazyFrame:
        if name == EXPLAINED:
            metrics.own(results)
            return _explained().lazy()
        return pages(results).lazy() if name == "page" else _all_runs(results, name)

    frames = {name: frame(name) for name in only or (*tables(), EXPLAINED)}

    def write(out: Path) -> list[Path]:
        for name, frame in frames.items():
            path = out / f"{name}.{suffix}"
            try:
                path.unlink(missing_ok=True)
                sink(frame, path)
            except UNREADABLE as error:
                found = f"a table that cannot be written ({str(error).partition(chr(10))[0]})"
                raise UsageError(str(path), found, "whole results, and a place with room for them") from None
        return [out / f"{name}.{suffix}" for name in frames]

    return write


def _all_runs(results: Results, table: str) -> pl.LazyFrame:
    """One table of all runs that have a result, including warm-ups and invalid runs."""
    runs = _with_trace(results).select(CONDITIONS)
    own = [column for column in polars_schema(table) if column not in CONDITIONS]
    empty = pl.LazyFrame(schema=dict(runs.schema) | {name: polars_schema(table)[name] for name in own})
    frames = [empty]
    for run in runs.iter_rows(named=True):
        frame = results.scan(run["run_key"], table)
        if frame is not None:
            conditions = {name: pl.lit(value, dtype=runs.schema[name]) for name, value in run.items()}
            if table in metrics.OF_VISITS:
                of_user = pl.col("visit").replace_strict(_users(results, run["run_key"]), default=None)
                conditions["user_agent"] = of_user.fill_null(run["user_agent"])
            named = [expression.alias(name) for name, expression in conditions.items()]
            frames.append(frame.select(*named, *own))
    return pl.concat(frames)


def _users(results: Results, key: str) -> dict[int, str]:
    """The users of a run by its visits, if it has several."""
    page = results.trace(key, "page").select(pl.col("visit").fill_null(0), "user_agent")
    return dict(page.drop_nulls().iter_rows()) if page.height > 1 else {}


def pages(results: Results) -> pl.DataFrame:
    """The table ``page``: for every run that ended a row for each user agent and page, with metrics.

    Instants are those of the one visit; of equal users there are none, nor where the trace was not kept.
    """
    measured = metrics.table(results, verdicts=None)
    instants = [column for column in polars_schema("page") if column not in measured.columns]
    frames = [
        pl.DataFrame(
            schema={name: measured.schema[name] for name in _WHOSE}
            | {name: polars_schema("page")[name] for name in instants}
        )
    ]
    kept = results.with_trace(results.runs("done"))
    for key, user_agent, page in kept.select(_WHOSE).iter_rows():
        of_user = metrics.group_of("user_agent").fill_null(user_agent)
        visits = results.trace(key, "page").select(
            pl.lit(key).alias("run_key"),
            of_user.alias("user_agent"),
            pl.col("page").fill_null(page),
            *instants,
        )
        frames.append(visits.filter(pl.len().over(_WHOSE) == 1))
    measured = measured.join(
        results.runs().select("run_key", "kind"), on="run_key", how="left", maintain_order="left"
    )
    return measured.join(pl.concat(frames), on=list(_WHOSE), how="left", maintain_order="left")


def _explained() -> pl.DataFrame:
    """The meaning of the metrics' columns: column, title, unit, better, source, summary."""
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
