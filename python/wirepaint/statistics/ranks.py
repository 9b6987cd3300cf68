"""Rank tests of a candidate against a baseline, and the shift between them with its interval.

Visits are replicates within a page, so a page is a stratum: values are ranked only against values of
the same page, so page sizes do not matter.

- Two or more visits of a page: van Elteren's stratified Mann-Whitney test (van Elteren 1960). With
  one page it is the Mann-Whitney test.
- One visit of each page at each level: Wilcoxon's signed-rank test over the pages.

The shift is the Hodges-Lehmann estimate that belongs to the test (Hodges and Lehmann 1963): the
weighted median of all differences within pages, or the median of the Walsh averages. Its interval
holds the shifts that the test would not reject, so test and interval agree. The null distribution
is exact up to ``EXACT_PAIRS`` pairs of values (ties included), and normal beyond. No distribution
of the values is assumed; the test is valid because the visits are in random order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import special

from wirepaint.statistics.intervals import CONFIDENCE, Interval
from wirepaint.statistics.pairs import Averages, Pairs

EXACT_PAIRS = 3000

LISTED = 10_000
"""Pairs of several weights whose differences are listed: they are sorted."""
LISTED_OF_EQUALS = 2_000_000
"""Those of equal weight: 16 MB, and only a few places among them are looked up."""

Stratum = tuple[np.ndarray, np.ndarray]
"""Values of one page: at the baseline, at the candidate."""


class Block(tuple[np.ndarray, np.ndarray]):
    """A stratum that remembers what several comparisons ask of it: of its page, its network, and all."""

    @classmethod
    def of(cls, stratum: Stratum) -> Block:
        """The stratum, with what is known of it."""
        return stratum if isinstance(stratum, Block) else cls(stratum)

    @property
    def pairs(self) -> int:
        """Number of pairs of a baseline and a candidate."""
        return self[0].size * self[1].size

    @cached_property
    def larger(self) -> int:
        """Twice the number of pairs with a larger baseline; ties count half."""
        ordered = np.sort(self[1])
        below, up_to = (np.searchsorted(ordered, self[0], side) for side in ("left", "right"))
        return int((below + up_to).sum())

    @cached_property
    def tied_variance(self) -> float:
        """Variance of the ranks, with their ties."""
        return float(np.var(doubled_ranks(np.concatenate(self)) / 2, ddof=1))

    @cached_property
    def is_positive(self) -> bool:
        """Whether all values are positive, so that a difference is a share."""
        return bool((self[0] > 0).all() and (self[1] > 0).all())

    @cached_property
    def logs(self) -> Block:
        """The logarithms of the values."""
        return Block((np.log(self[0]), np.log(self[1])))


@dataclass(frozen=True)
class RankTest:
    """``effect`` is Cliff's delta (of the ranks, averaged over pages) or the rank-biserial correlation.

    It is the share of pairs with a larger candidate minus the share with a smaller one.
    """

    name: str
    p: float
    effect: float


def rank_test(strata: Sequence[Stratum]) -> RankTest:
    """Two-sided test of no difference at any page, by the rule above."""
    if _single_visits(strata):
        return _signed_rank(np.array([candidate[0] - baseline[0] for baseline, candidate in strata]))
    return _van_elteren(strata)


def shift(strata: Sequence[Stratum], confidence: float = CONFIDENCE) -> Interval:
    """Hodges-Lehmann shift from baseline to candidate with its interval of this confidence."""
    if _single_visits(strata):
        differences = np.array([candidate[0] - baseline[0] for baseline, candidate in strata])
        null = _signed_rank_null(np.arange(1, differences.size + 1))
        if differences.size**2 > LISTED_OF_EQUALS:
            return _invert_many(Averages(differences), null, confidence)
        one, other = np.triu_indices(differences.size)
        return _invert_equal((differences[one] + differences[other]) / 2, null, confidence)
    weights = _weights(strata)
    null = _null(strata, weights, tied=False)
    pairs = sum(baseline.size * candidate.size for baseline, candidate in strata)
    if set(weights) == {1} and pairs <= LISTED_OF_EQUALS:
        differences = [np.subtract.outer(candidate, baseline).ravel() for baseline, candidate in strata]
        return _invert_equal(np.concatenate(differences), null, confidence)
    if pairs > LISTED:
        return _invert_many(Pairs(strata, weights), null, confidence)
    differences = [np.subtract.outer(candidate, baseline).ravel() for baseline, candidate in strata]
    heavy = np.concatenate([np.full(d.size, w) for d, w in zip(differences, weights, strict=True)])
    return _invert(np.concatenate(differences), heavy, null, confidence)


def _invert_equal(values: np.ndarray, null: _Distribution, confidence: float) -> Interval:
    """:func:`_invert` of pairs of equal weight: four of them are needed, and no order of all others."""
    total = values.size
    first = -(-total // 2) - 1
    places = [first, first + (total % 2 == 0)]
    tail = null.lower_tail((1 - confidence) / 2)
    if tail >= 0:
        places += [math.floor(tail), math.ceil(total - tail) - 1]
    values.partition(sorted(set(places)))
    found = values[places].tolist()
    return Interval((found[0] + found[1]) / 2, *found[2:])


def _invert_many(values: Pairs | Averages, null: _Distribution, confidence: float) -> Interval:
    """:func:`_invert` of more pairs than can be listed."""
    total = values.total
    first = values.smallest(total / 2)
    second = values.smallest(total / 2 + 0.5) if 2 * values.at_most(first) == total else first
    tail = null.lower_tail((1 - confidence) / 2)
    value = (first + second) / 2
    if tail < 0:
        return Interval(value)
    return Interval(value, values.smallest(math.floor(tail) + 1), values.smallest(total - tail))


def doubled_ranks(values: np.ndarray) -> np.ndarray:
    """Twice the rank of each value, from 1: whole numbers, as equal values share the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (2 * np.cumsum(counts) - counts + 1)[places]


