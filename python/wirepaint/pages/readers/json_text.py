"""Reads the JSON of a recording within bounds, and detects the kind of recording."""

from __future__ import annotations

import re
from typing import Literal

from wirepaint.pages import counted
from wirepaint.pages.readers import refusals
from wirepaint.pages.readers.source import Source

MAX_BYTES = 96 * 2**20

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
    if found := counted.too_much(data):
        raise source.refused(found)
    return data


def kind(data: bytes, source: Source) -> Kind:
    """The kind of recording; raises :class:`UsageError` for files that are not page loads."""
    first = _FIRST_KEY.match(data[:65536])
    key = first[1].decode("latin-1") if first else ""
    refusals.check_json(data, key, source)
    if data.lstrip()[:1] == b"[":
        return "devtools"
    if key in ("method", "params", "message", "id", "sessionId", "level", "timestamp", "webview"):
        return "devtools lines"
    return "har"
