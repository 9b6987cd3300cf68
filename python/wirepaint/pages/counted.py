"""Counts JSON before it is parsed: values and objects take many times the memory of their text."""

from __future__ import annotations

_MAX_VALUES = 4_000_000
_MAX_OBJECTS = 500_000
"""A value takes about 50 bytes during parsing, an object about 700."""


def too_much(data: bytes) -> str | None:
    """Why a JSON text is too large to parse; None if it is not."""
    values, objects = _counts(data)
    if values > _MAX_VALUES or objects > _MAX_OBJECTS:
        return f"JSON of more than {_MAX_OBJECTS:,} objects or {_MAX_VALUES:,} values"
    return None


def _counts(data: bytes) -> tuple[int, int]:
    """About how many values and objects the text has, by the characters outside of strings."""
    values, objects, within, held = 0, 0, 0, b""
    for start in range(0, len(data), 2**20):
        block = held + data[start : start + 2**20]
        held = b"\\" if (len(block) - len(block.rstrip(b"\\"))) % 2 else b""
        block = block.removesuffix(held) if held else block
        pieces = block.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[within::2])
        values += outside.count(b",") + outside.count(b"[")
        objects += outside.count(b"{")
        within ^= (len(pieces) - 1) & 1
    return values, objects
