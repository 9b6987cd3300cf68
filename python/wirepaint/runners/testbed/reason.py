"""Why a run does not count in full."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Why a run does not count in full, or what is worth knowing of it."""

    check: str
    severity: str
    """invalid, suspect or note."""
    found: str
    expected: str
