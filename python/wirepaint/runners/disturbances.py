"""Whether what disturbs the machine passes: only then is a disturbed run worth a repeat."""

from __future__ import annotations

from wirepaint.results.outcome import Outcome
from wirepaint.runners.bad_pages import in_words

STAYS = 6
"""After N disturbed runs in a row, of first tries and repeats, the disturbance is taken to stay. One of a few
seconds disturbs one run or two."""


class Disturbances:
    """What disturbed the last runs of a command, all in a row."""

    def __init__(self) -> None:
        self._row: list[Outcome] = []

    def learn(self, end: Outcome) -> None:
        """Takes the end of a run; a calm one ends the row."""
        disturbed = any(reason["severity"] == "suspect" for reason in end.reasons)
        self._row = [*self._row, end] if disturbed else []

    @property
    def stays(self) -> str | None:
        """What stays, in words; None if nothing does."""
        if len(self._row) < STAYS:
            return None
        return in_words(reason for reason in self._row[-1].reasons if reason["severity"] == "suspect")
