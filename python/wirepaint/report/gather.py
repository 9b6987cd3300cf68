"""Gathers the content of the report from results, metrics, statistics and figures, without computing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from wirepaint import figures, metrics
from wirepaint.evaluation import axes
from wirepaint.figures import Evidence
from wirepaint.report import svg, visits, words
from wirepaint.report.answer import LOADS, SERVES, Clause, Part, clauses, plain, sentence
from wirepaint.report.words import caveat
from wirepaint.results import Results, journal
from wirepaint.statistics import Comparison, agreement, compare, losses, median, shared
from wirepaint.statistics import users as of_users
from wirepaint.statistics.compare import MARGIN, OF_FLOWS, OF_LINK, headline
from wirepaint.statistics.flows import FlowRow, of_table

MADE_BY = {
    "testbed": "measured on the testbed: Linux TCP and Chromium over an emulated path",
    "simulator": "simulated: a model of Linux TCP and Chromium under a virtual clock, nothing was measured",
    "both": "testbed and simulator side by side",
}
MAIN, MAIN_OF_FLOWS = "page-load-time", "goodput"
PAINTS = ("first-contentful-paint", "largest-contentful-paint")
FIGURES = (
    "idle-share",
    "effective-concurrency",
    "connection-duration",
    "bytes-per-connection",
    "object-size",
    "goodput-over-time",
)
"""Figures that show one thing for the whole evaluation, in the order of the FLD paper."""
AGREEMENT = "agreement"


@dataclass(frozen=True)
class Bar:
    """An interval for a row of the verdict table; lengths in pixels of a box 190 wide."""

    low: float | None
    value: float
    high: float | None
    band: float

    @classmethod
    def of(cls, row: Comparison, reach: float) -> Bar | None:
        """``reach`` is the share at the edge of the box; longer bars are cut off."""
        if row.shift_rel is None:
            return None

        def x(share: float | None) -> float | None:
            return None if share is None else round(95 + 90 * max(-1.04, min(1.04, share / reach)), 1)

        value = x(row.shift_rel.value)
        assert value is not None
        return cls(x(row.shift_rel.low), value, x(row.shift_rel.high), round(90 * row.margin / reach, 1))


@dataclass(frozen=True)
class Verdicts:
    """The rows of one metric and candidate: one per condition, one per page, one over all conditions."""

    metric: metrics.Metric
    conditions: list[tuple[Comparison, Bar | None]]
    pages: list[tuple[Comparison, Bar | None]]


@dataclass(frozen=True)
class Candidate:
    """The comparison of one level of the factor with the baseline."""

    level: str
    baseline: str
    answer: list[Part]
    paints: list[tuple[str, list[Clause]]]
    tables: list[Verdicts]
    shared: list[str]
    """Who gained and who paid where several share a path, one sentence for each condition."""


@dataclass(frozen=True)
class Drawn:
    """A figure as SVG, ready for the page."""

    title: str
    caption: str
    source: str
    svg: Markup


@dataclass(frozen=True)
class Panel:
    """The figures of one metric."""

    metric: metrics.Metric
    drawings: list[Drawn]


@dataclass(frozen=True)
class Run:
    """A row of the table of runs."""

    key: str
    verdict: str
    reasons: list[str]
    warmup: bool
    load: float | None
    paint: float | None
    lateness: int | None
    foreign: float | None
    seed: int
    started: str


@dataclass(frozen=True)
class Report:
    """The input of the templates."""

    title: str
    question: str
    factor: str
    series: list[str]
    condition: str
    """Heading of the conditions: Network if nothing else varies."""
    conditions: list[str]
    pages: list[str]
    flow_names: list[str]
    margin: float
    candidates: list[Candidate]
    why_none: str
    alone: list[Part]
    counted: int
    with_suspect: bool
    states: Counter[str]
    cannot_count: dict[str, str]
    """Why visits were skipped, by page."""
    caveat: str | None
    """What no user of the scenarios could have."""
    fidelity: str | None
    """The simulator's error on each page in its rehearsals."""
    losses: list[losses.Losses]
    """How the visits of each level ended."""
    uneven: list[str]
    """Levels that lost different shares of their visits, one sentence each."""
    flows: list[FlowRow]
    """The flows of each scenario; empty without any."""
    flow_metrics: list[metrics.Metric]
    """The metrics of the table of flows."""
    users: list[of_users.UserRow]
    """The users of each scenario; empty where each run has one."""
    user_metrics: list[metrics.Metric]
    """The metrics of the table of users."""
    panels: list[Panel]
    figures: list[Drawn]
    agreement: list[agreement.Agreement]
    """Agreement of the simulator with the testbed, by metric; empty without both."""
    agreement_figure: Drawn | None
    visits: visits.Visits
    calibrations: dict[str, dict[str, Any]]
    runs: list[Run]
    sysctls: list[tuple[str, dict[str, str]]]
    manifest: dict[str, Any]
    evaluation: str
    metrics: list[metrics.Metric]

    @property
    def made_by(self) -> str:
        """The back end that made the results, for the report's first line."""
        return MADE_BY[self.manifest["backend"]]

    @property
    def agreement_missing(self) -> str:
        """A sentence on the points that the agreement does not count; empty if it counts all."""
        return agreement.missing(self.agreement)

    @property
    def flagged_first(self) -> list[Run]:
        """Runs, first those that do not count."""
        order = {"invalid": 0, "failed": 1, "timed out": 2, "cannot count": 3, "suspect": 4, "valid": 5}
        return sorted(self.runs, key=lambda run: order.get(run.verdict, 6))

    def number_of(self, level: str) -> int:
        """Number of a level's colour and mark, from 1."""
        return self.series.index(level) % figures.MOST_SERIES + 1 if level in self.series else 1


