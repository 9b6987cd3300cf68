"""A comparison of a candidate level with the baseline: its numbers, and a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from wirepaint.evaluation import axes
from wirepaint.statistics import losses
from wirepaint.statistics.intervals import Interval, Sample
from wirepaint.statistics.losses import Losses
from wirepaint.statistics.wording import bounds, count, percent, signed

MIXED, TOO_FEW = "mixed", "too few visits"
"""Verdicts that leave it open: pages disagree, or more visits may decide."""
_RELATION = {
    "faster": "faster than",
    "slower": "slower than",
    "better": "better than",
    "worse": "worse than",
    "shorter": "shorter than",
    "longer": "longer than",
    "lower": "lower than",
    "higher": "higher than",
    "same": "the same within the margin as",
    MIXED: "mixed ({who} disagree) against",
    TOO_FEW: "not told apart from",
}


@dataclass(frozen=True)
class Level:
    """All values of a metric at one level of the factor.

    ``samples`` holds every value by stratum: by page, or "network / page" over several networks.
    ``median`` and ``mean`` are means over the strata, so that each page has the same weight; strata with
    values at both levels if there are any; None without a value. ``timed_out`` visits have a rank, no value.
    """

    level: str
    n: int
    median: Interval | None
    mean: Interval | None
    samples: dict[str, Sample]
    timed_out: int

    @property
    def values(self) -> dict[str, tuple[float, ...]]:
        """The values of each stratum."""
        return {name: tuple(sample.values.tolist()) for name, sample in self.samples.items()}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        said = {
            name: value and asdict(value) for name, value in (("median", self.median), ("mean", self.mean))
        }
        return {"level": self.level, "n": self.n, **said, "values": self.values, "timed_out": self.timed_out}


@dataclass(frozen=True)
class Comparison:
    """A candidate level against the baseline level, under one set of conditions.

    ``conditions`` are the other axes that vary in the results, such as ``network``. Over all
    conditions it is empty and ``network`` is None. ``page`` is None over all pages. ``shift`` is in the
    metric's unit, ``shift_rel`` a share of the baseline (None if a value is not positive);
    negative if the candidate is lower. ``by_stratum`` has the shift of each stratum,
    relative if ``shift_rel`` is; ``dissent`` names the strata whose interval contradicts the
    verdict, or those that disagree if it is mixed.

    ``p_holm`` is corrected for ``family`` comparisons. The intervals of the shift have the ``confidence``
    that belongs to this correction, so the verdict follows from them; those of the strata share it.
    ``visits_needed`` is about how many visits of each page at each level decide, if too few were made; None
    if no number does. ``losses`` has the ends of the visits of baseline and candidate, if known. ``unpaired``
    is the number of visits that are left out, since their host has none at the other level.

    A visit that timed out ranks behind all that loaded. In the shift its limit replaces its value, so a shift
    or a bound that depends on it is a lower bound.
    """

    metric: str
    title: str
    unit: str
    metric_is_primary: bool
    factor: str
    conditions: dict[str, str]
    network: str | None
    page: str | None
    pages: tuple[str, ...]
    left_out: tuple[str, ...]
    baseline: Level
    candidate: Level
    shift: Interval
    shift_rel: Interval | None
    by_stratum: dict[str, Interval]
    test: str
    p: float
    p_holm: float
    confidence: float
    family: int
    effect: float
    margin: float
    verdict: str
    dissent: tuple[str, ...]
    losses: tuple[Losses, Losses] | None = None
    unpaired: int = 0
    visits_needed: int | None = None

    @property
    def is_primary(self) -> bool:
        """Whether it is what the evaluation is for: a primary metric, over all pages."""
        return self.metric_is_primary and self.page is None

    @property
    def is_decided(self) -> bool:
        """Whether the visits tell: a difference, or that there is none that matters."""
        return self.verdict not in (MIXED, TOO_FEW)

    @property
    def interval(self) -> Interval:
        """The difference that the verdict uses: relative if defined."""
        return self.shift_rel or self.shift

    @property
    def uneven(self) -> str:
        """A sentence if the two levels lost different shares of their visits; else empty."""
        if self.losses is None or not losses.uneven(*self.losses):
            return ""
        where = " / ".join(
            [*([self.stratum] if self.conditions else []), *([self.page] if self.page else [])]
        )
        return losses.sentence(*self.losses, where or "all conditions")

    @property
    def stratum(self) -> str:
        """The conditions in words."""
        return " / ".join(said(*one) for one in self.conditions.items()) or "all"

    @property
    def sentence(self) -> str:
        """The whole comparison in one sentence."""
        return sentence(self)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every field, the stratum and the sentence."""
        said = {"stratum": self.stratum, "sentence": self.sentence, "uneven": self.uneven}
        said |= {
            "is_primary": self.is_primary,
            "is_decided": self.is_decided,
            "interval": asdict(self.interval),
        }
        said |= {"baseline": self.baseline.as_dict(), "candidate": self.candidate.as_dict()}
        return {**asdict(self), **said, "losses": [each.as_dict() for each in self.losses or ()]}


