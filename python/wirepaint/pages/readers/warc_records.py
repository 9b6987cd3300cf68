"""Reads WARC 1.0 and 1.1 (ISO 28500) record by record, and the HTTP messages in them.

It does not use the library warcio: on broken gzip warcio prints a line and continues with partial data, it
refuses archives packed as a whole, and it reads lines of any length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from wirepaint.pages.readers.source import Source

_MAX_RECORDS = 50_000
_MAX_FIELDS = 500
_HEAD = 2**18
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(r"(HTTP/[\d.]{1,8}) +(\d{3})(?: |$)")
_REQUEST = re.compile(r"([A-Za-z]{1,16}) ")

Headers = list[tuple[str, str]]


@dataclass
class Record:
    """One record; read its block before the next record."""

    place: str
    fields: dict[str, str]
    """Named fields, names in lower case; the first if a name occurs several times."""
    length: int
    """Bytes of its block that are not read yet."""
    source: Source

    def field(self, name: str) -> str:
        """Value of a named field, without the angle brackets that some archivers put around addresses."""
        value = self.fields.get(name, "")
        return value[1:-1] if value.startswith("<") and value.endswith(">") else value

    def read(self, size: int) -> bytes:
        """The next bytes of the block."""
        data = self.source.read(min(size, self.length))
        if len(data) < min(size, self.length):
            raise self.source.refused(f"{self.place} that ends too early")
        self.length -= len(data)
        return data


@dataclass
class Message:
    """The head of an HTTP message."""

    start: str
    headers: Headers
    size: int
    """Bytes of the head, including the empty line at its end."""

    def header(self, name: str) -> str:
        """Value of the first header of this name (lower case), or nothing."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def status(self) -> tuple[str, int]:
        """Protocol and status; 0 if it is no answer."""
        found = _STATUS.match(self.start)
        return (found[1], int(found[2])) if found else ("", 0)

    @property
    def method(self) -> str:
        """The request's method, or nothing."""
        found = _REQUEST.match(self.start)
        return found[1].upper() if found else ""


def records(source: Source) -> Iterator[Record]:
    """The records of an archive; raises UsageError for a broken one."""
    count = 0
    while line := source.line():
        if not line.strip():
            continue
        count += 1
        place = f"record {count}"
        if count > _MAX_RECORDS:
            raise source.refused(f"more than {_MAX_RECORDS:,} records")
        if not line.startswith(b"WARC/"):
            raise source.refused(f"{place}, which begins with {line[:20]!r}")
        fields = _fields(source, place)
        length = fields.get("content-length", "")
        if not (length.isascii() and length.isdecimal() and len(length) < 16):
            raise source.refused(f"{place} of the length {length[:20]!r}")
        record = Record(place, fields, int(length), source)
        yield record
        while record.length:
            record.read(2**18)


def message(block: bytes) -> Message | None:
    """The HTTP head at the start of a block; None if there is none."""
    found = _HEAD_END.search(block[:_HEAD])
    head, size = (block[: found.start()], found.end()) if found else (block[:_HEAD], len(block))
    lines = head.decode("latin-1").replace("\r\n", "\n").split("\n")
    if not (_STATUS.match(lines[0]) or _REQUEST.match(lines[0])):
        return None
    return Message(lines[0], _parsed(lines[1:]), size)


def _fields(source: Source, place: str) -> dict[str, str]:
    lines: list[str] = []
    while (line := source.line()) not in (b"\r\n", b"\n"):
        if not line:
            raise source.refused(f"{place} that ends too early")
        lines.append(line.decode("utf-8", "replace").rstrip("\r\n"))
        if len(lines) > _MAX_FIELDS:
            raise source.refused(f"{place} of more than {_MAX_FIELDS} fields")
    fields: dict[str, str] = {}
    for name, value in _parsed(lines):
        fields.setdefault(name.lower(), value)
    return fields


def _parsed(lines: list[str]) -> Headers:
    """Names and values; a line that begins with a space continues the line before."""
    found: list[tuple[str, list[str]]] = []
    for line in lines[:_MAX_FIELDS]:
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t") and found:
            found[-1][1].append(line.strip())
        elif colon and name.strip():
            found.append((name.strip(), [value.strip()]))
    return [(name, " ".join(values)) for name, values in found]
