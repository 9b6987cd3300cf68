"""Each rule on each page and in all conditions: pass, breach or undecided.

The statistics are those of ``compare``: the shift within a page for a relative rule, the median of a page's
visits for an absolute one, each with an interval. A check

``passes``     if its whole interval lies on the good side of the limit,
``breaches``   if all of it lies beyond: a breach has evidence,
``undecided``  if the limit lies within, or too few visits have an interval.

All checks of a gate share the 5 % of error in equal parts (Bonferroni). So at most 5 in 100 gates have a
breach although nothing is beyond its limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from wirepaint import metrics as measured
from wirepaint.errors import UsageError
from wirepaint.evaluation.visits import SIGNIFICANCE
from wirepaint.gate.budget import Budget, Rule
from wirepaint.statistics import losses, verdicts
from wirepaint.statistics.compare import drafts
from wirepaint.statistics.folders import FOLDER
from wirepaint.statistics.intervals import FEWEST, Interval, median
from wirepaint.statistics.wording import number, percent

Outcome = Literal["pass", "breach", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("breach", "undecided", "pass")
"""From the one that decides a gate to the one that decides nothing."""


@dataclass(frozen=True)
class Check:
    """One rule on one page in one set of conditions.

    ``found`` and ``limit`` are shares for a relative rule (positive: larger than the base), else in ``unit``.
    ``visits`` counts those of the side that is judged, ``visits_needed`` about how many decide an undecided
    check; None if no number does. ``confidence`` is that of the interval.
    """

    metric: str
    title: str
    unit: str
    page: str
    conditions: str
    is_relative: bool
    limit: float
    found: Interval
    confidence: float
    visits: int
    outcome: Outcome
    visits_needed: int | None

    @property
    def name(self) -> str:
        """Metric, page and conditions."""
        return f"{self.title}, {self.page}, {self.conditions}"

    @property
    def sentence(self) -> str:
        """The check with its numbers."""
        low, high = self.found.low, self.found.high
        bounds = "no interval" if low is None or high is None else f"{self._said(low)} to {self._said(high)}"
        text = f"{self.name}: {self._said(self.found.value)} ({bounds}), limit {self._said(self.limit)}"
        return f"{text}, {self.visits} visits: {self.outcome}{self._needed}"

    @property
    def _needed(self) -> str:
        if self.outcome != "undecided":
            return ""
        if self.visits_needed is None:
            return "; it lies on its limit"
        return f"; about {self.visits_needed} visits are needed"

    def _said(self, value: float) -> str:
        return f"{percent(value)} %" if self.is_relative else f"{number(value)} {self.unit}".strip()


def check(frame: pl.DataFrame, budget: Budget, base: str | None = None) -> list[Check]:
    """All checks of a budget over :func:`wirepaint.metrics.table`, or over that of two folders.

    ``base`` is then the name of the first (``folders.Pair``); absolute rules are for the candidate. Warm-up
    visits are left out. Raises UsageError for a rule that applies to nothing.
    """
    frame = frame.filter(~pl.col("warmup"))
    found: list[_Open] = []
    for place, rule in enumerate(budget.rules):
        of_rule = list(
            _relative(frame, rule, place, base) if rule.is_relative else _absolute(frame, rule, base)
        )
        if not of_rule:
            scope = ", ".join(filter(None, (rule.metric, rule.page, rule.network)))
            pages = ", ".join(frame["page"].unique(maintain_order=True).to_list()) or "no visit that counts"
            raise UsageError(f"rules[{place}]", scope, f"a metric, page and network with visits ({pages})")
        found += of_rule
    return [_judged(one, len(found)) for one in found]


@dataclass(frozen=True)
class _Open:
    """A check without interval, and what gives it one."""

    check: Check
    sign: int
    """1 if larger is worse, -1 if smaller is."""
    values: list[float]
    draft: verdicts.Draft | None = None

    def interval(self, confidence: float) -> Interval:
        if self.draft is None:
            return median(self.values, confidence=confidence)
        return verdicts.judge(self.draft, self.draft.row.p, confidence, 1).interval


def _judged(one: _Open, checks: int) -> Check:
    confidence = 1 - SIGNIFICANCE / checks
    found, limit = one.interval(confidence), one.check.limit
    outcome: Outcome = "undecided"
    if found.low is not None and found.high is not None:
        near, far = (found.low, found.high) if one.sign > 0 else (-found.high, -found.low)
        outcome = "breach" if near > one.sign * limit else "pass" if far <= one.sign * limit else "undecided"
    needed = None
    if outcome == "undecided":
        if one.draft is None and found.low is None:
            needed = FEWEST
        else:
            needed = verdicts.visits_needed(found, abs(found.value - limit), one.check.visits, 1, confidence)
    return replace(one.check, found=found, confidence=confidence, outcome=outcome, visits_needed=needed)


def _relative(frame: pl.DataFrame, rule: Rule, place: int, base: str | None) -> Iterator[_Open]:
    if base is None:
        raise UsageError(f"rules[{place}].worse_by", "one results folder", "a base and a candidate")
    assert rule.worse_by is not None
    metric = measured.get(rule.metric)
    sign = -1 if metric.better == "higher" else 1
    for draft in drafts(_scope(frame, rule), FOLDER, [rule.metric], base):
        row = draft.row
        if len(row.pages) == 1 and row.conditions:
            if not draft.relative:
                raise UsageError(
                    f"rules[{place}].metric", rule.metric, "worse_by of a metric that is positive"
                )
            yield _Open(
                _open_check(
                    metric, row.page or row.pages[0], row.stratum, True, sign * rule.worse_by, row.candidate.n
                ),
                sign,
                [],
                draft,
            )


def _absolute(frame: pl.DataFrame, rule: Rule, base: str | None) -> Iterator[_Open]:
    metric = measured.get(rule.metric)
    limit = rule.at_most if rule.at_most is not None else rule.at_least
    assert limit is not None
    frame = _scope(frame, rule)
    if base is not None:
        frame = frame.filter(pl.col(FOLDER) != base)
    value = pl.col(metric.column)
    if metric.name in losses.UNTIL_LOAD and losses.LIMIT in frame.columns:
        value = pl.coalesce(value, losses.LIMIT)
    axes = [
        axis for axis in measured.AXES if axis != "page" and (axis == "network" or frame[axis].n_unique() > 1)
    ]
    axes.sort(key=lambda axis: axis != "network")
    grouped = frame.with_columns(value=value).drop_nulls("value").group_by("page", *axes, maintain_order=True)
    for (page, *levels), group in grouped:
        values = group["value"].to_list()
        where = " / ".join(map(str, levels))
        made = _open_check(metric, str(page), where, False, limit, len(values))
        yield _Open(made, 1 if rule.at_most is not None else -1, values)


def _scope(frame: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    for column in ("page", "network"):
        if (only := getattr(rule, column)) is not None:
            frame = frame.filter(pl.col(column).cast(pl.String) == only)
    return frame


def _open_check(
    metric: measured.Metric, page: str, conditions: str, is_relative: bool, limit: float, visits: int
) -> Check:
    return Check(
        metric=metric.name,
        title=metric.title,
        unit=metric.unit.removeprefix("1"),
        page=page,
        conditions=conditions,
        is_relative=is_relative,
        limit=limit,
        found=Interval(float("nan")),
        confidence=float("nan"),
        visits=visits,
        outcome="undecided",
        visits_needed=None,
    )
