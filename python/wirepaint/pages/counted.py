"""JSON is counted before it is parsed: values and objects take many times the memory of their text."""

from __future__ import annotations

_MAX_VALUES = 4_000_000
_MAX_OBJECTS = 500_000
"""They take some 50 and 700 bytes while they are read."""


def too_much(data: bytes) -> str | None:
    """What is too much in a JSON text to parse it; None where nothing is."""
    values, objects = _counts(data)
    if values > _MAX_VALUES or objects > _MAX_OBJECTS:
        return f"JSON of more than {_MAX_OBJECTS:,} objects or {_MAX_VALUES:,} values"
    return None


def _counts(data: bytes) -> tuple[int, int]:
    """How many values and objects the text has, about: what begins them, outside of strings."""
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
