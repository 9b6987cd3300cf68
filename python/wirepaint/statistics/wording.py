"""Numbers and comparisons in words."""

from __future__ import annotations

from collections.abc import Callable
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
        f"{_count(row.family, 'comparison')}); {row.baseline.n} and {row.candidate.n} visits"
        f"{_timeouts(row)}{_dissent(row)}."
    )


def _timeouts(row: Comparison) -> str:
    if not row.baseline.timed_out and not row.candidate.timed_out:
        return ""
    numbers = f"{row.baseline.timed_out} and {row.candidate.timed_out}"
    return f", and {numbers} that timed out, taken as longer than the limit"


def _dissent(row: Comparison) -> str:
    if not row.dissent:
        return ""
    shifts = (f"{name} ({_shown(row, row.by_stratum[name].value)})" for name in row.dissent)
    return f"; against it: {', '.join(shifts)}"


def _shown(row: Comparison, shift: float) -> str:
    if row.shift_rel is not None:
        return f"{percent(shift)} %"
    return f"{signed(shift)} {row.unit.removeprefix('1')}".rstrip()


def difference(row: Comparison) -> str:
    """The shift with its interval, relative where that is defined."""
    if row.shift_rel is not None:
        return f"{_shown(row, row.shift_rel.value)} ({bounds(row.shift_rel, percent)})"
    return f"{_shown(row, row.shift.value)} ({bounds(row.shift)})"


def number(value: float) -> str:
    """Three significant digits, or whole from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def signed(value: float) -> str:
    """A number with its sign."""
    return (MINUS if value < 0 else "+") + number(abs(value))


def percent(share: float) -> str:
    """A share in percent, with its sign and one decimal."""
    return f"{100 * share:+.1f}".replace("-", MINUS)


def bounds(interval: Interval, shown: Callable[[float], str] = signed) -> str:
    """The bounds of an interval, or that there are none."""
    if interval.low is None or interval.high is None:
        return "too few visits"
    return f"{shown(interval.low)} to {shown(interval.high)}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
