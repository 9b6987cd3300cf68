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
from functools import cached_property, lru_cache

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


class Sample:
    """The values of a stratum, with what several comparisons ask of them."""

    def __init__(self, values: Sequence[float] | np.ndarray) -> None:
        self.values = np.asarray(values, dtype=float)

    @classmethod
    def of(cls, values: Sequence[float] | Sample) -> Sample:
        """The values, with what is known of them."""
        return values if isinstance(values, Sample) else cls(values)

    def __len__(self) -> int:
        return self.values.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sample) and np.array_equal(self.values, other.values)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __deepcopy__(self, _: object) -> Sample:
        return self

    @cached_property
    def _middle(self) -> tuple[float, float | None]:
        """The median, and its standard error; None if there are too few values."""
        ordered = np.sort(self.values)
        return float(np.median(ordered)), _error_of_median(ordered) if ordered.size >= FEWEST else None

    @property
    def median(self) -> float:
        return self._middle[0]

    @property
    def error_of_median(self) -> float | None:
        return self._middle[1]

    @cached_property
    def mean(self) -> float:
        return float(self.values.mean())

    @cached_property
    def variance_of_mean(self) -> float:
        return float(self.values.var(ddof=1) / self.values.size)


def median(*strata: Sequence[float] | Sample, confidence: float = CONFIDENCE) -> Interval:
    """Median of the values; for several strata (pages) the mean of their medians, with equal weights."""
    samples = [Sample.of(values) for values in strata]
    value = float(np.mean([sample.median for sample in samples]))
    errors = [error for sample in samples if (error := sample.error_of_median) is not None]
    if len(errors) < len(samples):
        return Interval(value)
    variance = sum(error**2 for error in errors) / len(samples) ** 2
    half = float(special.ndtri((1 + confidence) / 2)) * math.sqrt(variance)
    return Interval(value, value - half, value + half)


def mean(*strata: Sequence[float] | Sample) -> Interval:
    """Mean of the values; for several strata (pages) the mean of their means, with equal weights."""
    samples = [Sample.of(values) for values in strata]
    value = float(np.mean([sample.mean for sample in samples]))
    if any(len(sample) < FEWEST for sample in samples):
        return Interval(value)
    variances = np.array([sample.variance_of_mean for sample in samples]) / len(samples) ** 2
    total = float(variances.sum())
    if total == 0:
        return Interval(value, value, value)
    shares = variances / total
    freedom = 1 / sum(share**2 / (len(s) - 1) for share, s in zip(shares, samples, strict=True))
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
    c, quantile = _order_of_median(n)
    return float(ordered[n - c] - ordered[c - 1]) / (2 * quantile)


@lru_cache(maxsize=4096)
def _order_of_median(n: int) -> tuple[int, float]:
    """Which value from both ends, and the normal quantile of what lies between."""
    c = max(1, round((n + 1) / 2 - math.sqrt(n)))
    below = float(special.betainc(n - c + 1, c, 0.5))  # the binomial distribution (n, 1/2), up to c - 1
    return c, -float(special.ndtri(below))