def said(axis: str, level: str) -> str:
    """A level in a sentence: a number says what it is ("IW 10"), a name stays as it is in the file."""
    return axes.words(axis, level) if level.isdecimal() else level


def sentence(row: Comparison) -> str:
    """A comparison in one self-contained sentence."""
    where = row.stratum if row.conditions else "all conditions"
    scope = f"page {row.page}" if row.page else count(len(row.pages), "page")
    who = "the pages" if len(row.pages) > 1 else "the conditions"
    baseline, candidate = (said(row.factor, side.level) for side in (row.baseline, row.candidate))
    relation = f"{candidate} is {_RELATION[row.verdict].format(who=who)} {baseline}"
    return (
        f"{row.title}, {where}, {scope}: {relation}; "
        f"difference {difference(row)}; p = {row.p_holm:.2g} ({row.test}, Holm over "
        f"{count(row.family, 'comparison')}); {row.baseline.n} and {row.candidate.n} visits"
        f"{_timeouts(row)}{_unpaired(row)}{_dissent(row)}{_needed(row)}."
    )


def _timeouts(row: Comparison) -> str:
    if not row.baseline.timed_out and not row.candidate.timed_out:
        return ""
    numbers = f"{row.baseline.timed_out} and {row.candidate.timed_out}"
    return f", and {numbers} that timed out, taken as longer than the limit"


def _unpaired(row: Comparison) -> str:
    return f"; {row.unpaired} left out, alone on their host" if row.unpaired else ""


def _dissent(row: Comparison) -> str:
    if not row.dissent:
        return ""
    shifts = (f"{name} ({shown_shift(row, row.by_stratum[name].value)})" for name in row.dissent)
    return f"; {'apart' if row.verdict == MIXED else 'against it'}: {', '.join(shifts)}"


def _needed(row: Comparison) -> str:
    return "" if row.verdict != TOO_FEW else f"; {needed(row)}"


def needed(row: Comparison) -> str:
    """How many visits decide a comparison that has too few."""
    if row.visits_needed is None:
        return "no reasonable number of visits decides it: the difference is as large as the margin"
    return f"{about(row.interval)} {row.visits_needed} visits of each page are needed"


def about(found: Interval) -> str:
    """How sure a number of visits that are needed is: too few visits have no interval, so no known spread."""
    return "at least" if found.low is None else "about"


def shown_shift(row: Comparison, shift: float) -> str:
    """A shift of the row's metric with its unit, relative if the row's interval is.

    Two shares of 5 and 8 % differ by 3 points, not by 3 %.
    """
    if row.shift_rel is not None:
        return f"{percent(shift)} %"
    unit = "points" if row.unit == "%" else row.unit.removeprefix("1")
    return f"{signed(shift)} {unit}".rstrip()


def difference(row: Comparison) -> str:
    """The shift with its interval, relative if defined."""
    if row.shift_rel is not None:
        return f"{shown_shift(row, row.shift_rel.value)} ({bounds(row.shift_rel, percent)})"
    return f"{shown_shift(row, row.shift.value)} ({bounds(row.shift)})"
