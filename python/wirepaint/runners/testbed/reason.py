"""Why a run does not count in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RARE_SHARE = 0.001
"""Of the time that counts, or of all answers: a disturbance below it is a note. A minute of two hundred users
has some pauses; no disturbance of a page load of a second is that short."""
SLIGHT_SHARE = 0.02
"""Of the shortest visit: no single disturbance that is a note is longer."""


@dataclass(frozen=True)
class Reason:
    """Why a run does not count in full, or what is worth knowing of it."""

    check: str
    severity: str
    """invalid, suspect or note."""
    found: str
    expected: str


def disturbance(lengths: Sequence[int], spans: Sequence[tuple[int, int]]) -> str:
    """The severity of disturbances of ``lengths`` ns in times that count: of each visit, or of the flows."""
    whole = max(end for _, end in spans) - min(begin for begin, _ in spans)
    shortest = min(end - begin for begin, end in spans)
    rare = sum(lengths) <= RARE_SHARE * whole and max(lengths, default=0) <= SLIGHT_SHARE * shortest
    return "note" if rare else "suspect"
