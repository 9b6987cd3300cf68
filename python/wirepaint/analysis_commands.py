"""The commands ``list``, ``explain`` and ``figure``."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from wirepaint.columns import aligned
from wirepaint.errors import UsageError, show
from wirepaint.printing import Json, command_line, print_json, say

if TYPE_CHECKING:
    import polars as pl

    from wirepaint.metrics import Explanation, Used
    from wirepaint.results import Results

MOST_ROWS = 20
_AT_ONCE = 10_000
"""Rows in memory as Python has them."""
Values = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]
MM = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72}
LEAST_MM, MOST_MM = 30, 1000
MOST_ASKED = 8
"""Runs that are named to somebody who has not named one."""
NOT_VALID = ("suspect", "invalid", "timed out", "failed")
NAMES = ("url", "connection", "flow", "user_agent", "host", "time")
"""Columns that tell a reader which row it is."""


def list_runs(
    results: Path,
    /,
    *,
    only: Values = None,
    scenario: Values = None,
    network: Values = None,
    http: Values = None,
    congestion: Values = None,
    backend: Values = None,
    page: Values = None,
    verdict: Values = None,
    all_rows: Annotated[bool, Parameter(name="--all", negative="")] = False,
    json: Json = False,
) -> None:
    """List the runs with their verdicts and primary metric, in the order of the plan.

    Parameters
    ----------
    results
        Results folder.
    only
        Keys of runs to list.
    scenario
        Scenarios to list, by their names.
    network
        Networks to list: --network lte,wpt-cable
    http
        HTTP versions to list.
    congestion
        Congestion controls to list.
    backend
        Back ends to list.
    page
        Pages to list.
    verdict
        Verdicts to list, or how else runs stand: --verdict invalid,failed,"timed out"
    all_rows
        List all runs, not only the first 20.
    json
        Print JSON, with all runs.
    """
    from wirepaint.results import examined
    from wirepaint.statistics.compare import primary

    opened = examined(results)
    asked = {"run_key": only, "scenario": scenario, "network": network, "http": http}
    asked |= {"congestion": congestion, "backend": backend, "page": page, "verdict": verdict}
    runs = _chosen(opened, asked)
    shown = runs if all_rows or json else runs.head(MOST_ROWS)
    rows = _with_metric(opened, shown, primary(opened)[0])
    if json:
        _print_json_rows(rows)
        return
    kept = ["run_key", "backend", "scenario", "page", "visit", "verdict", rows.columns[-1]]
    heads = ["run", *kept[1:-1], kept[-1].replace("_", "-")]
    for first in range(0, max(rows.height, 1), _AT_ONCE):
        some = rows[first : first + _AT_ONCE].select(kept).iter_rows()
        lines = [[_cell(value) for value in row] for row in some]
        for line in aligned([heads, *lines]):
            print(line)
    if runs.height > shown.height:
        print(f"and {runs.height - shown.height:,} more (--all)")


def _chosen(results: Results, asked: Mapping[str, Sequence[str] | None]) -> pl.DataFrame:
    """The runs whose columns have the values asked for; ``verdict`` is how each stands.

    Raises UsageError for a value that no run has, unless it is a verdict that runs may have.
    """
    import polars as pl

    from wirepaint.reading import nearest
    from wirepaint.results import journal, journal_tables

    of_end = ["state", "verdict", "cause", "kind"]
    runs = results.compact()
    known = runs.select(of_end).unique(maintain_order=True)
    stands = pl.Series("stands", [journal.standing(*row) for row in known.iter_rows()], pl.Categorical())
    needed = runs.select("run_key", *journal_tables.AXES, "visit", "warmup", "host", *of_end)
    runs = needed.join(
        known.with_columns(stands), on=of_end, how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(verdict="stands")
    found = runs
    for column, texts in asked.items():
        values = [each for text in texts or () for each in text.split(",")]
        there = set(runs[column].unique()) if values else set()
        if column == "verdict":
            there.update(journal.STANDINGS)
        if odd := [value for value in values if value not in there]:
            option = {"run_key": "--only"}.get(column, f"--{column}")
            raise UsageError(option, show(odd[0]), nearest(odd[0], sorted(there)))
        if values:
            found = found.filter(pl.col(column).is_in(values))
    return found


def _with_metric(results: Results, runs: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The runs with their values of a metric; a run of several users or flows has a row for each."""
    import polars as pl

    from wirepaint import metrics
    from wirepaint.results import journal_tables

    metrics.own(results)
    column = metrics.get(metric).column
    values = metrics.table(results, None, [metric], compact=True, keys=runs["run_key"])
    values = values.select("run_key", pl.col("user_agent", "page").name.suffix("_of"), column)
    named = runs.join(values, on="run_key", how="left", maintain_order="left_right").with_columns(
        user_agent=pl.coalesce("user_agent_of", "user_agent"), page=pl.coalesce("page_of", "page")
    )
    columns = (*journal_tables.AXES, "visit", "warmup", "host", "verdict", "cause", column)
    return named.select("run_key", *columns)


