"""Median and mean with bootstrap intervals (BCa: Efron 1987, by scipy)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST = 3
"""Fewest values for an interval."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; the bounds are None if there are too few values."""

    value: float
    low: float | None = None
    high: float | None = None

    def inside(self, limit: float) -> bool:
        """The whole interval lies within ± ``limit``."""
        return self.low is not None and self.high is not None and -limit <= self.low and self.high <= limit

    def outside(self, limit: float) -> bool:
        """The whole interval lies beyond + ``limit`` or beyond - ``limit``."""
        return self.low is not None and self.high is not None and (self.high < -limit or limit < self.low)


def median(*strata: Sequence[float], seed: int = 0) -> Interval:
    """Median of the values; for several strata (pages) the mean of their medians."""
    return _bootstrap(np.median, tuple(tuple(sorted(values)) for values in strata), seed)


def mean(*strata: Sequence[float], seed: int = 0) -> Interval:
    """Mean of the values; for several strata (pages) the mean of their means, with equal weights."""
    return _bootstrap(np.mean, tuple(tuple(sorted(values)) for values in strata), seed)


def narrow_enough(values: Sequence[float], relative_width: float, seed: int = 0) -> bool:
    """Whether the 95 % interval of the mean is narrower than ``relative_width`` times the mean.

    False for fewer than three values: they have no interval.
    """
    if len(values) < FEWEST:
        return False
    interval = mean(values, seed=seed)
    if interval.low is None or interval.high is None:
        return False
    return (
        interval.high - interval.low < relative_width * abs(interval.value) or interval.low == interval.high
    )


@lru_cache(maxsize=4096)
def _bootstrap(statistic: Callable[..., Any], strata: tuple[tuple[float, ...], ...], seed: int) -> Interval:
    """BCa interval; each stratum is resampled by itself.

    The values come sorted, so that their order does not matter. If BCa is not defined (equal
    jackknife values, as with most values tied), the percentile interval is used.
    """

    def averaged(*samples: np.ndarray, axis: int = -1) -> Any:
        return sum(statistic(sample, axis=axis) for sample in samples) / len(samples)

    samples = [np.array(values, dtype=float) for values in strata]
    value = float(averaged(*samples))
    if any(sample.size < FEWEST for sample in samples):
        return Interval(value)
    if all(np.ptp(sample) == 0 for sample in samples):
        return Interval(value, value, value)
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            bounds = stats.bootstrap(
                samples,
                averaged,
                vectorized=True,
                confidence_level=CONFIDENCE,
                n_resamples=RESAMPLES,
                method=method,
                rng=np.random.default_rng(seed),
            ).confidence_interval
        if np.isfinite(bounds.low) and np.isfinite(bounds.high):
            return Interval(value, float(bounds.low), float(bounds.high))
    raise AssertionError("the percentile interval of finite values is finite")
