"""Median and mean of visits with 95 % intervals, in closed form.

- *Mean*: Student's interval; over several pages that of Welch (1947) and Satterthwaite (1946).
- *Median*: the interval of Bonett and Price (2002), from order statistics: it needs no distribution.

benches/coverage.py shows how often they hold the truth. The distributions are those of ``scipy.special``:
``scipy.stats`` computes them with the same functions, and takes half a second to import.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

CONFIDENCE = 0.95
FEWEST = 3
"""Fewest values for an interval."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval; the bounds are None if there are too few values."""

    value: float
    low: float | None = None
    high: float | None = None

    def inside(self, limit: float) -> bool:
        """The whole interval lies within ± ``limit``."""
        return self.low is not None and self.high is not None and -limit <= self.low and self.high <= limit

    def outside(self, limit: float) -> bool:
        """The whole interval lies beyond + ``limit`` or beyond - ``limit``."""
        return self.low is not None and self.high is not None and (self.high < -limit or limit < self.low)


def median(*strata: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Median of the values; for several strata (pages) the mean of their medians, with equal weights."""
    samples = [np.sort(np.asarray(values, dtype=float)) for values in strata]
    value = float(np.mean([np.median(sample) for sample in samples]))
    if any(sample.size < FEWEST for sample in samples):
        return Interval(value)
    variance = sum(_error_of_median(sample) ** 2 for sample in samples) / len(samples) ** 2
    half = float(special.ndtri((1 + confidence) / 2)) * math.sqrt(variance)
    return Interval(value, value - half, value + half)


def mean(*strata: Sequence[float]) -> Interval:
    """Mean of the values; for several strata (pages) the mean of their means, with equal weights."""
    samples = [np.asarray(values, dtype=float) for values in strata]
    value = float(np.mean([sample.mean() for sample in samples]))
    if any(sample.size < FEWEST for sample in samples):
        return Interval(value)
    variances = np.array([sample.var(ddof=1) / sample.size for sample in samples]) / len(samples) ** 2
    total = float(variances.sum())
    if total == 0:
        return Interval(value, value, value)
    shares = variances / total
    freedom = 1 / sum(share**2 / (s.size - 1) for share, s in zip(shares, samples, strict=True))
    half = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(total)
    return Interval(value, value - half, value + half)


def narrow_enough(values: Sequence[float], relative_width: float) -> bool:
    """Whether the 95 % interval of the mean is narrower than ``relative_width`` times the mean.

    False for fewer than three values: they have no interval.
    """
    interval = mean(values)
    if interval.low is None or interval.high is None:
        return False
    return (
        interval.high - interval.low < relative_width * abs(interval.value) or interval.low == interval.high
    )


def _error_of_median(ordered: np.ndarray) -> float:
    """Standard error of the median: the range of two order statistics over that of a normal median.

    The ``c``-th values from both ends, c near (n + 1) / 2 - sqrt(n), hold the median with a known
    probability (Bonett and Price 2002, equations 2 and 3).
    """
    n = ordered.size
    c = max(1, round((n + 1) / 2 - math.sqrt(n)))
    below = float(special.betainc(n - c + 1, c, 0.5))  # the binomial distribution (n, 1/2), up to c - 1
    return float(ordered[n - c] - ordered[c - 1]) / (2 * -float(special.ndtri(below)))