def _print_json_rows(rows: pl.DataFrame) -> None:
    """A list of objects, one on each line: there may be a million."""
    end = ""
    print("[", end="")
    for row in rows.iter_rows(named=True, buffer_size=_AT_ONCE):
        print(f"{end}\n {jsonlib.dumps(row, ensure_ascii=False)}", end="")
        end = ","
    print("\n]")


def _cell(value: Any) -> str | int:
    from wirepaint.statistics.wording import number

    if value is None:
        return "-"
    return number(value) if isinstance(value, float) else value


def explain(
    results: Path,
    metric: str | None = None,
    run: str | None = None,
    /,
    *,
    visit: int = 0,
    flows: str | None = None,
    all_rows: Annotated[bool, Parameter(name="--all", negative="")] = False,
    json: Json = False,
) -> None:
    """Print the rows of the trace from which a number was computed, or why a run does not count.

    Parameters
    ----------
    results
        Results folder.
    metric
        Name of the metric; verdict for the reasons of the run's verdict. All that can be asked when left out.
    run
        Key of the run, as `wirepaint list` has it; the runs that can be asked for when left out.
    visit
        Visit of a run with several, counted from 0.
    flows
        Name of the flows, for a metric of flows.
    all_rows
        Print all rows that count, not only the first 20 of each table.
    json
        Print JSON, with all rows and columns.
    """
    from wirepaint import metrics
    from wirepaint.results import examined

    opened = examined(results)
    if metric is None or run is None:
        _print_questions(opened, metric, json)
        return
    if metric == "verdict":
        _explain_verdict(opened, run, json)
        return
    found = metrics.explain(opened, metric, run, visit, flows)
    backend = dict(opened.runs().select("run_key", "backend").iter_rows())[run]
    if json:
        print_json({"backend": backend} | _as_dict(found))
        return
    whose = f", flows {found.flows}" if found.flows else f", visit {found.visit}" if found.visit else ""
    print(f"{backend}: {found.metric.name} of {found.run}{whose}: {_value(found)}")
    print(found.metric.summary)
    if found.metric.source:
        print(f"Source: {found.metric.source}")
    for used in found.used:
        print(f"\n{_said(used)}")
        shown = used.counted if all_rows else used.counted.head(MOST_ROWS)
        names = [name for name in NAMES if name in shown.columns and name not in used.columns]
        columns = ["row", *names[:1], *used.columns]
        rows = [list(map(_text, row)) for row in shown.select(columns).iter_rows()]
        for line in aligned([columns, *rows]) if rows else ():
            print(f"  {line}")
        if used.counted.height > shown.height:
            print(f"  and {used.counted.height - shown.height} more (--all)")
    if found.before is not None and not found.before.is_empty():
        print("\nRequests that ended last before it, ms after the navigation:")
        before = [[f"{ended:.1f}", kind, _text(url)] for _, url, kind, ended in found.before.iter_rows()]
        for line in aligned(before):
            print(f"  {line}")


def _print_questions(results: Results, metric: str | None, json: bool) -> None:
    """Prints which metrics and runs can be explained: median visits, and those that are not valid."""
    from wirepaint.statistics.compare import headline, primary

    metrics = list(dict.fromkeys((*primary(results), *headline(results))))
    of_verdict = _not_valid(results) if metric in (None, "verdict") else []
    medians = _medians(results, metric or metrics[0]) if metric != "verdict" else []
    if json:
        print_json({"metrics": metrics, "runs": medians, "verdicts": of_verdict})
        return
    folder = str(results.folder)
    if metric is None:
        print(f"Metrics: {', '.join(metrics)}, and all of `{command_line('metric', 'list', folder)}`.")
    if medians:
        shown = medians[0]["metric"]
        print(f"Runs: the median visits of {shown}; all of `{command_line('list', folder, '--all')}`.")
        _print_runs(medians, shown)
        print(f"Ask: {command_line('explain', folder, shown, medians[0]['run'])}")
    if of_verdict:
        print("Runs that are not valid:")
        _print_runs(of_verdict, "verdict")
        print(f"Ask: {command_line('explain', folder, 'verdict', of_verdict[0]['run'])}")
    if not medians and not of_verdict:
        print("No run has a result." if metric != "verdict" else "All runs are valid.")


def _print_runs(rows: Sequence[Mapping[str, Any]], value: str) -> None:
    names = ["backend", "run", "page", "value"]
    shown = [[_cell(row[name]) for name in names] for row in rows[:MOST_ASKED]]
    for line in aligned([[*names[:3], value], *shown]):
        print(f"  {line}")
    if len(rows) > MOST_ASKED:
        print(f"  and {len(rows) - MOST_ASKED} more")