def gather(evidence: Evidence) -> Report:
    results = evidence.results
    runs = results.runs()
    drawn = {name: inlined(name, drawing) for name, drawing in drawings(evidence).items()}
    panels = [
        Panel(metrics.get(m), [d for n, d in drawn.items() if n.endswith(f"-{m}")]) for m in headline(results)
    ]
    candidates, why_none = compared(evidence)
    return Report(
        title=results.title,
        question=question(evidence),
        factor=axes.factors()[evidence.factor],
        series=evidence.series,
        condition="Network" if evidence.condition_axes == ["network"] else "Conditions",
        conditions=evidence.conditions,
        pages=list(dict.fromkeys(agent["page"] for agent in results.manifest["evaluation"]["user_agents"])),
        flow_names=list(dict.fromkeys(row.flow for row in of_table(evidence.table))),
        margin=MARGIN,
        candidates=candidates,
        why_none=why_none,
        alone=load_times(evidence),
        counted=evidence.table["run_key"].n_unique(),
        with_suspect="suspect" in evidence.verdicts,
        states=Counter(state_of(row) for row in runs.iter_rows(named=True)),
        cannot_count=results.cannot_count(),
        caveat=caveat(results.manifest["evaluation"]["scenarios"].values()),
        fidelity=results.fidelity(),
        losses=losses.by_level(visits_ended(evidence), evidence.factor, evidence.series),
        uneven=unevenly(evidence, candidates),
        flows=(flows := of_table(evidence.table)),
        flow_metrics=[
            metrics.get(name) for name in (*OF_FLOWS, *OF_LINK) if any(name in row.values for row in flows)
        ],
        users=(users := of_users.of_table(results, evidence.table) if is_shared(evidence) else []),
        user_metrics=[
            metrics.get(name)
            for name in (*of_users.OF_VISITS, *of_users.OF_RUN)
            if any(name in row.values for row in users)
        ],
        panels=[panel for panel in panels if panel.drawings],
        figures=[drawn[name] for name in FIGURES if name in drawn],
        agreement=agreements(evidence),
        agreement_figure=drawn.get(AGREEMENT),
        visits=shown_visits(evidence),
        calibrations=calibrations(evidence),
        runs=list(run_rows(results, evidence)),
        sysctls=sysctls(results),
        manifest=results.manifest,
        evaluation=results.evaluation,
        metrics=list(metrics.registry().values()),
    )


def is_shared(evidence: Evidence) -> bool:
    """Whether runs hold several users."""
    return any(agent["group"] is not None for agent in evidence.results.manifest["evaluation"]["user_agents"])


def question(evidence: Evidence) -> str:
    if not evidence.results.manifest["evaluation"]["user_agents"]:
        several = len(evidence.series) > 1
        return (
            "Which flows get more with which transport?" if several else "How do these flows share the path?"
        )
    if len(evidence.series) == 2:
        baseline, candidate = evidence.series
        return f"Does {candidate} load these pages faster than {baseline}?"
    if len(evidence.series) > 2:
        return f"Which {axes.factors()[evidence.factor]} loads these pages fastest?"
    return f"How fast do these pages load with {evidence.series[0] if evidence.series else 'nothing'}?"


