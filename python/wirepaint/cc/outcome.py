"""The outcome of a script in one arm."""

from __future__ import annotations

from dataclasses import dataclass, field

NEAR_SHARE = 0.2
"""Largest share of near values among the checks. Three may always be near: cwnd, ssthresh and flight at one
moment."""


@dataclass(frozen=True)
class Difference:
    """A failed check: line, preceding event, expected and found value."""

    line: int
    event: str
    key: str
    expected: str
    found: str


@dataclass
class Outcome:
    """``checks`` is the number of compared checks; ``skipped`` has the reasons for the others.

    ``nearly`` counts checks that were one segment, 1 % or one acknowledgement off, because sampling and
    growth overlap.
    ``repeated`` counts transfers that were carried out again because they differed or the machine
    disturbed them; ``disturbed`` has the reasons for those that stayed disturbed. ``unreadable`` is why a
    script could not run at all.
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
        """True if all compared checks were as expected."""
        return self.unreadable is None and not (self.differences or self.disturbed or self.vague)

    @property
    def vague(self) -> bool:
        """True if more values are only near than a busy machine explains."""
        return self.nearly > max(3, NEAR_SHARE * self.checks)

    def add(self, part: Outcome) -> None:
        """Adds a connection's outcome to that of its script."""
        self.checks += part.checks
        self.nearly += part.nearly
        self.differences += part.differences
        self.skipped += part.skipped
        self.disturbed += part.disturbed
