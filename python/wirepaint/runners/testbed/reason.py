"""Why a run does not count in full."""

from __future__ import annotations

from dataclasses import dataclass

RARE_SHARE = 0.001
"""Of the time that counts, or of all answers: a disturbance below it is a note. A minute of two hundred users
has some pauses; no disturbance of a page load of a second is that short."""


@dataclass(frozen=True)
class Reason:
    """Why a run does not count in full, or what is worth knowing of it."""

    check: str
    severity: str
    """invalid, suspect or note."""
    found: str
    expected: str


def disturbance(length: int, span: tuple[int, int]) -> str:
    """The severity of a disturbance of ``length`` ns in a time that counts."""
    begin, end = span
    return "note" if length <= RARE_SHARE * (end - begin) else "suspect"
