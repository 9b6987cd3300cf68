"""Intervals of mean and median: by hand, coverage, degenerate input; the stopping rule."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from wirepaint.statistics import mean, median, narrow_enough
from wirepaint.statistics.intervals import Interval


def test_the_order_of_the_values_does_not_matter():
    values = [2310.0, 2290.0, 2405.0, 2333.0, 2301.0, 2299.0, 2380.0]
    assert median(values) == median(values[::-1])
    assert median(values).value == 2310


def test_one_page_has_students_interval():
    values = list(np.random.default_rng(1).normal(100, 5, 11))
    expected = stats.ttest_1samp(values, 100).confidence_interval(0.95)
    assert (mean(values).low, mean(values).high) == pytest.approx((expected.low, expected.high))


def test_several_pages_have_the_interval_of_welch_and_satterthwaite():
    """The mean of a and of -b is half of the difference of a and b."""
    random = np.random.default_rng(2)
    a, b = random.normal(5, 1, 7), random.normal(2, 3, 12)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    found = mean(list(a), list(-b))
    assert (2 * found.low, 2 * found.high) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_a_median_by_hand():
    """Of 8 values the 2nd and 7th (c = 4.5 - 2.83) hold the median with probability 1 - 2 * 9 / 2**8."""
    found = median([1.0, 2.0, 4.0, 7.0, 9.0, 10.0, 12.0, 30.0])
    error = (12 - 2) / (2 * stats.norm.isf(9 / 2**8))
    assert found.value == 8
    assert found.high - found.value == pytest.approx(1.959964 * error)


@pytest.mark.parametrize("visits", [3, 7, 25, 100, 2_000])
def test_the_interval_of_a_median_has_the_binomial_distribution(visits):
    c = max(1, round((visits + 1) / 2 - visits**0.5))
    error = (visits + 1 - 2 * c) / (2 * stats.norm.isf(stats.binom.cdf(c - 1, visits, 0.5)))
    found = median([float(value) for value in range(visits)])
    assert found.high - found.value == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-12)


def test_statistics_are_loaded_without_the_package_that_takes_half_a_second():
    code = "import sys; from wirepaint.statistics import agreement; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pages_weigh_alike_whatever_their_visits():
    assert mean([1.0, 1.0, 1.0, 1.0], [3.0, 3.0, 3.0]).value == 2


def test_equal_values_have_an_interval_without_width():
    assert median([5.0, 5.0, 5.0, 5.0]) == Interval(5.0, 5.0, 5.0)


def test_two_values_have_no_interval():
    assert mean([1.0, 2.0]) == Interval(1.5)


def test_nearly_all_values_tied_still_gives_an_interval():
    interval = median([0.0, 0.0, 0.0, 0.0, 0.0, 7.0])
    assert interval.low is not None and interval.low <= 0 <= interval.high


@pytest.mark.parametrize(("estimate", "truth"), [(mean, np.exp(0.02)), (median, 1.0)])
def test_by_simulation_the_interval_holds_the_truth_in_about_95_of_100_cases(estimate, truth):
    random = np.random.default_rng(4)
    intervals = [estimate(tuple(random.lognormal(0, 0.2, 25))) for _ in range(200)]
    held = np.mean([interval.low <= truth <= interval.high for interval in intervals])
    assert 0.90 <= held <= 0.99


def test_enough_visits_of_a_steady_page_are_narrow_enough():
    steady = list(np.random.default_rng(5).normal(2000, 10, 8))
    assert narrow_enough(steady, 0.02)
    assert not narrow_enough(steady, 0.001)


def test_a_restless_page_needs_more_visits():
    restless = np.random.default_rng(6).normal(2000, 200, 400)
    assert not narrow_enough(list(restless[:5]), 0.05)
    assert narrow_enough(list(restless), 0.05)


def test_two_visits_are_never_enough():
    assert not narrow_enough([2000.0, 2000.0], 0.5)
