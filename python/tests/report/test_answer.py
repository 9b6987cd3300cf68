"""Several conditions told together."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from wirepaint.report.answer import together
from wirepaint.statistics import Interval


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ([-0.019], "1.9 % faster"),
        ([-0.0192, -0.0189], "1.9 % faster"),
        ([-0.05, -0.019], "1.9 % to 5 % faster"),
        ([], "faster"),
    ],
)
def test_a_span_with_one_end_is_told_once(shares: list[float], told: str) -> None:
    rows = [SimpleNamespace(verdict="faster", conditions={}, shift_rel=Interval(share)) for share in shares]
    rows = rows or [SimpleNamespace(verdict="faster", conditions={}, shift_rel=None)]
    assert together(rows).amount == told  # pyright: ignore[reportArgumentType]
