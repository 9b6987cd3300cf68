"""The remaining time that a command prints."""

from __future__ import annotations

import math
from typing import cast

import pytest

from wirepaint.evaluation import ResolvedRun
from wirepaint.runners import progress
from wirepaint.runners.progress import Lines, time_left

A_RUN = cast(ResolvedRun, None)
"""Lines name no run."""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(10, "10 s left"), (37, "40 s left"), (180, "3 min left"), (7800, "2 h 10 min left")],
)
def test_the_time_left_is_coarse(seconds: float, said: str):
    assert time_left(seconds) == said


@pytest.mark.parametrize("seconds", [0, 4, 9.9, math.nan])
def test_a_time_left_of_a_few_seconds_or_that_nobody_knows_is_not_said(seconds: float):
    assert time_left(seconds) == ""


@pytest.mark.parametrize(("total", "lines"), [(4, 4), (37, 10), (20_000, 10)])
def test_a_log_has_a_line_for_each_tenth_of_the_runs(
    total: int, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_QUIET_S", math.inf)
    said = Lines()
    said.began("A sweep", total, 0)
    for number in range(total):
        said.finished(A_RUN, "suspect" if number == 1 else "valid", 7800)
    first, *parts = capsys.readouterr().err.splitlines()
    assert first == f"A sweep: {total} runs" and len(parts) == lines
    assert parts[-1] == f"[{total}/{total}] {total - 1} valid, 1 suspect"
    assert all(part.endswith(", 2 h 10 min left") for part in parts[:-1])


def test_a_log_has_a_line_when_it_was_quiet_for_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_QUIET_S", 0)
    said = Lines()
    said.began("Slow", 1000, 400)
    said.finished(A_RUN, "not needed: interval narrower than 0.01 of the mean", math.nan)
    assert capsys.readouterr().err.splitlines() == [
        "Slow: 1000 runs, 400 of them done",
        "[401/1000] 1 not needed",
    ]
