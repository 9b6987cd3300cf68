"""Each rule on each page and in all conditions: pass, breach, missing or undecided.

The statistics are those of ``compare``: the shift within a page for a relative rule, the median of a page's
visits for an absolute one, each with an interval. A check

``passes``     if its whole interval lies on the good side of the limit,
``breaches``   if all of it lies beyond: a breach has evidence,
``undecided``  if the limit lies within, or too few visits have an interval,
``missing``    if no visit has a value, or fewer than half of those that ended: a page that fails to load is
               no page that passes.

All checks of a gate share the 5 % of error in equal parts (Bonferroni). So at most 5 in 100 gates have a
breach although nothing is beyond its limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from wirepaint import catalogue
from wirepaint import metrics as measured
from wirepaint.errors import UsageError, show
from wirepaint.evaluation.visits import SIGNIFICANCE
from wirepaint.gate.budget import Budget, Rule
from wirepaint.statistics import losses, verdicts
from wirepaint.statistics.compare import drafts
from wirepaint.statistics.comparison import about, said
from wirepaint.statistics.folders import FOLDER
from wirepaint.statistics.intervals import FEWEST, Interval, median
from wirepaint.statistics.wording import count, number, percent, signed

Outcome = Literal["pass", "breach", "missing", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("breach", "missing", "undecided", "pass")
"""From the one that decides a gate to the one that decides nothing."""


@dataclass(frozen=True)
class Check:
    """One rule on one page in one set of conditions.

    ``key`` is the key of the rule's limit: ``at_most``, ``at_least`` or ``worse_by``. ``found`` and ``limit``
    are shares of the base if ``relative`` (positive: larger than it), else in ``unit``. ``visits`` counts
    those of the side that is judged, ``visits_needed`` about how many decide an undecided check; None if no
    number does. ``confidence`` is that of the interval. A missing check has nothing ``found``; ``lost`` says
    why.
    """

    metric: str
    title: str
    unit: str
    backend: str
    page: str
    conditions: str
    key: str
    limit: float
    found: Interval | None
    confidence: float
    visits: int
    outcome: Outcome
    visits_needed: int | None
    lost: str = ""
    relative: bool = False

    @property
    def name(self) -> str:
        """Back end, metric, page and conditions."""
        return f"{self.backend}: {self.title}, {self.page}, {self.conditions}"

    @property
    def place(self) -> tuple[str, str, str]:
        """What tells the checks of one rule apart."""
        return self.backend, self.page, self.conditions

    @property
    def rule(self) -> str:
        """The rule in words: "at most 1,200 ms", "at most 3 % worse"."""
        if self.relative:
            return f"at most {100 * abs(self.limit):g} % worse"
        if self.key == "worse_by":
            return f"at most {number(abs(self.limit))} {self.unit}".rstrip() + " worse"
        return f"{self.key.replace('_', ' ')} {self._said(self.limit)}"

    @property
    def sentence(self) -> str:
        """The check with its numbers."""
        if self.found is None:
            return f"{self.name}: {self.lost}: {self.outcome}"
        low, high = self.found.low, self.found.high
        bounds = "no interval" if low is None or high is None else f"{self._said(low)} to {self._said(high)}"
        least = "at least " if self.key == "at_least" else ""
        limit = f"limit {least}{self._said(self.limit)}"
        text = f"{self.name}: {self._said(self.found.value)} ({bounds}), {limit}"
        return f"{text}, {self.visits} visits: {self.outcome}{self._needed}"

    @property
    def _needed(self) -> str:
        if self.outcome != "undecided" or self.found is None:
            return ""
        if self.visits_needed is None:
            return "; it lies on its limit"
        return f"; {about(self.found)} {self.visits_needed} visits are needed"

    def _said(self, value: float) -> str:
        if self.relative:
            return f"{percent(value)} %"
        return f"{(signed if self.key == 'worse_by' else number)(value)} {self.unit}".strip()


def check(frame: pl.DataFrame, asked: pl.DataFrame, base: str | None, budget: Budget) -> list[Check]:
    """All checks of a budget over :func:`wirepaint.metrics.table`, or over that of two folders.

    ``asked`` has the visits that were asked for (``losses.asked``). ``base`` is the name of the first of two
    folders (``folders.Pair``); absolute rules are for the candidate. Warm-up visits are left out. Raises
    UsageError for a rule that applies to nothing. Equal rules are one.
    """
    frame = frame.filter(~pl.col("warmup"))
    found: list[_Open | Check] = []
    seen: set[Rule] = set()
    for place, rule in enumerate(budget.rules):
        rule = _meant(rule, f"rules[{place}]", frame, asked)
        if rule in seen:  # such as one of the budget that --margin gives again
            continue
        seen.add(rule)
        own, own_asked = _scope(frame, rule), _scope(asked, rule)
        axes = _axes(own, own_asked)
        missing = list(_missing(own, own_asked, axes, rule, base))
        places = {one.place for one in missing}
        of_rule = [
            one
            for one in (
                _relative(own, own_asked, rule, place, base)
                if rule.is_relative
                else _absolute(own, axes, rule, base)
            )
            if one.check.place not in places
        ]
        nowhere = _valued(own, measured.get(rule.metric)).is_empty() and (own_asked["end"] == "counted").all()
        if not of_rule and (not missing or nowhere):
            scope = ", ".join(filter(None, (rule.metric, rule.page, rule.network)))
            scope += ", of which no visit has a value" if missing else ""
            pages = ", ".join(frame["page"].unique(maintain_order=True).to_list()) or "no visit that counts"
            raise UsageError(f"rules[{place}]", scope, f"a metric, page and network with visits ({pages})")
        found += [*of_rule, *missing]
    return [one if isinstance(one, Check) else _judged(one, len(found)) for one in found]


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


def _relative(
    frame: pl.DataFrame, asked: pl.DataFrame, rule: Rule, place: int, base: str | None
) -> Iterator[_Open]:
    if base is None:
        raise UsageError(f"rules[{place}].worse_by", "one results folder", "a base and a candidate")
    assert rule.worse_by is not None
    metric = measured.get(rule.metric)
    sign = _sign(rule)
    if frame[FOLDER].n_unique() < 2:  # one of the two lacks every page of the rule
        return
    only = str(asked["backend"][0])
    for draft in drafts(frame, FOLDER, [rule.metric], base, visits=asked):
        row = draft.row
        if len(row.pages) == 1 and row.conditions:
            page = row.page or row.pages[0]
            visits = row.candidate.n + row.candidate.timed_out
            levels = {"backend": only, "page": page} | row.conditions
            check = _open_check(metric, levels, rule, visits)
            if not draft.relative:  # some visit has 0, so the difference is in the metric's unit
                values = [before for blocks in draft.strata.values() for before, _ in blocks]
                usual = float(np.median(np.concatenate(values)))
                check = replace(check, relative=False, limit=sign * rule.worse_by * usual)
            yield _Open(check, sign, [], draft)


def _absolute(frame: pl.DataFrame, axes: Sequence[str], rule: Rule, base: str | None) -> Iterator[_Open]:
    metric = measured.get(rule.metric)
    if base is not None:
        frame = frame.filter(pl.col(FOLDER) != base)
    for levels, group in _valued(frame, metric).group_by(axes, maintain_order=True):
        values = group["value"].to_list()
        at = dict(zip(axes, map(str, levels), strict=True))
        yield _Open(_open_check(metric, at, rule, len(values)), _sign(rule), values)


def _missing(
    frame: pl.DataFrame, asked: pl.DataFrame, axes: Sequence[str], rule: Rule, base: str | None
) -> Iterator[Check]:
    """A check for each page and conditions of which a side that the rule needs has no value, or few."""
    metric = measured.get(rule.metric)
    if metric.over != "run":
        asked = asked.filter(pl.col("of_flows") == (metric.over == "flow"))
    values = _valued(frame, metric)
    sides = [("", values, asked)]
    if base is not None:
        of_base, of_candidate = pl.col(FOLDER) == base, pl.col(FOLDER) != base
        sides = [("the candidate: ", values.filter(of_candidate), asked.filter(of_candidate))]
        if rule.is_relative:  # a page that only the candidate asks for has nothing to be worse than
            sides.append(("the base: ", values.filter(of_base), asked.filter(of_base)))
    # What only the base has must not vanish from a candidate unseen.
    needed = (sides[-1][2] if rule.is_relative else asked).select(axes).unique().sort(axes)
    for levels in needed.iter_rows():
        at = [pl.col(name) == level for name, level in zip(axes, levels, strict=True)]
        for side, own, visits in sides:
            number = own.filter(*at).height
            ends = visits.filter(*at)["end"]
            ended = losses.of(side, Counter(ends))
            if number == 0 or 2 * number < ended.ended:
                causes = f" ({ended.causes})" if ended.causes else ""
                lost = f"{side}{number} of {count(ended.ended, 'visit')} with a value{causes}"
                if not ended.ended:
                    lost = f"{side}no visit that ended"
                if ends.is_empty():
                    lost = f"{side}it does not have this page and network"
                made = _open_check(metric, dict(zip(axes, map(str, levels), strict=True)), rule, number)
                yield replace(made, outcome="missing", lost=lost)
                break


def _valued(frame: pl.DataFrame, metric: measured.Metric) -> pl.DataFrame:
    """The rows with a ``value``: that of the metric, or the limit that a load exceeded."""
    value = pl.col(metric.column)
    if metric.name in losses.UNTIL_LOAD and losses.LIMIT in frame.columns:
        value = pl.coalesce(value, losses.LIMIT)
    return frame.with_columns(value=value).drop_nulls("value")


def _axes(*frames: pl.DataFrame) -> list[str]:
    """The axes that tell checks apart: back end, page, network, and others that vary."""
    always = ("backend", "page", "network")
    varying = (axis for axis in measured.AXES if max(frame[axis].n_unique() for frame in frames) > 1)
    return list(dict.fromkeys((*always, *varying)))


def _sign(rule: Rule) -> int:
    """1 if a larger value breaks the rule, -1 if a smaller one does."""
    if rule.is_relative:
        return -1 if measured.get(rule.metric).better == "higher" else 1
    return 1 if rule.at_most is not None else -1


def _meant(rule: Rule, place: str, *frames: pl.DataFrame) -> Rule:
    """The rule with the usual name of its metric, and its page and network as the results call them.

    Raises UsageError for those they lack.
    """
    update = {"metric": measured.get(rule.metric).name}
    for column in ("page", "network"):
        if (name := getattr(rule, column)) is None:
            continue
        levels = pl.concat([frame[column].cast(pl.String) for frame in frames])
        known = levels.drop_nulls().unique(maintain_order=True).to_list()
        update[column] = catalogue.called(column, name, known)
        if update[column] not in known:
            raise UsageError(f"{place}.{column}", show(name), catalogue.nearest(column, name, known))
    return rule.model_copy(update=update)


def _scope(frame: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    for column in ("page", "network"):
        if (only := getattr(rule, column)) is not None:
            frame = frame.filter(pl.col(column).cast(pl.String) == only)
    return frame


def _open_check(metric: measured.Metric, levels: Mapping[str, str], rule: Rule, visits: int) -> Check:
    """A check without outcome, at these levels of back end, page and the axes of its conditions."""
    limit = rule.at_most if rule.at_most is not None else rule.at_least
    if rule.worse_by is not None:
        limit = _sign(rule) * rule.worse_by
    assert limit is not None
    return Check(
        metric=metric.name,
        title=metric.title,
        unit=metric.unit.removeprefix("1"),
        backend=levels["backend"],
        page=levels["page"],
        conditions=" / ".join(said(*one) for one in levels.items() if one[0] not in ("backend", "page")),
        key=rule.key,
        limit=limit,
        found=None,
        confidence=1 - SIGNIFICANCE,
        visits=visits,
        outcome="undecided",
        visits_needed=None,
        relative=rule.is_relative,
    )
