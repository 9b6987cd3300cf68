"""Gathers the content of the report from results, metrics, statistics and figures, without computing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from wirepaint import figures, metrics
from wirepaint.evaluation import axes
from wirepaint.figures import Evidence
from wirepaint.report import factors, svg, values, visits, words
from wirepaint.report.answer import Part, plain
from wirepaint.report.factors import Overview, Section
from wirepaint.report.words import caveats
from wirepaint.results import Results, journal
from wirepaint.results.calibration import Place
from wirepaint.statistics import agreement, hosts, losses, median
from wirepaint.statistics import users as of_users
from wirepaint.statistics.compare import MARGIN, OF_FLOWS, OF_LINK, headline, primary
from wirepaint.statistics.flows import FlowRow, of_table
from wirepaint.statistics.losses import Losses

FIGURES = (
    "idle-share",
    "effective-concurrency",
    "connection-duration",
    "bytes-per-connection",
    "object-size",
    "goodput-over-time",
)
"""Figures that show one thing for the whole evaluation, in the order of the FLD paper."""
DRAWN = ("goodput-over-time",)
"""Those that the report holds as drawings; the page draws the others from values."""
AGREEMENT = "agreement"
MOST_UNASKED = 0.1
"""Share of a page's recorded requests. If the rehearsals lack more, the head of the report says so."""
MOST_LISTED = 600
"""Runs in the table of runs; those that do not count come first."""


@dataclass(frozen=True)
class Drawn:
    """A figure as SVG, ready for the page."""

    title: str
    caption: str
    source: str
    svg: Markup


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
    made_by: str
    """The back ends whose visits count, for the report's first line."""
    standings: list[Losses]
    """How the visits of each back end ended."""
    overviews: list[Overview]
    sections: list[Section]
    numbers: dict[str, int]
    """Number of a level's colour and mark, from 1."""
    pages: list[str]
    flow_names: list[str]
    margin: float
    alone: list[Part]
    """The load times of a single series as a sentence."""
    why_none: str
    counted: int
    planned: int
    warmups: int
    with_suspect: bool
    states: Counter[str]
    cannot_count: dict[str, str]
    """Why visits were skipped, by page."""
    replayed: dict[str, str]
    """How many requests replay, by page, of those that leave many out."""
    caveats: list[str]
    """What no user of the scenarios could have."""
    fidelity: str | None
    """The simulator's error on each page in its rehearsals."""
    without_traces: bool
    """Whether no trace was kept."""
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
    scenarios: dict[str, str]
    """Scenarios in words, by name."""
    values: str
    """The values of every counted visit, packed; empty without any."""
    charts: list[values.Chart]
    figures: list[Drawn]
    agreement: list[agreement.Agreement]
    """Agreement of the simulator with the testbed, by metric; empty without both."""
    agreement_figure: Drawn | None
    visits: visits.Visits
    calibrations: dict[str, dict[str, Any]]
    hosts: list[str]
    """How much the testbeds differ and what they leave uncompared, in sentences; empty for one."""
    runs: list[Run]
    """The listed runs, first those that do not count."""
    sysctls: list[tuple[str, dict[str, str]]]
    manifest: dict[str, Any]
    evaluation: str
    metrics: list[metrics.Metric]

    @property
    def agreement_missing(self) -> str:
        """A sentence on the points that the agreement does not count; empty if it counts all."""
        return agreement.missing(self.agreement)

    @property
    def answers(self) -> list[tuple[Section, factors.Side]]:
        """For each factor the side that the head of the report quotes: the first that says anything."""
        said = ((one, next((side for side in one.sides if side.candidates), None)) for one in self.sections)
        return [(one, side) for one, side in said if side is not None]

    @property
    def unlisted(self) -> int:
        """Runs that the table of runs leaves out."""
        return self.planned - len(self.runs)

    def number_of(self, level: str) -> int:
        """Number of a level's colour and mark, from 1."""
        return self.numbers.get(level, 1)


