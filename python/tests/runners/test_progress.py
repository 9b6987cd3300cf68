"""The remaining time that a command prints."""

from __future__ import annotations

import math

import pytest

from wirepaint.runners.progress import time_left


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s left"), (37, "40 s left"), (180, "3 min left"), (7800, "2 h 10 min left"), (math.nan, "")],
)
def test_the_time_left_is_coarse_and_not_said_where_nobody_knows(seconds: float, said: str):
    assert time_left(seconds) == said
