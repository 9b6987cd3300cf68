"""A machine that is much faster or slower rehearses anew."""

from __future__ import annotations

import pytest

from wirepaint.rehearsal import speed


def test_the_work_takes_some_milliseconds() -> None:
    assert 0.5 < speed.processor_ms() < 500


@pytest.mark.parametrize(
    ("then", "alike"), [(None, True), (10.0, True), (14.0, True), (25.0, False), (4.0, False)]
)
def test_machines_are_alike_within_a_factor(
    monkeypatch: pytest.MonkeyPatch, then: float | None, alike: bool
) -> None:
    monkeypatch.setattr(speed, "processor_ms", lambda: 10.0)
    assert speed.is_alike(then) is alike
