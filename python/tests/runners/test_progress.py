"""The remaining time that a command prints."""

from __future__ import annotations

import math

import pytest

from wirepaint.runners.progress import time_left


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(10, "10 s left"), (37, "40 s left"), (180, "3 min left"), (7800, "2 h 10 min left")],
)
def test_the_time_left_is_coarse(seconds: float, said: str):
    assert time_left(seconds) == said


@pytest.mark.parametrize("seconds", [0, 4, 9.9, math.nan])
def test_a_time_left_of_a_few_seconds_or_that_nobody_knows_is_not_said(seconds: float):
    assert time_left(seconds) == ""
