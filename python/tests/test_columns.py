"""Aligned columns."""

from __future__ import annotations

from wirepaint.columns import aligned, coloured


def test_text_is_flush_left_and_numbers_are_flush_right():
    rows = [["name", "bytes", "title"], ["a", 1000, "One"], ["longer", 5, ""]]
    assert aligned(rows) == ["name    bytes  title", "a       1,000  One", "longer      5"]


def test_nothing_gives_nothing():
    assert aligned([]) == []


def test_no_colour_without_a_terminal(capsys):
    assert coloured("missing") == "missing"
