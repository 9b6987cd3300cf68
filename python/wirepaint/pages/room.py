"""Limits how much of a page's bodies is read, so that no page takes long; the rest is ignored."""

from __future__ import annotations

MOST_MARKS = 300_000
"""Tags, attributes and texts of documents: 1 second at worst."""
MOST_TEXT = 2**23
"""Characters of style sheets: 1 second at worst."""
MOST_SCRIPT = 2**25
"""Characters of scripts: 2 seconds at worst."""


class Room:
    """The remaining allowance for one purpose and one page."""

    def __init__(self, marks: int = MOST_MARKS, text: int = MOST_TEXT) -> None:
        self.marks, self._text = marks, text

    def take(self, text: str) -> str:
        """As much of ``text`` as there is room for."""
        taken = text[: self._text]
        self._text -= len(taken)
        return taken
