"""Order statistics of all pairwise differences of many values, without listing the pairs.

Two sets of 10,000 visits have 10^8 differences. How many of them are at most some value is counted in
n log n steps, since both sets are sorted. So the wanted difference is bracketed until few pairs are left
between, and these are listed and sorted (the idea of Johnson and Mizoguchi, SIAM J. Comput. 7, 1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_SAMPLE = 20_000
LISTED = 30_000
"""Pairs that are listed at once to find one among them: with more or fewer it takes longer."""


class Pairs:
    """The differences candidate - baseline within each stratum, each pair with the weight of its stratum."""

    def __init__(self, strata: Sequence[tuple[np.ndarray, np.ndarray]], weights: Sequence[int]) -> None:
        self._strata = [(np.sort(baseline), np.sort(candidate)) for baseline, candidate in strata]
        self._weights = list(weights)
        self.total = sum(w * a.size * b.size for w, (a, b) in zip(weights, self._strata, strict=True))
        """Weight of all pairs."""
        # A sum is rounded otherwise than a difference: the ends lie beyond all pairs by more than that.
        beyond = 4 * float(np.spacing(max(np.abs(side).max() for pair in self._strata for side in pair)))
        self._ends = (
            min(float(b[0] - a[-1]) for a, b in self._strata) - beyond,
            max(float(b[-1] - a[0]) for a, b in self._strata) + beyond,
        )
        self._guesses = self._sampled()

    def at_most(self, value: float) -> tuple[int, int]:
        """Weight and number of the pairs whose difference is at most ``value``."""
        weight = number = 0
        for w, (baseline, candidate) in zip(self._weights, self._strata, strict=True):
            there = int(np.searchsorted(candidate, baseline + value, "right").sum())
            weight += w * there
            number += there
        return weight, number

    def smallest(self, target: float) -> float:
        """The smallest difference such that the weight of all pairs up to it is at least ``target``."""
        # Weight and number up to ``low`` are below the target, up to ``high`` they are not.
        low, high = self._ends
        below, above = (0, 0), self.at_most(high)
        for guess in self._around(target):
            if low < guess < high:
                found = self.at_most(guess)
                if found[0] < target:
                    low, below = guess, found
                else:
                    high, above = guess, found
        while above[1] - below[1] > LISTED:
            middle = low + (high - low) / 2
            if not low < middle < high:
                return float(high)  # all of them are equal
            found = self.at_most(middle)
            if found[0] < target:
                low, below = middle, found
            else:
                high, above = middle, found
        differences, weights = self._between(low, high)
        if not differences.size:
            return float(high)
        if len(set(self._weights)) == 1:
            place = min(math.ceil((target - below[0]) / self._weights[0]) - 1, differences.size - 1)
            return float(np.partition(differences, place)[place])
        order = np.argsort(differences, kind="stable")
        place = np.searchsorted(below[0] + np.cumsum(weights[order]), target, "left")
        return float(differences[order][min(int(place), differences.size - 1)])

    def _between(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        """The differences above ``low`` and up to ``high``, and their weights."""
        differences, weights = [], []
        for w, (baseline, candidate) in zip(self._weights, self._strata, strict=True):
            first = np.searchsorted(candidate, baseline + low, "right")
            counts = np.searchsorted(candidate, baseline + high, "right") - first
            starts = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            found = candidate[starts + np.arange(counts.sum())] - np.repeat(baseline, counts)
            differences.append(found)
            weights.append(np.full(found.size, w))
        return np.concatenate(differences), np.concatenate(weights)

    def _sampled(self) -> np.ndarray:
        """Sorted differences of some pairs, to begin near the answer; they do not change it."""
        random = np.random.default_rng(0)
        shares = np.array(
            [w * a.size * b.size for w, (a, b) in zip(self._weights, self._strata, strict=True)], dtype=float
        )
        counts = np.ceil(_SAMPLE * shares / shares.sum()).astype(int)
        found = [
            random.choice(b, number) - random.choice(a, number)
            for number, (a, b) in zip(counts, self._strata, strict=True)
        ]
        return np.sort(np.concatenate(found))

    def _around(self, target: float) -> tuple[float, float]:
        """Two values that probably have the answer between them."""
        share, number = target / self.total, self._guesses.size
        reach = 4 * np.sqrt(max(share * (1 - share), 1 / number) * number)
        places = np.clip([share * number - reach, share * number + reach], 0, number - 1).astype(int)
        return float(self._guesses[places[0]]), float(self._guesses[places[1]])
