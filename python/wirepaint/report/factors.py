"""What each factor changes, by back end: the verdicts on one factor, everything else equal.

A row compares two levels of the factor on one network. Its strata are the pages under each combination of
the remaining axes, so every load counts and nothing but the factor differs within a stratum. Rows that take
each combination by itself stand beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import polars as pl

from wirepaint import metrics
from wirepaint.evaluation import axes
from wirepaint.figures import Evidence
from wirepaint.report import words
from wirepaint.report.answer import (
    LOADS,
    SERVES,
    SHOWS_LOADS,
    SHOWS_SERVES,
    Deed,
    Part,
    clauses,
    sentence,
    with_metric,
)
from wirepaint.statistics import Comparison, compare, hosts, losses, shared
from wirepaint.statistics.compare import MARGIN, OF_FLOWS, PRIMARY, headline, looks, primary
from wirepaint.statistics.comparison import MIXED, TOO_FEW, about
from wirepaint.statistics.losses import Losses

MAIN = (
    "page-load-time",
    "fully-loaded",
    "first-contentful-paint",
    "largest-contentful-paint",
    "speed-index",
    "time-to-first-byte",
)
"""Metrics that stand first, after the primary ones; the others are folded."""
APART = ("network", "user_agent")
"""Axes whose levels a row never puts together: other users are other people."""
_WHOSE = frozenset((*metrics.AXES, "visit", "warmup", "host"))
"""Columns of a table of visits that a comparison needs, beside the metrics."""
MOST_ROWS = 240
"""Rows of single pages, or of single conditions, that a table holds."""


@dataclass(frozen=True)
class Bar:
    """An interval for a row of a table of verdicts; lengths in pixels of a box 190 wide."""

    low: float
    high: float
    value: float | None
    """None outside the box."""
    goes_on: tuple[bool, bool]
    """Whether the bar goes on beyond the left and beyond the right edge."""
    band: float

    @classmethod
    def of(cls, row: Comparison, reach: float) -> Bar | None:
        """``reach`` is the share at the edge of the box."""
        if row.shift_rel is None:
            return None
        shares = [row.shift_rel.low, row.shift_rel.value, row.shift_rel.high]
        low, value, high = (row.shift_rel.value if share is None else share for share in shares)

        def x(share: float) -> float:
            return round(95 + 90 * max(-1.0, min(1.0, share / reach)), 1)

        band = round(90 * min(1.0, row.margin / reach), 1)
        seen = x(value) if abs(value) <= reach else None
        return cls(x(low), x(high), seen, (low < -reach, high > reach), band)


@dataclass(frozen=True)
class Verdicts:
    """The rows of one metric and candidate: one per network, one over all, and ``pages``, one per stratum."""

    metric: metrics.Metric
    conditions: list[Comparison]
    pages: list[Comparison] = field(default_factory=list)
    more_pages: int = 0
    """Rows of pages that the table leaves out."""


@dataclass(frozen=True)
class Candidate:
    """The comparison of one level of the factor with the baseline."""

    level: str
    baseline: str
    answer: list[Part]
    main: list[Verdicts]
    others: list[Verdicts]
    each: list[Comparison]
    """The primary metric under each set of conditions; empty if only the network varies besides."""
    more_each: int
    shared: list[str]
    """Who gained and who paid where several share a path, one sentence for each condition."""

    @property
    def primary(self) -> Verdicts | None:
        return self.main[0] if self.main else None


@dataclass(frozen=True)
class Side:
    """What one back end says about a factor: candidates, or the reason why it says nothing."""

    backend: str
    lost: list[Losses]
    """How the visits of each level ended."""
    candidates: list[Candidate]
    why_none: str = ""
    parted: Sequence[str] = ()
    """What hosts leave uncompared, one sentence for each candidate."""

    @property
    def uneven(self) -> list[str]:
        """Levels that lost different shares of their visits, one sentence each."""
        rows = (
            row for one in self.candidates for table in [*one.main, *one.others] for row in table.conditions
        )
        return list(dict.fromkeys(row.uneven for row in rows if row.uneven))


@dataclass(frozen=True)
class Section:
    """A factor with all that is said about it. ``pooled`` names the axes whose levels a row puts together."""

    factor: str
    title: str
    levels: list[str]
    pooled: list[str]
    sides: list[Side]

    @property
    def reach(self) -> float:
        """The share at the edge of each drawn interval: one scale for all tables of the section.

        The intervals of the primary metric are seen as a whole, of the other main metrics the difference.
        """
        seen = [2 * MARGIN]
        for table in (table for side in self.sides for one in side.candidates for table in one.main):
            for shift in (row.shift_rel for row in table.conditions if row.shift_rel):
                is_first = table.conditions[0].metric_is_primary
                seen += [shift.value, *((shift.low, shift.high) if is_first else ())]
        return 1.15 * max(abs(share) for share in seen if share is not None)


def backends(evidence: Evidence) -> list[str]:
    """The back ends of an evaluation, the testbed first."""
    asked = evidence.results.manifest["backend"]
    return ["testbed", "simulator"] if asked == "both" else [asked]


def sections(evidence: Evidence) -> list[Section]:
    """One section for each factor with several levels; that of ``evidence`` first."""
    named = [evidence.factor, *(factor for factor in evidence.varying if factor != evidence.factor)]
    found = []
    for factor in named:
        # Where a transport or a path varies too, the section on agreement compares the back ends.
        alone = factor == evidence.factor and factor == "backend"
        if factor in evidence.varying and factor in axes.factors() and (alone or factor != "backend"):
            found.append(section(evidence if factor == evidence.factor else evidence.by(factor)))
    return found


def section(evidence: Evidence) -> Section:
    factor = evidence.factor
    asked = {metrics.get(name).column for name in measures(evidence)}
    columns = [name for name in evidence.table.columns if name in asked or name in _WHOSE]
    table = evidence.in_words(losses.with_timeouts(evidence.results, evidence.table.select(columns)))
    visits = evidence.in_words(losses.visits(evidence.results, evidence.verdicts))
    rest = [axis for axis in evidence.varying if axis not in (factor, "backend", "page", *APART)]
    if factor == "network":
        rest = [axis for axis in rest if axis != "network"]
    sides = []
    if factor == "backend":
        sides.append(side(evidence, "both", table, visits, rest))
    else:
        for backend in backends(evidence):
            here = pl.col("backend") == backend
            sides.append(side(evidence, backend, table.filter(here), visits.filter(here), rest))
    pooled = [axes.factors()[axis] for axis in rest]
    return Section(factor, axes.factors()[factor], evidence.series, pooled, sides)


def side(
    evidence: Evidence, backend: str, table: pl.DataFrame, visits: pl.DataFrame, rest: Sequence[str]
) -> Side:
    """The comparison of each candidate on one back end."""
    factor = evidence.factor
    lost = losses.by_level(visits, factor, evidence.series)
    known = table.filter(~pl.col("warmup"))
    if known.is_empty():
        return Side(backend, lost, [], nothing_counted(evidence, backend))
    counted = [level for level in evidence.series if level in set(known[factor])]
    if len(counted) < 2:
        return Side(
            backend, lost, [], f"Only {counted[0]} has counted visits, so nothing can be compared with it."
        )
    names = [name for name in measures(evidence) if known[metrics.get(name).column].count()]
    pooled, pooled_visits = together(known, rest), together(visits, rest)
    judged = partial(
        compare,
        factor=factor,
        baseline=counted[0],
        primary=primary(evidence.results),
        looks=looks(evidence.results),
    )
    rows = judged(pooled, metrics=names, by_page=False, visits=pooled_visits)
    first = [name for name in names if name in primary(evidence.results)] or names[:1]
    each = judged(known, metrics=first, by_page=False, visits=visits) if rest else []
    rows = as_compared(rows, each)
    parted = hosts.parted(known, factor, counted[0])
    if not rows:
        why = " ".join(parted) or "No page has counted visits on both sides, so nothing can be compared."
        return Side(backend, lost, [], why)
    pages = [row for row in judged(pooled, metrics=first, visits=pooled_visits) if row.page]
    each = [row for row in each if row.conditions and row.metric == first[0]]
    levels = dict.fromkeys(row.candidate.level for row in rows)
    sharing = shared.together(evidence.results)
    said = [
        candidate(of_level(rows, level), of_level(pages, level), of_level(each, level), sharing)
        for level in levels
    ]
    return Side(backend, lost, said, parted=parted)


def as_compared(rows: Sequence[Comparison], each: Sequence[Comparison]) -> list[Comparison]:
    """``rows`` with the row over all conditions as ``compare`` and the end of ``run`` have it.

    It is the same test on the same strata. They correct it together with the rows of single conditions,
    ``each``, for which the visits were planned. So verdict, interval and p are those.
    """
    whole = {(row.metric, row.candidate.level): row for row in each if not row.conditions}
    number = Counter((row.metric, row.candidate.level) for row in rows)

    def as_whole(row: Comparison) -> Comparison:
        key = row.metric, row.candidate.level
        # With one network its row is the only one.
        if key in whole and (number[key] == 1 or not row.conditions):
            return replace(whole[key], conditions=row.conditions, network=row.network)
        return row

    return [as_whole(row) for row in rows]


def of_level(rows: Sequence[Comparison], level: str) -> list[Comparison]:
    return [row for row in rows if row.candidate.level == level]


def together(frame: pl.DataFrame, rest: Sequence[str]) -> pl.DataFrame:
    """``frame`` with the levels of ``rest`` in the name of the page: each combination is a stratum."""
    stratum = pl.concat_str(*rest, "page", separator=" / ").cast(pl.Categorical())
    return frame.with_columns(page=stratum).drop(rest) if rest else frame


def measures(evidence: Evidence) -> list[str]:
    """The metrics of the report: primary, main, then the others that are compared by default."""
    default = headline(evidence.results)
    main = MAIN if evidence.results.manifest["evaluation"]["user_agents"] else ()
    return list(dict.fromkeys((*primary(evidence.results), *main, *default)))


def nothing_counted(evidence: Evidence, backend: str = "both") -> str:
    """The reason why there is nothing to compare, and what the reader can do."""
    measured = evidence.every_run.filter(~pl.col("warmup")).unique("run_key", maintain_order=True)
    if backend != "both":
        measured = measured.filter(pl.col("backend") == backend)
    if measured.is_empty():
        return "No visit is done yet, so there is nothing to compare. The same command goes on with them."
    suspect = measured.filter(pl.col("verdict") == "suspect").height
    hint = f" {words.count(suspect, 'suspect visit')} would count with --suspect." if suspect else ""
    return f"Of {words.count(measured.height, 'visit')} none is valid, so there is nothing to compare.{hint}"


def candidate(
    rows: list[Comparison], pages: list[Comparison], each: list[Comparison], sharing: Mapping[str, str]
) -> Candidate:
    """One level: ``rows`` over all pages, ``pages`` of the primary metric, ``each`` set of conditions.

    ``sharing`` has the groups of the users that share a path.
    """
    by_metric: dict[str, list[Comparison]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    decides = rows[0].metric
    first = rows[0]
    levels = (first.candidate.level, first.baseline.level)
    said: list[Part] = []
    for name, group in by_metric.items():
        if name == decides or group[0].metric_is_primary:
            said += [Part("text", " ")] if said else []
            said += sentence(*levels, clauses(group), deed(name, first.factor))
    main, others = [], []
    for name, group in by_metric.items():
        by_page = [row for row in pages if row.metric == name]
        shown = by_page[:MOST_ROWS]
        stands_first = name in MAIN or group[0].metric_is_primary
        table = Verdicts(metrics.get(name), group, shown, len(by_page) - len(shown))
        (main if stands_first else others).append(table)
    rows_each = each[:MOST_ROWS]
    told = [] if first.factor == "backend" else shared.sentences([*rows, *pages], sharing)
    return Candidate(*levels, said, main, others, rows_each, len(each) - len(rows_each), told)


def deed(metric: str, factor: str) -> Deed:
    """What a level of ``factor`` does, by the metric that decides."""
    if metric in OF_FLOWS:
        return SHOWS_SERVES if factor == "backend" else SERVES
    if metric in PRIMARY:
        return SHOWS_LOADS if factor == "backend" else LOADS
    return with_metric(metrics.get(metric).title)


# The overview


@dataclass(frozen=True)
class Cell:
    """What a factor changes on one network: a word, the difference, its interval, and strata against it."""

    verdict: str
    change: str
    span: str
    strength: int
    """0 to 3: how large a decided difference is."""
    note: str

    @classmethod
    def of(cls, row: Comparison) -> Cell:
        shift, unit = (row.shift_rel, "share") if row.shift_rel else (row.shift, row.unit)
        decided = row.is_decided and row.verdict != "same"
        size = abs(row.shift_rel.value) if row.shift_rel else 0.0
        strength = 1 + (size >= 0.05) + (size >= 0.15) if decided else 0
        return cls(row.verdict, words.change(shift, unit), words.span(shift, unit), strength, note(row))


def note(row: Comparison) -> str:
    """What else a reader must know of a verdict: pages that contradict it, or visits that it needs."""
    if row.verdict == TOO_FEW:
        if not row.visits_needed:
            return "as large as the margin"
        return f"needs {about(row.interval)} {row.visits_needed} visits"
    if not row.dissent:
        return ""
    share = f"{len(row.dissent)} of {len(row.by_stratum)}"
    return f"{share} apart" if row.verdict == MIXED else f"{share} against it"


@dataclass(frozen=True)
class Row:
    """A level against the baseline of its factor: a cell for each column that has one."""

    factor: str
    title: str
    level: str
    baseline: str
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Map:
    """Levels by networks for one metric."""

    metric: metrics.Metric
    rows: list[Row]
    decides: bool
    """Whether the evaluation is for this metric."""

    @property
    def groups(self) -> list[list[Row]]:
        """The rows of each factor."""
        by_factor: dict[str, list[Row]] = {}
        for row in self.rows:
            by_factor.setdefault(row.factor, []).append(row)
        return list(by_factor.values())


@dataclass(frozen=True)
class Overview:
    """One back end's maps, those of the primary metrics first; without any, ``why_none``."""

    backend: str
    columns: list[str]
    """Networks, with the user agent where several share a run."""
    summaries: dict[str, str]
    """What a network is, by its name."""
    maps: list[Map]
    why_none: str


