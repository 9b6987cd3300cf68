"""How a script went in one arm."""

from __future__ import annotations

from dataclasses import dataclass, field

NEAR_SHARE = 0.2
"""Largest share of near values among the checks. Three may always be near: cwnd, ssthresh and flight of one
look."""


@dataclass(frozen=True)
class Difference:
    """A check that did not hold: where, after which event, what was expected and found."""

    line: int
    event: str
    key: str
    expected: str
    found: str


@dataclass
class Outcome:
    """``checks`` were compared; what could not be is in ``skipped``, with the reason.

    ``nearly`` counts checks that were one segment, 1 % or one acknowledgement off, where sampling and
    growth overlap.
    ``repeated`` counts transfers that were carried out again because they differed or the machine
    spoiled them; ``disturbed`` says of those that stayed spoiled why. ``unreadable`` is why a script
    could not be run at all.
    """

    checks: int = 0
    differences: list[Difference] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    nearly: int = 0
    repeated: int = 0
    unreadable: str | None = None

    @property
    def passed(self) -> bool:
        """True where everything that could be compared was as expected."""
        return not (self.differences or self.disturbed or self.unreadable or self.vague)

    @property
    def vague(self) -> bool:
        """True where more values are only near than a busy machine explains."""
        return self.nearly > max(3, NEAR_SHARE * self.checks)

    def add(self, part: Outcome) -> None:
        """Counts a connection's outcome as a part of its script's."""
        self.checks += part.checks
        self.nearly += part.nearly
        self.differences += part.differences
        self.skipped += part.skipped
        self.disturbed += part.disturbed
