"""Numbers in words."""

from __future__ import annotations

from collections.abc import Callable

from wirepaint.statistics.intervals import Interval

MINUS = "\N{MINUS SIGN}"


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


def count(n: int, noun: str) -> str:
    """A number of things."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
