"""The rank tests against scipy's, textbook values, and simulation."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wirepaint.statistics import ranks


def strata(*pairs):
    return [(np.array(a, dtype=float), np.array(b, dtype=float)) for a, b in pairs]


def test_one_page_is_the_exact_mann_whitney_test():
    a, b = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46], [1.15, 0.88, 0.90, 0.74, 1.21]
    ours = ranks.rank_test(strata((a, b)))
    assert ours.name == "Mann-Whitney"
    assert ours.p == pytest.approx(stats.mannwhitneyu(a, b, method="exact").pvalue, rel=1e-12)


def test_the_shift_and_interval_are_those_of_hollander_and_wolfe():
    """Permeability of the placenta, Hollander and Wolfe (1973) p. 69, as R's wilcox.test gives it."""
    term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    early = [1.15, 0.88, 0.90, 0.74, 1.21]
    shift = ranks.shift(strata((early, term)))
    assert shift.value == pytest.approx(0.305)
    assert (shift.low, shift.high) == pytest.approx((-0.15, 0.76))


@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=6), st.lists(st.integers(0, 5), min_size=2, max_size=6)
)
@settings(max_examples=40, deadline=None)
def test_ties_are_exact_too(a, b):
    """The conditional distribution under all labellings, enumerated by scipy."""

    def larger(x, y, axis):
        return (np.sign(x[..., :, None] - y[..., None, :]) + 1).sum(axis=(-1, -2))

    x, y = np.array(a, dtype=float), np.array(b, dtype=float)
    enumerated = stats.permutation_test((x, y), larger, n_resamples=10_000, vectorized=True, axis=-1)
    assert ranks.rank_test([(x, y)]).p == pytest.approx(enumerated.pvalue, rel=1e-9)


@given(st.lists(st.integers(0, 5) | st.just(float("inf")), min_size=1, max_size=12))
def test_equal_values_share_the_mean_of_their_ranks(values):
    assert (ranks.doubled_ranks(np.array(values, dtype=float)) == 2 * stats.rankdata(values)).all()


def test_single_visits_of_several_pages_are_wilcoxons_signed_rank_test():
    before = [125, 115, 130, 140, 141, 115, 140, 125, 141.5, 135]
    after = [110, 122, 125, 120, 140, 124, 123, 137, 135, 145]
    ours = ranks.rank_test(strata(*(([a], [b]) for a, b in zip(before, after, strict=True))))
    assert ours.name == "Wilcoxon"
    assert ours.p == pytest.approx(stats.wilcoxon(before, after, method="exact").pvalue, rel=1e-9)


def test_many_values_beside_few_need_little_memory():
    """A table for the larger side would take 7.5 GiB."""
    many, few = np.arange(1000.0), np.array([990.5, 2000.5, 3000.5])
    tracemalloc.start()
    try:
        values = [ranks.rank_test([(many, few)]).p, ranks.rank_test([(few, many)]).p]
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
    expected = stats.mannwhitneyu(many, few, method="exact").pvalue
    assert values == pytest.approx([expected] * 2, rel=1e-9)


def test_few_visits_give_no_interval_and_no_small_p():
    few = strata(([1.0, 1.1, 1.2], [2.0, 2.1, 2.2]))
    assert ranks.rank_test(few).p == pytest.approx(0.1)
    assert ranks.shift(few).value == pytest.approx(1.0)
    assert ranks.shift(few).low is None


def test_the_normal_limit_meets_the_exact_distribution(monkeypatch):
    random = np.random.default_rng(1)
    pages = [(random.normal(0, 1, 9), random.normal(0.4, 1, 11)) for _ in range(8)]
    exact, exact_shift = ranks.rank_test(pages), ranks.shift(pages)
    monkeypatch.setattr(ranks, "EXACT_PAIRS", 0)
    assert ranks.rank_test(pages).p == pytest.approx(exact.p, rel=0.05)
    assert ranks.shift(pages).low == pytest.approx(exact_shift.low, abs=0.02)
    assert ranks.shift(pages).high == pytest.approx(exact_shift.high, abs=0.02)


def test_pages_of_different_size_do_not_blur_each_other():
    """A shift that is small beside the pages' sizes is found within pages and lost in the pool."""
    random = np.random.default_rng(2)
    base = [1000.0, 3000.0, 9000.0]
    pages = [(b * random.lognormal(0, 0.01, 7), 0.97 * b * random.lognormal(0, 0.01, 7)) for b in base]
    assert ranks.rank_test(pages).p < 1e-4
    pooled = [(np.concatenate([a for a, _ in pages]), np.concatenate([b for _, b in pages]))]
    assert ranks.rank_test(pooled).p > 0.05


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_interval_and_test_agree(seed):
    """Without ties the interval leaves out zero exactly when p is at most 0.05."""
    random = np.random.default_rng(seed)
    pages = [
        (random.normal(0, 1, random.integers(3, 8)), random.normal(0.7, 1, random.integers(3, 8)))
        for _ in range(random.integers(1, 4))
    ]
    shift = ranks.shift(pages)
    outside = shift.low is not None and shift.high is not None and (shift.low > 0 or shift.high < 0)
    assert outside == (ranks.rank_test(pages).p <= 0.05)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_swapping_the_levels_mirrors_everything(seed):
    random = np.random.default_rng(seed)
    pages = [(random.normal(0, 1, 5), random.normal(0.5, 1, 6)) for _ in range(3)]
    swapped = [(b, a) for a, b in pages]
    assert ranks.rank_test(swapped).p == pytest.approx(ranks.rank_test(pages).p)
    assert ranks.rank_test(swapped).effect == pytest.approx(-ranks.rank_test(pages).effect)
    there, back = ranks.shift(pages), ranks.shift(swapped)
    assert (back.value, back.low, back.high) == pytest.approx((-there.value, -there.high, -there.low))


def simulate(repetitions, pages, visits, shift):
    """Rejections of no difference, and intervals that contain the truth, over seeded evaluations.

    Visits resemble page loads: multiplicative noise with a heavy tail, another size and another
    noise for each page.
    """
    random = np.random.default_rng(3)
    refused = held = 0
    for _ in range(repetitions):
        sizes, noise = random.uniform(500, 9000, pages), random.uniform(0.01, 0.05, pages)
        loads = [
            tuple(np.log(size) + n * random.standard_t(3, visits) + effect for effect in (0.0, shift))
            for size, n in zip(sizes, noise, strict=True)
        ]
        refused += ranks.rank_test(loads).p <= 0.05
        interval = ranks.shift(loads)
        held += interval.low <= shift <= interval.high
    return refused / repetitions, held / repetitions


@pytest.mark.parametrize(("pages", "visits"), [(1, 5), (3, 5), (6, 11)])
def test_by_simulation_errors_stay_below_five_percent_and_coverage_near_95(pages, visits):
    refused, held = simulate(1000, pages, visits, 0.0)
    assert refused <= 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5
    assert 0.95 - 3 * (0.05 * 0.95 / 1000) ** 0.5 <= held <= 0.99
    assert refused == pytest.approx(1 - held, abs=1e-9)


def test_by_simulation_a_shift_of_three_percent_is_found_and_its_interval_right():
    refused, held = simulate(500, 3, 7, -0.03)
    assert refused >= 0.6
    assert 0.92 <= held <= 0.99
