"""How many visits an evaluation needs to decide anything, and the looks of ``until``."""

import numpy as np
import pytest

from wirepaint.evaluation.visits import (
    Question,
    Until,
    enough,
    fewest_visits,
    prospects,
    questions,
    smallest_p,
)
from wirepaint.statistics import ranks


@pytest.mark.parametrize(("pages", "visits"), [(1, 3), (1, 5), (3, 4), (5, 1)])
def test_the_smallest_p_is_that_of_visits_that_do_not_overlap(pages, visits):
    apart = [(np.arange(visits) + 1.0, np.arange(visits) + 100.0 + 10 * n) for n in range(pages)]
    assert ranks.rank_test(apart).p == pytest.approx(smallest_p(pages, visits))


def test_fewest_visits_by_hand():
    assert [fewest_visits(level) for level in (0.1, 0.05, 0.05 / 8, 0.001)] == [3, 4, 6, 7]
    assert fewest_visits(0.05, pages=3) == 2


def test_networks_are_a_question_only_where_nothing_else_differs():
    assert questions({"network": 2, "congestion": 3, "http": 1}, pages=5) == [Question("congestion", 6, 5)]
    assert questions({"network": 2, "congestion": 1}, pages=1) == [Question("network", 1, 1)]
    assert questions({"network": 1, "congestion": 1}, pages=1) == []


def test_eight_visits_are_enough_for_most_evaluations_and_more_for_large_ones():
    assert enough([]) == enough(questions({"network": 3, "congestion": 4}, 6)) == 8
    assert enough(questions({"network": 10, "congestion": 10}, 50)) == 11
    assert enough(questions({"network": 3, "congestion": 4}, 6), looks=10) == 9


def test_prospects_say_that_five_visits_cannot_decide_eight_comparisons_of_a_page():
    (said,) = prospects([Question("congestion", 8, 1)], 5)
    assert said == (
        "5 visits of each page cannot decide, whatever they show, 8 comparisons of congestion: "
        "smallest possible p 0.0079, needed 0.0063; 6 visits or more can."
    )


def test_prospects_say_what_single_pages_need():
    (said,) = prospects([Question("congestion", 3, 4)], 5)
    assert said.endswith("can decide 3 comparisons of congestion: smallest possible p 5e-10, needed 0.017; "
                         "single pages need 6 visits.")  # fmt: skip


def test_looks_double_up_to_the_most():
    assert Until(most=64).looks(8) == (8, 16, 32, 64)
    assert Until(most=20).looks(8) == (8, 16, 20)
    assert Until(most=8).looks(11) == (8,)
