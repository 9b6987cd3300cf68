"""Order statistics of pairwise differences without the list of pairs, beside the list."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wirepaint.statistics import pairs, ranks
from wirepaint.statistics.pairs import Averages, Pairs

Strata = list[tuple[np.ndarray, np.ndarray]]


def listed(strata: Strata, weights: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """All differences in order, and the weight up to each."""
    differences = [np.subtract.outer(b, a).ravel() for a, b in strata]
    heavy = np.concatenate([np.full(d.size, w) for d, w in zip(differences, weights, strict=True)])
    values = np.concatenate(differences)
    order = np.argsort(values, kind="stable")
    return values[order], np.cumsum(heavy[order])


def data(seed: int, sizes: list[tuple[int, int]], rounded: bool) -> Strata:
    random = np.random.default_rng(seed)
    found = [(random.lognormal(3, 0.2, n), random.lognormal(3.1, 0.3, m)) for n, m in sizes]
    return [(np.round(a), np.round(b)) for a, b in found] if rounded else found


@settings(deadline=None, max_examples=60)
@example(seed=16, sizes=[(9, 22)], rounded=False, share=1.0, at_once=3)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=4),
    rounded=st.booleans(),
    share=st.floats(0.001, 1),
    at_once=st.sampled_from([0, 3, 50]),
)
def test_each_is_that_of_the_sorted_list(
    seed: int, sizes: list[tuple[int, int]], rounded: bool, share: float, at_once: int
) -> None:
    strata = data(seed, sizes, rounded)
    weights = [1 + (seed + number) % 3 if seed % 2 else 2 for number in range(len(strata))]
    values, below = listed(strata, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "LISTED", at_once)
        found = Pairs(strata, weights)
        target = max(1, round(share * found.total))
        assert found.total == below[-1]
        wanted = values[np.searchsorted(below, target, "left")]
        assert found.smallest(target) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("sizes", [[(40, 40)], [(30, 31), (12, 9), (50, 3)]])
def test_the_shift_and_its_interval_are_the_same(
    monkeypatch: pytest.MonkeyPatch, sizes: list[tuple[int, int]], rounded: bool
) -> None:
    strata = data(7, sizes, rounded)
    monkeypatch.setattr(ranks, "LISTED_OF_EQUALS", 0)
    expected = ranks.shift(strata)
    monkeypatch.setattr(ranks, "LISTED", 100)
    monkeypatch.setattr(pairs, "LISTED", 100)
    found = ranks.shift(strata)
    assert astuple(found) == pytest.approx(astuple(expected), rel=1e-12)
    assert found.low is not None and found.low < found.value


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("sizes", [[(40, 40)], [(6, 7)], [(2, 3)], [(9, 9), (8, 10), (9, 9)]])
def test_pairs_of_equal_weight_need_no_order(
    monkeypatch: pytest.MonkeyPatch, sizes: list[tuple[int, int]], rounded: bool
) -> None:
    strata = data(5, sizes, rounded)
    found = [ranks.shift(strata, confidence) for confidence in (0.5, 0.95, 0.9999)]
    monkeypatch.setattr(ranks, "LISTED_OF_EQUALS", 0)
    assert found == [ranks.shift(strata, confidence) for confidence in (0.5, 0.95, 0.9999)]


def test_ten_thousand_values_a_side_need_no_list() -> None:
    random = np.random.default_rng(3)
    strata = [(random.normal(100, 5, 10_000), random.normal(101, 5, 10_000)) for _ in range(2)]
    found = ranks.shift(strata)
    assert found.low is not None and found.high is not None
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(1, abs=0.15)
    assert found.high - found.low == pytest.approx(2 * 1.96 * 5 * np.sqrt(2 / 20_000) * 1.02, rel=0.05)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 40),
    rounded=st.booleans(),
    share=st.floats(0.001, 1),
    at_once=st.sampled_from([0, 3, 50]),
)
def test_the_averages_of_values_are_found_without_their_list(
    seed: int, size: int, rounded: bool, share: float, at_once: int
) -> None:
    values = np.random.default_rng(seed).normal(1, 10, size)
    values = np.round(values) if rounded else values
    averages = np.sort(np.add.outer(values, values)[np.triu_indices(size)] / 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "LISTED", at_once)
        found = Averages(values)
        assert found.total == averages.size
        target = share * averages.size
        place = max(0, int(np.ceil(target)) - 1)
        assert found.smallest(target) == pytest.approx(averages[place], rel=1e-12, abs=1e-12)
    middle = averages[averages.size // 2]
    assert found.at_most(middle + 1e-9) == np.count_nonzero(averages <= middle + 1e-9)


def test_many_single_visits_have_the_shift_of_their_list(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    strata = [(random.normal(1000, 5, 1), random.normal(1010, 5, 1)) for _ in range(400)]
    by_list = ranks.shift(strata)
    monkeypatch.setattr(ranks, "LISTED_OF_EQUALS", 1000)
    assert astuple(ranks.shift(strata)) == pytest.approx(astuple(by_list), rel=1e-12)