def gather(evidence: Evidence) -> Report:
    results = evidence.results
    runs = results.compact()
    sections = factors.sections(evidence)
    standings = losses.by_level(visits_ended(evidence), "backend", factors.backends(evidence))
    drawn = {
        name: inlined(name, drawing) for name, drawing in drawings(evidence, (*DRAWN, AGREEMENT)).items()
    }
    return Report(
        title=results.title,
        question=question(evidence, sections),
        made_by=made_by(evidence),
        standings=standings,
        overviews=factors.overviews(evidence, sections),
        sections=sections,
        numbers=numbered(evidence),
        pages=list(dict.fromkeys(agent["page"] for agent in results.manifest["evaluation"]["user_agents"])),
        flow_names=list(dict.fromkeys(row.flow for row in of_table(evidence.table))),
        margin=MARGIN,
        alone=load_times(evidence),
        why_none=why_none(evidence, sections),
        counted=evidence.table["run_key"].n_unique(),
        planned=runs.height,
        warmups=runs.filter("warmup").height,
        with_suspect="suspect" in evidence.verdicts,
        states=Counter(dict(standings_of(runs).group_by("standing", maintain_order=True).len().iter_rows())),
        cannot_count=results.cannot_count(),
        replayed=replayed(evidence),
        caveats=[*caveats(results)],
        fidelity=results.fidelity(),
        without_traces=0 < results.thin.height == results.compact("done").height,
        uneven=unevenly(evidence, sections),
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
        scenarios=scenarios(evidence),
        values=visits.pack(found) if (found := values.of_visits(evidence, drawn_metrics(evidence))) else "",
        charts=values.inside(evidence),
        figures=[drawn[name] for name in DRAWN if name in drawn],
        agreement=agreements(evidence),
        agreement_figure=drawn.get(AGREEMENT),
        visits=shown_visits(evidence),
        calibrations=calibrations(evidence),
        hosts=[
            *(said for section in sections for side in section.sides for said in side.parted),
            *(one.sentence for one in hosts.of_results(results, primary(results)[0], evidence.verdicts)),
        ],
        runs=list(run_rows(results, evidence)),
        sysctls=sysctls(results),
        manifest=results.manifest,
        evaluation=results.evaluation,
        metrics=list(metrics.registry().values()),
    )


def is_shared(evidence: Evidence) -> bool:
    """Whether runs hold several users."""
    return any(agent["group"] is not None for agent in evidence.results.manifest["evaluation"]["user_agents"])


def question(evidence: Evidence, sections: list[Section]) -> str:
    if evidence.factor == "backend":
        return "How true is the simulator to the testbed here?"
    if not evidence.results.manifest["evaluation"]["user_agents"]:
        several = len(evidence.series) > 1
        return (
            "Which flows get more with which transport?" if several else "How do these flows share the path?"
        )
    titles = [section.title for section in sections if section.factor != "network"]
    if len(titles) > 1:
        return f"What do {words.listed(titles)} change for these pages?"
    if len(evidence.series) == 2:
        baseline, candidate = evidence.series
        return f"Does {candidate} load these pages faster than {baseline}?"
    if len(evidence.series) > 2:
        return f"Which {axes.factors()[evidence.factor]} loads these pages fastest?"
    return f"How fast do these pages load with {evidence.series[0] if evidence.series else 'nothing'}?"


def made_by(evidence: Evidence) -> str:
    """What the numbers are: measured or simulated. A back end without a counted visit is named as such."""
    asked = factors.backends(evidence)
    counted = [backend for backend in asked if backend in set(evidence.table["backend"])]
    if len(counted) == 2:
        return "testbed and simulator, each by itself"
    if not counted:
        return f"{' and '.join(asked)}: no visit counts yet"
    said = words.MADE_BY[counted[0]]
    missing = [backend for backend in asked if backend not in counted]
    return f"{said}. No visit on the {missing[0]} counts" if missing else said


def why_none(evidence: Evidence, sections: list[Section]) -> str:
    """Why there is no comparison; empty if there is one."""
    if any(side.candidates for section in sections for side in section.sides):
        return ""
    if evidence.table.is_empty():
        return factors.nothing_counted(evidence)
    reasons = (side.why_none for section in sections for side in section.sides)
    return next(filter(None, reasons), "Nothing varies, so there is nothing to compare.")


def numbered(evidence: Evidence) -> dict[str, int]:
    """The number of each level's colour within its factor."""
    found: dict[str, int] = {}
    for axis, levels in evidence.levels.items():
        for position, level in enumerate(levels):
            found.setdefault(axes.words(axis, level), position % figures.MOST_SERIES + 1)
    return found | {level: at % figures.MOST_SERIES + 1 for at, level in enumerate(evidence.series)}


def scenarios(evidence: Evidence) -> dict[str, str]:
    """Each scenario by the words of its levels that vary; the network of one that is alone."""
    varying = [axis for axis in axes.axes() if axis in evidence.varying] or ["network"]
    return {
        name: " / ".join(axes.words(axis, scenario[axis]) for axis in varying)
        for name, scenario in evidence.results.manifest["evaluation"]["scenarios"].items()
    }


def drawn_metrics(evidence: Evidence) -> list[str]:
    """The metrics whose distributions the page draws."""
    alone = ("idle-share",) if evidence.results.manifest["evaluation"]["user_agents"] else ()
    return list(dict.fromkeys((*factors.measures(evidence), *alone)))


def visits_ended(evidence: Evidence) -> pl.DataFrame:
    return losses.visits(evidence.results, evidence.verdicts)


def unevenly(evidence: Evidence, sections: list[Section]) -> list[str]:
    """Levels and back ends that lost different shares of their visits, one sentence each."""
    said = [sentence for section in sections for side in section.sides for sentence in side.uneven]
    if len(evidence.levels["backend"]) > 1:
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


def drawings(evidence: Evidence, names: Sequence[str] = (*FIGURES, AGREEMENT)) -> dict[str, figures.Drawing]:
    """The figures ``names`` that are not empty."""
    if evidence.table.is_empty():
        return {}
    drawn = {name: figures.draw(evidence, name) for name in names}
    return {name: drawing for name, drawing in drawn.items() if drawing is not None}