def _single_visits(strata: Sequence[Stratum]) -> bool:
    return len(strata) > 1 and all(a.size == 1 and b.size == 1 for a, b in strata)


# Null distributions of a statistic with the values 0, 1, ..., size - 1.


@dataclass(frozen=True)
class _Exact:
    pmf: np.ndarray

    def at_most(self, value: int) -> float:
        return float(self.pmf[: value + 1].sum())

    def at_least(self, value: int) -> float:
        return float(self.pmf[value:].sum())

    def lower_tail(self, alpha: float) -> int:
        """Largest value with a cumulative probability of at most ``alpha``; -1 for none."""
        return int(np.searchsorted(np.cumsum(self.pmf), alpha * (1 + 1e-12), "right")) - 1


@dataclass(frozen=True)
class _Normal:
    mean: float
    deviation: float

    def at_most(self, value: int) -> float:
        return float(special.ndtr((value - self.mean) / self.deviation)) if self.deviation else 1.0

    def at_least(self, value: int) -> float:
        return float(special.ndtr((self.mean - value) / self.deviation)) if self.deviation else 1.0

    def lower_tail(self, alpha: float) -> float:
        return max(float(special.ndtri(alpha)) * self.deviation + self.mean, -1.0)


_Distribution = _Exact | _Normal


def _two_sided(null: _Distribution, value: int) -> float:
    return min(1.0, 2 * min(null.at_most(value), null.at_least(value)))


def _van_elteren(strata: Sequence[Stratum]) -> RankTest:
    """The statistic is twice the weighted number of pairs with a larger baseline; ties count half."""
    strata = [Block.of(stratum) for stratum in strata]
    weights = _weights(strata)
    larger = sum(weight * block.larger for block, weight in zip(strata, weights, strict=True))
    total = 2 * sum(w * a.size * b.size for w, (a, b) in zip(weights, strata, strict=True))
    p = _two_sided(_null(strata, weights, tied=True), larger)
    name = "Mann-Whitney" if len(strata) == 1 else "van Elteren"
    return RankTest(name, p, 1 - 2 * larger / total)