def compared(evidence: Evidence) -> tuple[list[Candidate], str]:
    """The comparison of each candidate; empty, with the reason, if there is nothing to compare."""
    if evidence.table.is_empty():
        return [], nothing_counted(evidence)
    table = losses.with_timeouts(evidence.results, evidence.table)
    table = table.filter(~pl.col("warmup"))
    present = set(table[evidence.factor].cast(pl.String))
    counted = [level for level in evidence.series if level in present]
    if len(counted) == 1:
        return [], f"Only {counted[0]} has counted visits, so there is nothing to compare it with."
    known = [name for name in headline(evidence.results) if table[metrics.get(name).column].count()]
    rows = compare(table, evidence.factor, known, counted[0], visits=visits_ended(evidence))
    if not rows:
        return [], "No page has counted visits on both sides, so there is nothing to compare."
    levels = dict.fromkeys(row.candidate.level for row in rows)
    return [candidate([row for row in rows if row.candidate.level == level]) for level in levels], ""


def visits_ended(evidence: Evidence) -> pl.DataFrame:
    return losses.visits(evidence.results, evidence.verdicts)


def unevenly(evidence: Evidence, candidates: list[Candidate]) -> list[str]:
    """Levels and back ends that lost different shares of their visits, one sentence each."""
    rows = [row for one in candidates for table in one.tables for row, _ in table.conditions]
    said = [row.uneven for row in rows if row.uneven]
    if evidence.factor != "backend" and len(evidence.levels["backend"]) > 1:
        said += losses.unevenly(
            losses.by_level(visits_ended(evidence), "backend", evidence.levels["backend"])
        )
    return list(dict.fromkeys(said))


def load_times(evidence: Evidence) -> list[Part]:
    """The page load times of a single series as a sentence; empty for no or several series."""
    table = evidence.table.filter(pl.col("page_load_time").is_not_null())
    if table["series"].n_unique() != 1:
        return []
    times = {
        condition: median(*(page["page_load_time"].to_list() for page in group.partition_by("page")))
        for (condition,), group in table.group_by("condition", maintain_order=True)
    }
    return plain(table["series"][0], times)


def nothing_counted(evidence: Evidence) -> str:
    """The reason why there is nothing to compare, and what the reader can do."""
    measured = evidence.every_run.filter(~pl.col("warmup")).unique("run_key", maintain_order=True)
    if measured.is_empty():
        return "No visit is done yet, so there is nothing to compare. The same command goes on with them."
    suspect = measured.filter(pl.col("verdict") == "suspect").height
    hint = f" {words.count(suspect, 'suspect visit')} would count with --suspect." if suspect else ""
    return f"Of {words.count(measured.height, 'visit')} none is valid, so there is nothing to compare.{hint}"


