"""Numbers and comparisons in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirepaint.statistics.intervals import Interval

if TYPE_CHECKING:
    from wirepaint.statistics.compare import Comparison

MINUS = "\N{MINUS SIGN}"

_RELATION = {
    "faster": "faster than",
    "slower": "slower than",
    "better": "better than",
    "worse": "worse than",
    "lower": "lower than",
    "higher": "higher than",
    "same": "the same within the margin as",
    "undecided": "not told apart from",
}


def sentence(row: Comparison) -> str:
    """A comparison in one sentence, complete by itself."""
    where = row.stratum if row.conditions else "all conditions"
    scope = f"page {row.page}" if row.page else _count(len(row.pages), "page")
    relation = f"{row.candidate.level} is {_RELATION[row.verdict]} {row.baseline.level}"
    return (
        f"{row.title}, {where}, {scope}: {relation}; "
        f"difference {difference(row)}; p = {row.p_holm:.2g} ({row.test}, Holm over "
        f"{_count(row.family, 'comparison')}); {row.baseline.n} and {row.candidate.n} visits."
    )


def difference(row: Comparison) -> str:
    """The shift with its interval, relative where that is defined."""
    if row.shift_rel is not None:
        return f"{signed(100 * row.shift_rel.value)} % ({bounds(row.shift_rel, 100)})"
    unit = "" if row.unit == "1" else f" {row.unit}"
    return f"{signed(row.shift.value)}{unit} ({bounds(row.shift)})"


def number(value: float) -> str:
    """Three significant digits, or whole from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def signed(value: float) -> str:
    """A number with its sign."""
    return (MINUS if value < 0 else "+") + number(abs(value))


def bounds(interval: Interval, scale: float = 1) -> str:
    """The bounds of an interval, or that there are none."""
    if interval.low is None or interval.high is None:
        return "too few visits"
    return f"{signed(scale * interval.low)} to {signed(scale * interval.high)}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
