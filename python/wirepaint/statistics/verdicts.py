"""From tests to words: correction for several comparisons, intervals that agree with it, verdicts.

Families, each corrected by itself (Holm 1979), measured and simulated rows always apart:

- the *primary* metrics, over all pages: what the evaluation is for;
- all other metrics, over all pages: exploratory;
- the single pages of the primary metrics, then those of all others: exploratory too.

So the chance that any verdict on a primary metric is wrong stays at 5 %, whatever else is looked at.
docs/decisions/0028-verdicts.md gives the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from scipy import special

from wirepaint import metrics as measured
from wirepaint.evaluation.visits import SIGNIFICANCE, fewest_visits
from wirepaint.statistics import ranks
from wirepaint.statistics.comparison import MIXED, TOO_FEW, Comparison
from wirepaint.statistics.intervals import Interval

POWER = 0.95
"""With the number of visits that is called needed, this share of evaluations is decided."""
WAITS = "queueing-delay"
"""So begin the names of metrics in ms of which "faster" is no word."""
MOST_NEEDED = 10_000
"""Visits; a difference that needs more counts as one that no number decides."""


@dataclass(frozen=True)
class Draft:
    """A comparison without interval and verdict, and its values at baseline and candidate.

    ``strata`` has for each stratum those of each host.
    """

    row: Comparison
    strata: Mapping[str, Sequence[ranks.Stratum]]

    @property
    def relative(self) -> bool:
        """Whether all values are positive, so that a difference is a share."""
        return all(ranks.Block.of(block).is_positive for blocks in self.strata.values() for block in blocks)


def judged(drafts: Sequence[Draft], looks: int = 1) -> list[Comparison]:
    """The comparisons with corrected p values, intervals and verdicts.

    ``looks`` is how often the evaluation may have been judged before it ended (``until``): each look has an
    equal part of the 5 %.
    """
    families: dict[tuple[bool, bool, str | None], list[int]] = {}
    for index, draft in enumerate(drafts):
        row = draft.row
        family = row.metric_is_primary, row.page is None, row.conditions.get("backend")
        families.setdefault(family, []).append(index)
    found: dict[int, Comparison] = {}
    for members in families.values():
        steps = holm([drafts[index].row.p for index in members], SIGNIFICANCE / looks)
        for index, (p, level) in zip(members, steps, strict=True):
            found[index] = judge(drafts[index], min(1.0, p * looks), 1 - level, len(members))
    return [found[index] for index in range(len(drafts))]


def holm(p: Sequence[float], significance: float = SIGNIFICANCE) -> list[tuple[float, float]]:
    """P values corrected by Holm's step-down method, each with the level that its interval belongs to.

    The interval of confidence 1 - level leaves out zero exactly if the corrected p is at most
    ``significance``. Of n comparisons the one with the smallest p has the level significance / n, the
    next significance / (n - 1), and so on up to the first that is not significant; the rest have its level.
    """
    found = [(1.0, significance)] * len(p)
    largest, steps, failed = 0.0, len(p), False
    for rank, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[index]))
        if not failed:
            steps = len(p) - rank
            failed = steps * p[index] > significance
        found[index] = largest, significance / steps
    return found


def judge(draft: Draft, p: float, confidence: float, family: int) -> Comparison:
    """The comparison with its intervals of this confidence, and the verdict that follows from them."""
    strata, relative = draft.strata, draft.relative
    arrays = [*chain.from_iterable(strata.values())]
    of_each = 1 - (1 - confidence) / len(strata)
    estimate = shift_rel if relative else ranks.shift
    shift = ranks.shift(arrays, confidence)
    relative_shift = shift_rel(arrays, confidence) if relative else None
    if len(strata) == 1:
        by_stratum = dict.fromkeys(strata, relative_shift or shift)
    else:
        by_stratum = {name: estimate(blocks, of_each) for name, blocks in strata.items()}
    row = replace(
        draft.row,
        shift=shift,
        shift_rel=relative_shift,
        by_stratum=by_stratum,
        p_holm=p,
        confidence=confidence,
        family=family,
    )
    verdict, dissent = _verdict(row)
    needed = None
    if verdict == TOO_FEW:
        visits = round(sum(side.size for pair in arrays for side in pair) / 2 / len(strata))
        whole, limit = row.interval, _limit(row)
        goal = max(abs(whole.value), limit - abs(whole.value))
        needed = visits_needed(whole, goal, visits, len(strata), confidence)
    return replace(row, verdict=verdict, dissent=dissent, visits_needed=needed)


def shift_rel(strata: Sequence[ranks.Stratum], confidence: float) -> Interval:
    """The shift of the logarithms, as a share of the baseline."""
    logs = ranks.shift([ranks.Block.of(stratum).logs for stratum in strata], confidence)
    return Interval(
        math.expm1(logs.value),
        None if logs.low is None else math.expm1(logs.low),
        None if logs.high is None else math.expm1(logs.high),
    )


def visits_needed(interval: Interval, goal: float, visits: int, pages: int, confidence: float) -> int | None:
    """Visits of each page at each level after which the interval decides, from the spread of ``visits``.

    The interval must not reach farther than ``goal`` from its middle, and it shrinks with the root of the
    visits. The answer holds for ``POWER`` of all evaluations if the difference is the one seen so far.
    None if no number of visits helps: the difference lies on the limit.
    """
    if interval.low is None or interval.high is None:
        return fewest_visits(1 - confidence, pages)
    if goal <= 0:
        return None
    quantile = -float(special.ndtri((1 - confidence) / 2))
    reserve = 1 + float(special.ndtri(POWER)) / quantile
    half = (interval.high - interval.low) / 2
    needed = max(visits + 1, math.ceil(visits * (half / goal * reserve) ** 2))
    return needed if needed <= MOST_NEEDED else None


def _limit(row: Comparison) -> float:
    """The margin in the unit of the row's interval."""
    middle = row.baseline.median
    return row.margin if row.shift_rel is not None or middle is None else row.margin * abs(middle.value)


def _verdict(row: Comparison) -> tuple[str, tuple[str, ...]]:
    """The verdict, and the strata that contradict it."""
    limit, whole = _limit(row), row.interval
    apart = tuple(name for name, shift in row.by_stratum.items() if shift.outside(limit))
    if whole.inside(limit):
        return (MIXED, apart) if apart and len(row.by_stratum) > 1 else ("same", ())
    if not whole.outside(0):
        lower = [name for name, shift in row.by_stratum.items() if shift.outside(0) and shift.value < 0]
        higher = [name for name, shift in row.by_stratum.items() if shift.outside(0) and shift.value > 0]
        return (MIXED, (*lower, *higher)) if lower and higher else (TOO_FEW, ())
    falls = whole.value < 0
    word = _direction(measured.get(row.metric), falls)
    return word, tuple(name for name in apart if (row.by_stratum[name].value < 0) != falls)


def _direction(metric: measured.Metric, falls: bool) -> str:
    """The word for a lower or a higher value."""
    if metric.better is None:
        less, more = ("shorter", "longer") if metric.unit == "ms" else ("lower", "higher")
        return less if falls else more
    is_speed = metric.unit == "ms" and not metric.name.startswith(WAITS)
    good, bad = ("faster", "slower") if is_speed else ("better", "worse")
    return good if falls == (metric.better == "lower") else bad
