"""Verdicts: every kind of claim, reproduced and not, from values that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from wirepaint.studies import verdicts
from wirepaint.studies.model import Claim, Study


def rows(first: dict[int, list[float]], second: dict[int, list[float]], column: str = "rate") -> pl.DataFrame:
    """Values of the series a and b by x, one per seed."""
    return pl.DataFrame(
        [
            {"series": series, "x": x, "seed": seed, column: value}
            for series, points in (("a", first), ("b", second))
            for x, values in points.items()
            for seed, value in enumerate(values)
        ]
    )


def judged(frame: pl.DataFrame, kind: str, **keys: Any) -> verdicts.Verdict:
    given = {"x": "x", "y": "rate", "first": "a", "second": "b", "margin": 0.02} | keys
    claim = Claim.model_validate(
        {"id": "c", "item": "Fig. 1", "says": "s", "published": "p", "kind": kind, "sweep": "s"} | given
    )
    return verdicts.judge(study(claim), {"s": frame})[0]


def study(*claims: Claim, **keys: Any) -> Study:
    content = {
        "title": "t", "summary": "s", "source": "s", "code": "cwv_2010", "seeds": 1, "quick_seeds": 1,
        "setup": {}, "sweeps": {"s": {"measure": "m"}}, "figures": [], "claims": list(claims),
    }  # fmt: skip
    return Study.model_validate(content | keys)


ABOVE = [12.0, 12.1, 11.9, 12.05]
EQUAL = [10.0, 10.01, 9.99, 10.0]


def test_more_is_reproduced_where_the_first_lies_above_at_most_points() -> None:
    verdict = judged(rows({1: ABOVE, 2: ABOVE, 3: EQUAL}, {1: EQUAL, 2: EQUAL, 3: EQUAL}), "more")
    assert verdict.word == "reproduced"
    assert (
        verdict.ours.startswith("a: 11.3, b: 10; difference +12.2 % [")
        and "above at x = 1, 2" in verdict.ours
    )


def test_more_is_not_reproduced_where_it_holds_at_half_of_the_points() -> None:
    assert judged(rows({1: ABOVE, 2: EQUAL}, {1: EQUAL, 2: EQUAL}), "more").word == "not reproduced"


def test_more_is_undecided_where_points_are_too_wide_to_tell() -> None:
    wide = [10.5, 12.0, 13.5]  # mean 12, interval beyond 2 % only with other points
    first, second = dict.fromkeys(range(6), wide), {x: [10.0, 10.0, 10.0] for x in range(6)}
    verdict = judged(rows(first, second), "more")
    assert verdict.word == "undecided" and "above at" not in verdict.ours
    assert "difference +18.2 % [+1" in verdict.ours


def test_one_point_that_contradicts_is_enough_to_refuse_more() -> None:
    verdict = judged(rows({1: ABOVE, 2: ABOVE, 3: EQUAL}, {1: EQUAL, 2: EQUAL, 3: ABOVE}), "more")
    assert verdict.word == "not reproduced"
    assert verdict.ours.endswith("above at x = 1, 2; below at x = 3")


def test_more_is_undecided_where_the_interval_holds_the_margin_and_no_point_contradicts() -> None:
    assert judged(rows({1: [8.0, 12.5, 9.0, 13.0]}, {1: EQUAL}), "more").word == "undecided"
    assert judged(rows({1: EQUAL}, {1: EQUAL}), "more").word == "not reproduced", "all within the margin"


def test_the_other_direction_does_not_reproduce_more() -> None:
    verdict = judged(rows({1: EQUAL}, {1: ABOVE}), "more")
    assert (verdict.word, "-18" in verdict.ours) == ("not reproduced", True)


def test_a_difference_that_rounds_to_zero_has_no_minus() -> None:
    assert judged(rows({1: [9.9999] * 3}, {1: [10.0] * 3}), "same").ours == (
        "a: 10, b: 10; difference +0.0 % [+0.0, +0.0]"
    )


def test_same_is_reproduced_within_the_margin_refused_beyond_it_and_else_undecided() -> None:
    noise = [8.0, 12.0, 9.0, 11.0]
    assert judged(rows({1: EQUAL}, {1: EQUAL}), "same").word == "reproduced"
    assert judged(rows({1: ABOVE}, {1: EQUAL}), "same").word == "not reproduced"
    assert judged(rows({1: EQUAL, 2: EQUAL, 3: ABOVE}, {1: EQUAL, 2: EQUAL, 3: EQUAL}), "same").word == (
        "not reproduced"
    )
    assert judged(rows({1: noise}, {1: EQUAL}), "same").word == "undecided"


def test_about_is_reproduced_where_the_whole_interval_lies_around_the_published_number() -> None:
    def about(*values: float) -> verdicts.Verdict:
        frame = rows({1: list(values)}, {}, "dropped_percent")
        return judged(frame, "about", y="dropped_percent", second="", value=27, margin=0.05)

    assert (about(25, 26, 27).word, about(40, 41, 42).word, about(-27, -27, -27).word) == (
        "reproduced",
        "not reproduced",
        "not reproduced",
    )
    assert about(20, 25, 28).word == "undecided"
    assert about(27, 27, 27).ours == "a: 27 [27, 27]; accepted 22 to 32"


def test_about_at_every_point_is_not_saved_by_the_mean() -> None:
    def about(*at_second: float) -> verdicts.Verdict:
        frame = rows({1: EQUAL, 2: list(at_second)}, {})
        claim = Claim.model_validate(
            {"id": "c", "item": "Fig. 1", "says": "s", "published": "p", "kind": "about", "sweep": "s"}
            | {"y": "rate", "first": "a", "value": 10, "margin": 0.1, "at_every_point": True}
        )
        sweeps = {"s": {"measure": "m", "over": {"x": [1, 2]}}}
        return verdicts.judge(study(claim, sweeps=sweeps), {"s": frame})[0]

    assert about(10.5, 10.6, 10.5).word == "reproduced"
    assert about(11.2, 11.3, 11.2).word == "not reproduced"
    assert about(10.5, 11.2, 10.5).word == "undecided"
    assert about(8.0, 8.1, 8.0).ours == "a: from 8.03 at x = 2 to 10; accepted 9 to 11"
    assert about().ours == "1 of its 2 points have no value"
    with pytest.raises(ValidationError, match="at_every_point"):
        judged(rows({1: EQUAL}, {1: EQUAL}), "more", at_every_point=True)


@pytest.mark.parametrize(("kind", "value"), [("about", None), ("more", 3.0)])
def test_a_published_number_belongs_to_about(kind: str, value: float | None) -> None:
    with pytest.raises(ValidationError, match="refused"):
        judged(rows({1: EQUAL}, {1: EQUAL}), kind, value=value)


def test_a_series_is_compared_with_the_best_and_the_worst_of_the_others() -> None:
    frame = pl.concat(
        [rows({1: ABOVE}, {1: EQUAL}), rows({1: [20.0] * 4}, {}).with_columns(series=pl.lit("c"))]
    )
    assert judged(frame, "more", first="c", second="highest other").word == "reproduced"
    assert judged(frame, "more", first="lowest other", second="b").word == "reproduced"
    verdict = judged(frame, "more", first="lowest other", second="a")
    assert verdict.word == "not reproduced"
    assert verdict.ours.startswith("lowest other: 10, a: 12; difference -18.")


def test_the_best_of_the_others_is_one_series_at_each_x_and_not_the_best_of_each_seed() -> None:
    """Two series that are alike but for noise, and a third that equals their mean."""
    low, high = [9.0, 9.1, 8.9, 9.0], [11.0, 11.1, 10.9, 11.0]
    noisy = {1: [*low, *high], 2: [*high, *low]}
    other = {x: values[::-1] for x, values in noisy.items()}
    frame = pl.concat(
        [rows(noisy, other), rows({1: [10.0] * 8, 2: [10.0] * 8}, {}).with_columns(series=pl.lit("c"))]
    )
    for first, second in (("lowest other", "c"), ("c", "highest other")):
        found = judged(frame, "same", first=first, second=second, margin=0.12)
        assert "difference +0.0 % [" in found.ours, found.ours
    better = pl.concat(
        [rows({1: [1.0] * 8, 2: [3.0] * 8}, {1: [2.0] * 8, 2: [2.0] * 8}), frame.filter(series="c")]
    )
    found = judged(better, "more", first="c", second="lowest other")
    assert found.ours.startswith("c: 10, lowest other: 1.5; "), "a at x = 1, b at x = 2"
    alike = pl.concat([better, better.filter(series="a", x=1).with_columns(series=pl.lit("d"))])
    assert judged(alike, "more", first="c", second="lowest other").ours == found.ours, "equals count once"


def test_what_is_saved_over_several_pages_is_that_of_the_mean_load_time() -> None:
    """Half of 2 s, a tenth of 10 s: 2 of 12 s, and not 30 %."""
    frame = pl.DataFrame(
        [
            {"series": "a", "x": x, "seed": seed, "load_s": load, "beside_s": beside, "saved_percent": saved}
            for x, load, beside, saved in ((1, 1.0, 2.0, 50.0), (2, 9.0, 10.0, 10.0))
            for seed in range(3)
        ]
    )
    keys = {"y": "saved_percent", "second": "", "value": 17}
    assert judged(frame, "about", x=None, **keys).ours.startswith("a: 16.7 [16.7, 16.7]")
    assert judged(frame, "about", **keys).ours.startswith("a: 30 ["), "by x: each page by itself"


def test_todays_questions_are_judged_apart_from_the_claims() -> None:
    keys = {"id": "t", "item": "Fig. 1", "says": "s", "published": "p", "kind": "same", "sweep": "s"}
    today = Claim.model_validate(keys | {"x": "x", "y": "rate", "first": "a", "second": "b"})
    asked, frame = study(today=[today]), {"s": rows({1: EQUAL}, {1: EQUAL})}
    assert (verdicts.judge(asked, frame), verdicts.judge_today(asked, frame)[0].word) == ([], "reproduced")


def test_columns_in_per_cent_are_compared_in_percentage_points() -> None:
    frame = rows({1: [0.0] * 4}, {1: [1.5] * 4}, "dropped_percent")
    verdict = judged(frame, "same", y="dropped_percent")
    assert verdict.word == "reproduced" and "difference -1.5 points" in verdict.ours


def trend(kind: str, *means: float, column: str = "rate") -> verdicts.Verdict:
    points = {x: [value, value + 0.001, value - 0.001] for x, value in enumerate(means)}
    return judged(rows(points, {}, column), kind, y=column, second="")


def test_a_trend_needs_growth_beyond_the_margin_that_never_turns() -> None:
    assert trend("rises", 1, 2, 3).word == trend("falls", 3, 2, 1).word == "reproduced"
    for kind, *means in (("rises", 1, 3, 2), ("rises", 3, 2, 1), ("falls", 1, 1, 1), ("rises", 100, 101)):
        assert trend(kind, *means).word == "not reproduced", means
    assert trend("rises", 100, 105).ours == "a: from 100 to 105; growth +4.9 % [+4.9, +4.9]"


def test_a_turn_within_the_margin_is_none() -> None:
    assert trend("rises", 100, 99, 110).word == "reproduced"
    assert trend("rises", 100, 95, 110).word == "not reproduced"


def test_a_trend_is_undecided_where_its_interval_holds_the_margin() -> None:
    frame = rows({1: [100.0] * 4, 2: [99.0, 107.0, 100.0, 106.0]}, {})
    assert judged(frame, "rises", second="").word == "undecided"


def test_a_trend_with_a_seed_that_lacks_an_end_cannot_be_compared() -> None:
    verdict = judged(rows({1: [1.0] * 4, 2: [2.0] * 3}, {}), "rises", second="")
    assert (verdict.word, verdict.ours) == ("not comparable", "not every seed has a value at both ends of x")


def test_a_trend_of_per_cents_is_counted_in_points() -> None:
    assert trend("rises", 1, 2, column="drops_percent").word == "not reproduced"
    verdict = trend("falls", 5, 2, column="drops_percent")
    assert (verdict.word, verdict.ours.partition(" [")[0]) == (
        "reproduced",
        "a: from 5 to 2; fall +3.0 points",
    )


def test_many_more_needs_the_factor_on_average_and_the_direction_at_most_points() -> None:
    first, second = {1: [30.0, 30.2, 29.8], 2: [18.0, 18.1, 17.9]}, {1: [10.0] * 3, 2: [10.0] * 3}
    assert judged(rows(first, second), "more", factor=2).word == "reproduced"
    assert judged(rows(first, second), "more", factor=3).word == "not reproduced"
    verdict = judged(rows(first, second), "more", factor=2)
    assert verdict.ours.startswith("a: 24, b: 10; difference from 2 times b +14.7 % [")
    assert verdict.ours.endswith("above at every point")


def test_only_more_takes_a_factor() -> None:
    with pytest.raises(ValidationError) as caught:
        judged(rows({1: EQUAL}, {1: EQUAL}), "same", factor=2)
    [error] = caught.value.errors()
    assert "1 where the kind is not more" in str(error["ctx"])


def test_what_cannot_be_compared_says_why() -> None:
    verdict = judged(pl.DataFrame(), "incomparable", why="no number is given")
    assert (verdict.word, verdict.ours) == ("not comparable", "no number is given")


def test_a_series_without_a_value_cannot_be_compared() -> None:
    verdict = judged(rows({1: EQUAL}, {}), "more")
    assert (verdict.word, verdict.ours) == ("not comparable", "nothing was delivered: no value of b")


def test_a_seed_without_a_value_is_told_and_never_left_out() -> None:
    verdict = judged(rows({1: ABOVE, 2: ABOVE[:3]}, {1: EQUAL, 2: EQUAL}), "more")
    assert (verdict.word, verdict.ours) == ("not comparable", "not every seed has both values at x = 2")


def without(lost: list[tuple[int, int]], kind: str = "more", **keys: Any) -> verdicts.Verdict:
    """The verdict on 12 against 10 at x = 1 and 2, of four visits without those lost: x and visit."""
    frame = rows({1: ABOVE, 2: ABOVE}, {1: EQUAL, 2: EQUAL}).rename({"rate": "load_s"})
    for x, visit in lost:
        frame = frame.filter(~((pl.col("x") == x) & (pl.col("seed") == visit) & (pl.col("series") == "a")))
    given = {"id": "c", "item": "Fig. 1", "says": "s", "published": "p", "kind": kind, "sweep": "s"}
    given |= {"x": "x", "y": "load_s", "first": "a", "second": "b"} | keys
    sweep = {"measure": "m", "series": "series", "over": {"x": [1, 2], "series": ["a", "b", "c"]}}
    asked = study(Claim.model_validate(given), sweeps={"s": sweep})
    gone = [{"x": x, "series": "a", "seed": visit} for x, visit in lost]
    gone += [{"x": 1, "series": "c", "seed": 0}]
    return verdicts.judge(asked, {"s": frame}, {"s": pl.DataFrame(gone)})[0]


def test_a_visit_that_does_not_count_at_one_point_is_left_out_at_those_compared_with_it() -> None:
    found = without([(1, 0)])
    assert found.word == "reproduced"
    assert found.ours.endswith("above at every point; visits left out: 1")
    assert without([(1, 0), (1, 3)]).word == "undecided", "two values have no interval"
    rising = without([(1, 0)], "rises", second="", margin=0)
    assert rising.ours.startswith("a: from 12 to 12; growth +0.0 % [") and "left out: 1" in rising.ours
    assert "left out" not in without([]).ours, "a series that the claim does not name"


def test_a_claim_that_needs_a_point_without_runs_that_count_is_not_comparable() -> None:
    found = without([(2, visit) for visit in range(4)])
    assert (found.word, found.ours) == ("not comparable", "no visit counts at all of its points with x = 2")
    assert without([(2, visit) for visit in range(4)], between={"x": [0, 1]}).word == "reproduced"
    everything = without([(x, visit) for x in (1, 2) for visit in range(4)], "rises", second="")
    assert (everything.word, everything.ours) == ("not comparable", "no visit counts at all of its points")


def test_a_statement_holds_when_all_claims_behind_it_do() -> None:
    def claim(name: str, kind: str) -> Claim:
        keys = {"id": name, "item": name, "says": "s", "published": "p", "kind": kind, "sweep": "s"}
        return Claim.model_validate(keys | {"x": "x", "y": "rate", "first": "a", "second": "b"})

    behind = {"one": ["more"], "two": ["more", "same"], "three": ["more", "nothing"]}
    derived = [
        {"id": name, "item": "Table", "says": "s", "claims": claims} for name, claims in behind.items()
    ]
    claims = claim("more", "more"), claim("same", "same"), claim("nothing", "incomparable")
    found = verdicts.judge(study(*claims, derived=derived), {"s": rows({1: ABOVE}, {1: EQUAL})})
    assert {verdict.id: verdict.word for verdict in found[3:]} == {
        "one": "reproduced",
        "two": "not reproduced",
        "three": "not comparable",
    }
    assert found[4].ours == "same is not reproduced"


def test_a_fact_that_two_claims_test_is_counted_once() -> None:
    given = {"item": "Fig. 1", "says": "s", "published": "p", "kind": "incomparable"}
    claims = [Claim.model_validate(given | {"id": "one"})]
    claims += [Claim.model_validate(given | {"id": "two", "same_as": "one", "remark": "So."})]
    derived = [{"id": "three", "item": "Table", "says": "s", "claims": ["one"]}]
    found = verdicts.judge(study(*claims, derived=derived), {})
    assert [verdict.is_counted for verdict in found] == [True, False, False]
    assert found[1].remark == "So. Not counted: Fig. 1 “s” tests the same fact."
    with pytest.raises(ValidationError, match="same_as"):
        study(claims[1])


def test_a_name_that_stands_twice_is_refused() -> None:
    claim = {"id": "c", "item": "Fig. 1", "says": "s", "published": "p", "kind": "incomparable"}
    with pytest.raises(ValidationError) as caught:
        study(*(Claim.model_validate(claim) for _ in range(2)))
    [error] = caught.value.errors()
    assert "names that each stand once" in str(error["ctx"])


@pytest.mark.parametrize("kind", ["more", "same"])
def test_only_the_rows_of_the_claim_count(kind: str) -> None:
    frame = pl.concat([rows({1: ABOVE, 2: EQUAL}, {1: EQUAL, 2: EQUAL})])
    verdict = judged(frame, kind, between={"x": [0, 1.5]})
    assert verdict.word == ("reproduced" if kind == "more" else "not reproduced")