def _medians(results: Results, metric: str) -> list[dict[str, Any]]:
    """Of each back end, scenario and page the valid visit whose value is nearest to the median."""
    import polars as pl

    from wirepaint import metrics

    metrics.own(results)
    one = metrics.get(metric)
    table = metrics.table(results, metrics=[one.name], compact=True).filter(~pl.col("warmup"))
    found = []
    groups = table.drop_nulls(one.column).group_by(
        "backend", "scenario", "user_agent", "page", maintain_order=True
    )
    for (backend, _, _, page), visits in groups:
        values = visits[one.column]
        nearest = 0 if one.label else (values - values.median()).abs().arg_min() or 0
        run = visits["run_key"][nearest]
        found.append(
            {"backend": backend, "run": run, "page": page, "metric": one.name, "value": values[nearest]}
        )
    return found


def _not_valid(results: Results) -> list[dict[str, Any]]:
    """The runs that ended without being valid."""
    return [
        {"backend": row["backend"], "run": row["run_key"], "page": row["page"], "value": row["verdict"]}
        for row in _chosen(results, {}).iter_rows(named=True)
        if row["verdict"] in NOT_VALID
    ]


def _explain_verdict(results: Results, run: str, json: bool) -> None:
    """Prints the verdict of a run, or its cause if it has none, with the reasons in words."""
    from wirepaint.reading import hint
    from wirepaint.report.words import CHECKS

    rows = {row["run_key"]: row for row in results.runs().iter_rows(named=True)}
    if (row := rows.get(run)) is None:
        raise UsageError(str(results.folder), f"no run {run}", f"a run key{hint(run, rows)}")
    said = {key: row[key] for key in ("run_key", "backend", "state", "verdict", "cause", "attempts")}
    said["reasons"] = jsonlib.loads(row["reasons"])
    if json:
        print_json(said)
        return
    ended = row["verdict"] or ": ".join(filter(None, (row["state"], row["cause"])))
    attempts = f" after {row['attempts']} attempts" if row["attempts"] > 1 else ""
    print(f"{row['backend']}: verdict of {run}: {ended}{attempts}")
    for reason in said["reasons"]:
        severity, check = reason.get("severity", "invalid"), reason["check"]
        print(f"\n{severity}: {CHECKS.get(check, check)}")
        print(f"  {check}: found {reason['found']}, expected {reason['expected']}")


def figure(
    name: str,
    results: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    metric: str | None = None,
    page: str | None = None,
    host: str | None = None,
    factor: str | None = None,
    width: str | None = None,
    suspect: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Draw one figure, for a paper or slides: vectors as PDF or SVG, with its data as CSV.

    Parameters
    ----------
    name
        Name of the figure (docs/guide/report.md), or the path of a Python file with one of your own.
    results
        Results folder.
    output
        File to write; its suffix says how: .pdf, .svg, .png, .csv (the data) or .json (Vega-Lite).
    metric
        Metric to draw, for the figures that draw any.
    page
        Page to draw; all when left out.
    host
        Host whose connections are drawn, for the figure cwnd.
    factor
        Axis whose values are told apart; the first that has several when left out.
    width
        Width on paper, such as 85mm, 3.3in or 240pt.
    suspect
        Count runs with the verdict suspect as well.
    """
    from wirepaint import figures
    from wirepaint.results import examined

    figures.check_suffix(output)
    options: dict[str, Any] = {"metric": metric, "host": host}
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    evidence = figures.Evidence(examined(results), factor, verdicts, page)
    drawing = figures.drawn(
        evidence,
        name,
        width_mm=None if width is None else _mm(width),
        **{key: value for key, value in options.items() if value is not None},
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    print(drawing.save(output))
    for level in evidence.losses:
        say(level.sentence)


def _mm(width: str) -> float:
    """A width on paper in millimetres; raises UsageError."""
    found = re.fullmatch(r"(\d{1,4}(?:\.\d{1,4})?) ?(mm|cm|in|pt)", width)
    millimetres = float(found[1]) * MM[found[2]] if found else 0
    if not LEAST_MM <= millimetres <= MOST_MM:
        raise UsageError("--width", show(width), f"{LEAST_MM}mm to {MOST_MM}mm, also in cm, in or pt")
    return millimetres


def _value(found: Explanation) -> str:
    value = found.reading.value
    if value is None:
        return f"none, because {found.reading.reason}"
    unit = found.metric.unit.removeprefix("1")
    return f"{value:,.6g} {unit}".rstrip() if isinstance(value, float | int) else value


def _said(used: Used) -> str:
    rows = f"{used.rows} row" if used.rows == 1 else f"{used.rows} rows"
    untried = f", {used.untried} not looked at" if used.untried else ""
    return f"Table {used.table}: {used.counted.height} of {rows} count{untried}."


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:29]}…{text[-30:]}"


def _as_dict(found: Explanation) -> dict[str, Any]:
    return {
        "metric": found.metric.name,
        "run": found.run,
        "visit": found.visit,
        "flows": found.flows,
        "value": found.reading.value,
        "reason": found.reading.reason,
        "unit": found.metric.unit,
        "definition": found.metric.summary,
        "source": found.metric.source,
        "tables": [
            {
                "table": used.table,
                "rows": used.rows,
                "columns": used.columns,
                "not_looked_at": used.untried,
                "counted": used.counted.to_dicts(),
            }
            for used in found.used
        ],
        "ended_before": None if found.before is None else found.before.to_dicts(),
    }
