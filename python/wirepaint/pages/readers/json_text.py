"""The JSON of a recording: its text within bounds, and which kind of recording it is."""

from __future__ import annotations

import re
from typing import Literal

from wirepaint.pages.readers import refusals
from wirepaint.pages.readers.source import Source

MAX_BYTES = 96 * 2**20
_MAX_VALUES = 4_000_000
_MAX_OBJECTS = 500_000
"""Values and objects that a recording may hold: they take some 50 and 700 bytes while they are read."""

_CALL = re.compile(rb"\s*[\w$.]+\s*\(")
_FIRST_KEY = re.compile(rb'\s*(?:\[\s*)?\{\s*"((?:[^"\\]|\\.){0,100})"')

Kind = Literal["har", "devtools", "devtools lines"]


def read(source: Source) -> bytes:
    """The text as UTF-8, without byte order mark and without the call of a JSONP file around it."""
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise source.refused("more than that")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if call := _CALL.match(data[:200]):
        data = data[call.end() :].rstrip(b" \t\r\n;").removesuffix(b")")
    values, objects = _counts(data)
    if values > _MAX_VALUES or objects > _MAX_OBJECTS:
        raise source.refused(f"JSON of more than {_MAX_OBJECTS:,} objects or {_MAX_VALUES:,} values")
    return data


def kind(data: bytes, source: Source) -> Kind:
    """What recorder wrote it; raises :class:`UsageError` for recordings of other things."""
    first = _FIRST_KEY.match(data[:65536])
    key = first[1].decode("latin-1") if first else ""
    refusals.check_json(data, key, source)
    if data.lstrip()[:1] == b"[":
        return "devtools"
    if key in ("method", "params", "message", "id", "sessionId", "level", "timestamp", "webview"):
        return "devtools lines"
    return "har"


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
