"""Rows of text in aligned columns, for people at a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

_COLOURS = {"ok": "32", "note": "33", "missing": "31"}
PAGE_COLOURS = {
    "replays": "32", "replays without": "33", "shape": "33", "never": "33", "does not": "31",
    "html": "34", "css": "35", "js": "33", "image": "32", "font": "36", "media": "31", "data": "37",
    "other": "90",
}  # fmt: skip
"""ANSI colours of verdicts, and of the bars of a waterfall by type."""


def aligned(rows: Sequence[Sequence[str | int]]) -> list[str]:
    """One line per row; numbers are flush right, text flush left."""
    cells = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    last = rows[-1] if rows else ()
    numeric = [isinstance(cell, int) for cell in last]
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in cells
    ]


def coloured(word: str, to: TextIO | None = None) -> str:
    """``ok``, ``note`` and ``missing`` in their colours on a terminal (stdout), unless NO_COLOR is set."""
    return painted(word, _COLOURS.get(word), to)


def painted(text: str, colour: str | None, to: TextIO | None = None) -> str:
    """``text`` in an ANSI colour on a terminal (stdout), unless NO_COLOR is set."""
    plain = not (to or sys.stdout).isatty() or os.environ.get("NO_COLOR") or not colour
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"