def overviews(evidence: Evidence, found: Sequence[Section]) -> list[Overview]:
    """An overview for each back end."""
    networks = evidence.results.manifest["evaluation"]["networks"]
    summaries = {name: words.network(network) for name, network in networks.items()}
    made = []
    for backend in backends(evidence):
        by_metric: dict[str, list[Row]] = {}
        columns: dict[str, None] = {}
        reasons = []
        for one in (one for one in found if one.factor not in ("network", "backend")):
            for said in (said for said in one.sides if said.backend == backend):
                reasons.append(said.why_none)
                for row, name in _rows(one, said):
                    by_metric.setdefault(name, []).append(row)
                    columns |= dict.fromkeys(row.cells)
        decide = primary(evidence.results)
        maps = [
            Map(metrics.get(name), rows, not place or name in decide)
            for place, (name, rows) in enumerate(by_metric.items())
        ]
        why = next(filter(None, reasons), "")
        order = [*evidence.levels["network"], *columns]
        shown = sorted(columns, key=lambda column: order.index(column.split(" / ")[0]))
        made.append(Overview(backend, shown, summaries, maps, why))
    return made


def _rows(one: Section, said: Side) -> Iterator[tuple[Row, str]]:
    for level in said.candidates:
        for table in level.main:
            cells = {row.stratum: Cell.of(row) for row in table.conditions if row.conditions}
            yield Row(one.factor, one.title, level.level, level.baseline, cells), table.metric.name