def candidate(rows: list[Comparison]) -> Candidate:
    shifts = [row.shift_rel for row in rows if row.shift_rel and row.page is None]
    bounds = [abs(x) for shift in shifts for x in (shift.low, shift.value, shift.high) if x is not None]
    reach = min(max([*bounds, 2.5 * MARGIN]), 1.0)
    by_metric: dict[str, list[Comparison]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    tables = []
    for name, group in by_metric.items():
        bars = [(row, Bar.of(row, reach)) for row in group]
        over_pages = [entry for entry in bars if entry[0].page is None]
        tables.append(Verdicts(metrics.get(name), over_pages, [entry for entry in bars if entry[0].page]))
    first = rows[0]
    levels = (first.candidate.level, first.baseline.level)
    main, deed = (MAIN, LOADS) if MAIN in by_metric else (MAIN_OF_FLOWS, SERVES)
    said = sentence(*levels, clauses(by_metric.get(main, [])), deed)
    paints = [(metrics.get(name).title, clauses(by_metric[name])) for name in PAINTS if name in by_metric]
    return Candidate(*levels, said, paints, tables, shared.sentences(rows))


def drawings(evidence: Evidence) -> dict[str, figures.Drawing]:
    """All non-empty figures of the report by name: two per metric, then the others."""
    if evidence.table.is_empty():
        return {}
    wanted = {
        f"{figure}-{name}": (figure, {"metric": name})
        for name in headline(evidence.results)
        for figure in ("box", "cdf")
    }
    wanted |= {name: (name, {}) for name in (*FIGURES, AGREEMENT)}
    drawn = {name: figures.draw(evidence, figure, **options) for name, (figure, options) in wanted.items()}
    return {name: drawing for name, drawing in drawn.items() if drawing is not None}


def inlined(name: str, drawing: figures.Drawing) -> Drawn:
    figure = drawing.figure
    title = f"{figure.title}: {drawing.frame['axis'][0]}"
    return Drawn(
        figure.title, figure.caption, figure.source, Markup(svg.inline(drawing.svg(), title, f"{name}-"))
    )


def agreements(evidence: Evidence) -> list[agreement.Agreement]:
    """The agreement of the two back ends; empty unless both have counted runs."""
    if set(evidence.table["backend"]) != {agreement.REAL, agreement.SIMULATED}:
        return []
    return agreement.agree(losses.with_timeouts(evidence.results, evidence.table), headline(evidence.results))


def shown_visits(evidence: Evidence) -> visits.Visits:
    """The chosen visits, packed, as many as fit."""

    def shown_as(choice: visits.Choice) -> tuple[str, int]:
        split_by = [*evidence.condition_axes, evidence.factor]
        varying = [str(choice.levels[axis]) for axis in split_by if axis != "user_agent"]
        level = str(choice.levels[evidence.factor])
        return " / ".join(varying) or level, evidence.series.index(level) % figures.MOST_SERIES + 1

    chosen = visits.choose(evidence.every_run, evidence.verdicts, "page_load_time")
    return visits.embedded(evidence.results, chosen, shown_as)


def calibrations(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """The calibration of each network, in the order of the evaluation file."""
    found = evidence.results.calibrations()
    return {name: found[name] for name in evidence.levels["network"] if name in found}


def run_rows(results: Results, evidence: Evidence) -> Iterator[Run]:
    """Every planned run, in the order in which they were carried out."""
    of_visits = evidence.every_run.filter(~pl.col("of_flows"))
    middle = of_visits.group_by("run_key").agg(pl.col("page_load_time", "first_contentful_paint").median())
    values = {row["run_key"]: row for row in middle.iter_rows(named=True)}
    for row in results.runs().iter_rows(named=True):
        key, done = row["run_key"], row["state"] == "done"
        value = values.get(key, {})
        host = next(results.trace(key, "host").iter_rows(named=True), {}) if done else {}
        started = next(iter(results.trace(key, "run")["started_unix"]), None) if done else None
        reasons = [words.reason(entry) for entry in json.loads(row["reasons"] or "[]")]
        if row["cause"]:
            reasons.append(f"{row['cause']}.")
        total = host.get("cpu_total")
        yield Run(
            key=key,
            verdict=state_of(row),
            reasons=reasons,
            warmup=row["warmup"],
            load=value.get("page_load_time"),
            paint=value.get("first_contentful_paint"),
            lateness=host.get("lateness_p99"),
            foreign=host["cpu_foreign"] / total if total and host["cpu_foreign"] is not None else None,
            seed=row["seed"],
            started=words.instant(started),
        )


def state_of(row: dict[str, Any]) -> str:
    """The standing of a run: a verdict, "cannot count" or a state."""
    return journal.standing(row["state"], row["verdict"], row["cause"], row["kind"])


def sysctls(results: Results) -> list[tuple[str, dict[str, str]]]:
    """Kernel settings with their runs: "all runs", or the number of runs and an example."""
    groups: dict[str, list[str]] = {}
    for key in results.runs("done")["run_key"]:
        for text in results.trace(key, "run")["sysctls"].drop_nulls():
            groups.setdefault(text, []).append(key)
    shown = []
    for text, keys in groups.items():
        name = "all runs" if len(groups) == 1 else f"{words.count(len(keys), 'run')}, such as {keys[0]}"
        shown.append((name, flat(json.loads(text))))
    return shown


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Nested objects as one level of names: ``client net.ipv4.tcp_...``."""
    if not isinstance(value, dict):
        return {prefix: str(value)}
    return {k: v for key, inner in value.items() for k, v in flat(inner, f"{prefix} {key}".strip()).items()}