def _weights(strata: Sequence[Stratum]) -> list[int]:
    """Van Elteren's 1 / (values of the page + 1) as small whole numbers, so that exact sums stay small.

    The test is exact with any fixed weights; they only affect its power.
    """
    sizes = [baseline.size + candidate.size + 1 for baseline, candidate in strata]
    weights = [max(1, round(10 * min(sizes) / size)) for size in sizes]
    divisor = math.gcd(*weights)
    return [weight // divisor for weight in weights]


def _null(strata: Sequence[Stratum], weights: Sequence[int], *, tied: bool) -> _Distribution:
    """Distribution of the weighted count of pairs under random labels within each page.

    ``tied`` includes the values' ties and counts half pairs; without it, the values
    count as all different, and whole pairs are counted.
    """
    unit = 2 if tied else 1
    pairs = [baseline.size * candidate.size for baseline, candidate in strata]
    if sum(w * k for w, k in zip(weights, pairs, strict=True)) > EXACT_PAIRS:
        variance = 0.0
        for weight, stratum, k in zip(weights, strata, pairs, strict=True):
            size = stratum[0].size + stratum[1].size
            of_ranks = Block.of(stratum).tied_variance if tied else _variance_of_ranks(size)
            variance += weight**2 * k * of_ranks / size
        mean = sum(w * k for w, k in zip(weights, pairs, strict=True)) / 2
        return _Normal(unit * mean, unit * math.sqrt(variance))
    ranks = [_ranks(stratum, tied) for stratum in strata]
    pmf = np.ones(1)
    for weight, doubled, (baseline, _) in zip(weights, ranks, strata, strict=True):
        own = _rank_sum_null(tuple(doubled.tolist()), baseline.size)[:: 1 if tied else 2]
        spread = np.zeros(weight * (own.size - 1) + 1)
        spread[::weight] = own
        pmf = np.convolve(pmf, spread)
    return _Exact(pmf)


def _ranks(stratum: Stratum, tied: bool) -> np.ndarray:
    values = np.concatenate(stratum)
    return doubled_ranks(values) if tied else 2 * np.arange(1, values.size + 1)


@lru_cache(maxsize=4096)
def _variance_of_ranks(size: int) -> float:
    """Variance of the ranks of so many values that are all different."""
    return float(np.var(np.arange(1, size + 1).astype(float), ddof=1))


@lru_cache(maxsize=256)
def _rank_sum_null(doubled: tuple[int, ...], chosen: int) -> np.ndarray:
    """Distribution of twice the Mann-Whitney count when ``chosen`` of the doubled ranks are drawn.

    Pages with equally many visits and no ties share one.
    """
    # The table grows with the drawn side, so draw the smaller one; the counts add up to all pairs.
    if 2 * chosen > len(doubled):
        return _rank_sum_null(doubled, len(doubled) - chosen)[::-1]
    ways = np.zeros((chosen + 1, sum(doubled) + 1))
    ways[0, 0] = 1
    reached = 0
    for seen, rank in enumerate(doubled):
        drawn = min(seen + 1, chosen)  # more are not drawn yet, and no sum is beyond ``reached``
        ways[1 : drawn + 1, rank : reached + rank + 1] += ways[:drawn, : reached + 1]
        reached += rank
    pairs = chosen * (len(doubled) - chosen)
    least = chosen * (chosen + 1)
    pmf = ways[chosen, least : least + 2 * pairs + 1]
    return pmf / pmf.sum()


def _signed_rank(differences: np.ndarray) -> RankTest:
    """Zero differences are left out, as Wilcoxon did; ties share their ranks."""
    moved = differences[differences != 0]
    if moved.size == 0:
        return RankTest("Wilcoxon", 1.0, 0.0)
    doubled = doubled_ranks(np.abs(moved))
    down, total = int(doubled[moved < 0].sum()), int(doubled.sum())
    return RankTest("Wilcoxon", _two_sided(_signed_rank_null(doubled), down), 1 - 2 * down / total)


def _signed_rank_null(ranks: np.ndarray) -> _Distribution:
    """Distribution of the sum of the ranks whose sign is drawn."""
    if ranks.size**2 > EXACT_PAIRS:
        return _Normal(float(ranks.sum()) / 2, math.sqrt(float((ranks.astype(float) ** 2).sum())) / 2)
    pmf = np.zeros(int(ranks.sum()) + 1)
    pmf[0] = 1
    for rank in ranks:
        pmf[rank:] = pmf[rank:] + pmf[:-rank]
    return _Exact(pmf / pmf.sum())


def _invert(values: np.ndarray, weights: np.ndarray, null: _Distribution, confidence: float) -> Interval:
    """Weighted median of the values, and the shifts that the test with this null would not reject.

    A shift is rejected if the weight of the values below it, or above it, is in the test's tail.
    """
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(weights[order])
    total = int(below[-1])
    first = int(np.searchsorted(2 * below, total, "left"))
    second = first + 1 if 2 * below[first] == total else first
    tail = null.lower_tail((1 - confidence) / 2)
    value = float((values[first] + values[second]) / 2)
    if tail < 0:
        return Interval(value)
    low = int(np.searchsorted(below, tail, "right"))
    high = int(np.searchsorted(below, total - tail, "left"))
    return Interval(value, float(values[low]), float(values[high]))
