"""Order statistics of all pairwise differences or averages of many values, without listing the pairs.

Two sets of 10,000 visits have 10^8 differences. How many of them are at most some value is counted in
n log n steps, since both sets are sorted. So the wanted difference is bracketed until few pairs are left
between, and these are listed (the idea of Johnson and Mizoguchi, SIAM J. Comput. 7, 1978). A random sample
of the pairs in the bracket says where to cut it; it only saves steps, the answer is exact.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

_SAMPLE = 5_000
LISTED = 30_000
"""Pairs that are listed at once to find one among them: with more or fewer it takes longer."""


@dataclass(order=True)
class _Cut:
    """A value with what is at most as large: the weight and number of pairs, and candidates by baseline."""

    value: float
    weight: int = field(compare=False)
    number: int = field(compare=False)
    places: list[np.ndarray] = field(compare=False)


class Pairs:
    """The differences candidate - baseline within each stratum, each pair with the weight of its stratum."""

    def __init__(self, strata: Sequence[tuple[np.ndarray, np.ndarray]], weights: Sequence[int]) -> None:
        self._strata = [(np.sort(baseline), np.sort(candidate)) for baseline, candidate in strata]
        self._weights = list(weights)
        self.total = sum(w * a.size * b.size for w, (a, b) in zip(weights, self._strata, strict=True))
        """Weight of all pairs."""
        # A sum is rounded otherwise than a difference: pairs closer than this count as equal.
        self._noise = 4 * float(np.spacing(max(np.abs(side).max() for pair in self._strata for side in pair)))
        ends = (
            min(float(b[0] - a[-1]) for a, b in self._strata) - self._noise,
            max(float(b[-1] - a[0]) for a, b in self._strata) + self._noise,
        )
        self._random = np.random.default_rng(0)
        # What is counted once serves every later question: the answers wanted lie close together.
        self._cuts = [self._cut(end) for end in ends]

    def at_most(self, value: float) -> int:
        """Weight of the pairs whose difference is at most ``value``."""
        return self._cut(value).weight

    def smallest(self, target: float) -> float:
        """The smallest difference such that the weight of all pairs up to it is at least ``target``."""
        low, high = self._bracket(target)
        while high.number - low.number > LISTED:
            middle = (low.value + high.value) / 2
            if high.value - low.value <= 3 * self._noise:
                return middle  # all of them are equal
            guesses = self._around(target, low, high)
            for guess in (guesses[0] - self._noise, guesses[1] + self._noise, middle):
                if low.value < guess < high.value:
                    insort(self._cuts, self._cut(guess))
                    low, high = self._bracket(target)
        ranks = np.arange(high.number - low.number)
        if not ranks.size:
            return high.value
        differences, weights = self._between(low, high, ranks)
        if len(set(self._weights)) == 1:
            place = min(math.ceil((target - low.weight) / self._weights[0]) - 1, differences.size - 1)
            return float(np.partition(differences, place)[place])
        return _weighted(differences, weights, target - low.weight)

    def _bracket(self, target: float) -> tuple[_Cut, _Cut]:
        """The closest cuts with less weight than the target, and with as much or more."""
        at = bisect_left(self._cuts, target, lo=1, hi=len(self._cuts) - 1, key=lambda cut: cut.weight)
        return self._cuts[at - 1], self._cuts[at]

    def _cut(self, value: float) -> _Cut:
        places = [
            np.searchsorted(candidate, baseline + value, "right") for baseline, candidate in self._strata
        ]
        numbers = [int(there.sum()) for there in places]
        weight = sum(w * number for w, number in zip(self._weights, numbers, strict=True))
        return _Cut(value, weight, sum(numbers), places)

    def _between(self, low: _Cut, high: _Cut, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The differences above ``low`` and up to ``high`` at ``ranks``, ascending, and their weights.

        The differences stand in the order of strata and baselines.
        """
        differences, weights = [], []
        start = 0
        for w, (baseline, candidate), first, last in zip(
            self._weights, self._strata, low.places, high.places, strict=True
        ):
            counts = last - first
            ends = np.cumsum(counts)
            number = int(ends[-1])
            mine = ranks[np.searchsorted(ranks, start) : np.searchsorted(ranks, start + number)] - start
            start += number
            of = np.searchsorted(ends, mine, "right")
            found = candidate[mine - ends[of] + last[of]] - baseline[of]
            differences.append(found)
            weights.append(np.full(found.size, w))
        return np.concatenate(differences), np.concatenate(weights)

    def _around(self, target: float, low: _Cut, high: _Cut) -> tuple[float, float]:
        """Two values that probably have the answer between them."""
        ranks = np.sort(self._random.integers(high.number - low.number, size=_SAMPLE))
        differences, weights = self._between(low, high, ranks)
        order = np.argsort(differences)
        differences, reached = differences[order], np.cumsum(weights[order])
        share = (target - low.weight) / (high.weight - low.weight)
        reach = 4 * math.sqrt(max(share * (1 - share), 1 / ranks.size) / ranks.size)
        wanted = np.array([share - reach, share + reach]) * reached[-1]
        places = np.clip(np.searchsorted(reached, wanted), 0, ranks.size - 1)
        return float(differences[places[0]]), float(differences[places[1]])


def _weighted(differences: np.ndarray, weights: np.ndarray, target: float) -> float:
    """The smallest of the differences such that the weight of all up to it is at least ``target``."""
    order = np.argsort(differences, kind="stable")
    place = np.searchsorted(np.cumsum(weights[order]), target, "left")
    return float(differences[order][min(int(place), differences.size - 1)])


class Averages:
    """The averages of each value with itself and with each other one (Walsh averages)."""

    def __init__(self, values: np.ndarray) -> None:
        self._own = 2 * np.sort(values)
        # Of the sums, each of two values is there twice, each of a value with itself once.
        self._sums = Pairs([(-values, values)], [1])
        # A sum that is compared is rounded otherwise than one that was found.
        self._rounding = 4 * float(np.spacing(np.abs(self._own).max()))
        self.total = values.size * (values.size + 1) // 2
        """Number of all averages."""

    def at_most(self, value: float) -> int:
        """Number of the averages that are at most ``value``."""
        return self._doubled(2 * value) // 2

    def smallest(self, target: float) -> float:
        """The smallest average such that the number of those up to it is at least ``target``."""
        wanted = 2 * math.ceil(target)
        low, high = max(1, wanted - self._own.size), wanted  # places among the sums
        while low < high:
            middle = (low + high) // 2
            if self._doubled(self._sums.smallest(middle)) >= wanted:
                high = middle
            else:
                low = middle + 1
        return self._sums.smallest(low) / 2

    def _doubled(self, total: float) -> int:
        """Twice the number of the averages whose sum is at most ``total``."""
        total += self._rounding
        return self._sums.at_most(total) + int(np.searchsorted(self._own, total, "right"))
