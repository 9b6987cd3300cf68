"""Rows of text in aligned columns, for people at a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

_COLOURS = {"ok": "32", "note": "33", "missing": "31"}


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
    plain = not (to or sys.stdout).isatty() or os.environ.get("NO_COLOR") or word not in _COLOURS
    return word if plain else f"\x1b[{_COLOURS[word]}m{word}\x1b[0m"
