"""The report's answer for several conditions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from wirepaint.report.answer import clauses, together
from wirepaint.statistics import Interval


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ([-0.019], "1.9 % faster on n0 / testbed"),
        ([-0.0192, -0.0189], "1.9 % faster on n0 / testbed and n1 / testbed"),
        ([-0.05, -0.019], "1.9 % to 5 % faster on n0 / testbed and n1 / testbed"),
        ([None], "faster on n0 / testbed"),
    ],
)
def test_a_span_whose_ends_read_alike_is_told_once(shares: list[float | None], told: str) -> None:
    rows = [
        SimpleNamespace(
            verdict="faster",
            conditions={"network": f"n{number}", "backend": "testbed"},
            stratum=f"n{number} / testbed",
            shift_rel=None if share is None else Interval(share),
        )
        for number, share in enumerate(shares)
    ]
    assert " ".join(together(rows).short.split()) == told  # pyright: ignore[reportArgumentType]


def test_conditions_without_a_difference_are_told_together() -> None:
    rows = [
        SimpleNamespace(
            verdict="same", conditions={"network": name}, stratum=name, page=None, margin=0.02, shift_rel=None
        )
        for name in ("lte", "3g", "dsl")
    ]
    told = clauses(rows)  # pyright: ignore[reportArgumentType]
    said = [(one.short, " ".join(one.evidence.split())) for one in told]
    assert said == [("no different on lte, 3g and dsl", "interval within ±2 %")]


def test_of_many_conditions_some_are_named() -> None:
    rows = [
        SimpleNamespace(
            verdict="same",
            conditions={"network": str(n)},
            stratum=str(n),
            page=None,
            margin=0.02,
            shift_rel=None,
        )
        for n in range(26)
    ]
    assert together(rows).short == "no different on 0, 1, 2 and 23 more"  # pyright: ignore[reportArgumentType]