def of_metrics(evidence: Evidence) -> dict[str, figures.Drawing]:
    """The distributions of each metric as figures, two of each."""
    if evidence.table.is_empty():
        return {}
    drawn = {
        f"{figure}-{name}": figures.draw(evidence, figure, metric=name)
        for name in factors.measures(evidence)
        for figure in ("box", "cdf")
    }
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
    visits = evidence.in_words(losses.with_timeouts(evidence.results, evidence.table))
    return agreement.agree(visits, headline(evidence.results))


def shown_visits(evidence: Evidence) -> visits.Visits:
    """The chosen visits, packed, as many as fit."""

    def shown_as(choice: visits.Choice) -> tuple[str, int]:
        said = {axis: axes.words(axis, level) for axis, level in choice.levels.items()}
        varying = [said[axis] for axis in (*evidence.condition_axes, evidence.factor) if axis != "user_agent"]
        level = said[evidence.factor]
        return " / ".join(varying) or level, evidence.series.index(level) % figures.MOST_SERIES + 1

    there = evidence.results.with_trace(evidence.every_run)
    chosen = visits.choose(there, evidence.verdicts, "page_load_time")
    return visits.embedded(evidence.results, chosen, shown_as)


def calibrations(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """The calibration of each network, in the order of the evaluation file; of several hosts on each."""
    found = evidence.results.calibrations()
    names = sorted({place.host for place in found})
    return {
        name if len(names) == 1 else f"{name} on {host}": found[Place(name, host)]
        for name in evidence.levels["network"]
        for host in names
        if (name, host) in found
    }


def replayed(evidence: Evidence) -> dict[str, str]:
    """How many of the recorded requests the visits made, by page, where rehearsals left out many."""
    found = {}
    for agent in evidence.results.manifest["evaluation"]["user_agents"]:
        page, left_out = agent["page"], (agent.get("rehearsal") or {}).get("left_out", 0)
        made = evidence.table.filter(pl.col("page") == page)["objects"].median() if left_out else None
        if isinstance(made, float) and left_out > MOST_UNASKED * (made + left_out):
            found[page] = f"{words.grouped(made)} of {words.count(round(made) + left_out, 'request')} replay"
    return found


def run_rows(results: Results, evidence: Evidence) -> Iterator[Run]:
    """The planned runs that fit: first those that do not count, each group in the order of the plan."""
    order = {"invalid": 0, "failed": 1, "timed out": 2, "cannot count": 3, "suspect": 4, "valid": 5}
    rank = pl.col("standing").cast(pl.String).replace_strict(order, default=len(order))
    flagged_first = standings_of(results.compact()).sort(rank, maintain_order=True).head(MOST_LISTED)
    shown = pl.col("run_key").is_in(flagged_first["run_key"].implode())
    of_visits = evidence.every_run.filter(~pl.col("of_flows") & shown)
    middle = of_visits.group_by("run_key").agg(pl.col("page_load_time", "first_contentful_paint").median())
    medians = {row["run_key"]: row for row in middle.iter_rows(named=True)}
    done = flagged_first.filter(pl.col("state") == "done")["run_key"]
    facts = {row["run_key"]: row for row in metrics.facts(results, done).iter_rows(named=True)}
    for row in flagged_first.iter_rows(named=True):
        key = row["run_key"]
        value = medians.get(key, {})
        host = facts.get(key, {})
        started = host.get("started_unix")
        reasons = [words.reason(entry) for entry in json.loads(row["reasons"] or "[]")]
        if row["cause"]:
            reasons.append(f"{row['cause']}.")
        total = host.get("cpu_total")
        yield Run(
            key=key,
            verdict=row["standing"],
            reasons=reasons,
            warmup=row["warmup"],
            load=value.get("page_load_time"),
            paint=value.get("first_contentful_paint"),
            lateness=host.get("lateness_p99"),
            foreign=host["cpu_foreign"] / total if total and host["cpu_foreign"] is not None else None,
            seed=row["seed"],
            started=words.instant(started),
        )


def standings_of(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs with the ``standing`` of each: a verdict, "cannot count" or a state."""
    of_end = ["state", "verdict", "cause", "kind"]
    known = runs.select(of_end).unique(maintain_order=True)
    standing = [journal.standing(*row) for row in known.iter_rows()]
    known = known.with_columns(standing=pl.Series(standing, dtype=pl.Categorical()))
    return runs.join(known, on=of_end, how="left", nulls_equal=True, maintain_order="left")


def sysctls(results: Results) -> list[tuple[str, dict[str, str]]]:
    """Kernel settings with their runs: "all runs", or the number of runs and an example."""
    groups: dict[str, list[str]] = {}
    # Simulated runs have no kernel.
    of_kernels = results.compact("done").filter(pl.col("backend") == "testbed")["run_key"]
    facts = metrics.facts(results, of_kernels)
    for key, text in facts.select("run_key", "sysctls").drop_nulls().iter_rows():
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
