"""Reads HAR 1.2 files, plain or gzip, as browsers and their tools really write them.

Lenient where recorders differ (null, -1 and missing numbers, unknown keys, a byte order mark),
strict about what a page is made of: address, status, headers, body. Every error is a
:class:`UsageError` that names file and place. A file may decode to at most :data:`MAX_BYTES`, so
reading stays below 512 MiB of memory whatever the file holds.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from wirepaint.errors import UsageError
from wirepaint.pages.model import describe

MAX_BYTES = 96 * 2**20
MAX_ENTRIES = 5_000


def _size(value: Any) -> Any:
    """HAR writes -1 for unknown; recorders also write null, floats, text and nothing."""
    if value is None or (isinstance(value, int | float) and not 0 <= value < 2**53):
        return -1
    return int(value) if isinstance(value, float) else value


def _duration(value: Any) -> Any:
    if value is None or (isinstance(value, int | float) and not 0 <= value <= 3_600_000):
        return -1.0
    return value


def _text(value: Any) -> Any:
    return "" if value is None else str(value) if isinstance(value, int | float) else value


Size = Annotated[int, BeforeValidator(_size)]
Duration = Annotated[float, BeforeValidator(_duration)]
Text = Annotated[str, BeforeValidator(_text)]


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Header(_Lenient):
    name: str
    value: Text = ""


class Content(_Lenient):
    size: Size = -1
    compression: Size = -1
    mime: Text = Field("", validation_alias="mimeType")
    text: str | None = None
    encoding: Text = ""


class Response(_Lenient):
    status: int
    http_version: Text = Field("", validation_alias="httpVersion")
    headers: list[Header] = []
    redirect_url: Text = Field("", validation_alias="redirectURL")
    headers_size: Size = Field(-1, validation_alias="headersSize")
    body_size: Size = Field(-1, validation_alias="bodySize")
    transfer_size: Size = Field(-1, validation_alias="_transferSize")
    content: Content = Field(default_factory=lambda: Content.model_validate({}))


class Request(_Lenient):
    method: str
    url: str
    headers: list[Header] = []
    body_size: Size = Field(-1, validation_alias="bodySize")

    def header(self, name: str) -> str:
        """Value of the first header of this name (lower case), or nothing."""
        return next((h.value for h in self.headers if h.name.lower() == name), "")


class Timings(_Lenient):
    connect: Duration = -1.0
    ssl: Duration = -1.0
    wait: Duration = -1.0
    receive: Duration = -1.0


class Hints(_Lenient):
    """What some recorders add under ``_norm``: the initiator's URL and the priority."""

    initiator: Text = ""
    initiator_type: Text = Field("", validation_alias="initiatorType")
    priority: Text = ""


class Entry(_Lenient):
    """One request and its response; ``place`` is its index in ``log.entries``."""

    place: int = -1
    page: Text = Field("", validation_alias="pageref")
    started: datetime = Field(validation_alias="startedDateTime")
    time: Duration = -1.0
    request: Request
    response: Response
    timings: Timings = Timings()
    connection: Text = ""
    initiator: Any = Field(None, validation_alias="_initiator")
    initiator_type: Text = Field("", validation_alias="_initiator_type")
    priority: Text = Field("", validation_alias=AliasChoices("_priority", "_initialPriority"))
    resource_type: Text = Field("", validation_alias="_resourceType")
    hints: Hints = Field(default_factory=lambda: Hints.model_validate({}), validation_alias="_norm")

    def header(self, name: str) -> str:
        """Value of the response's first header of this name (lower case), or nothing."""
        return next((h.value for h in self.response.headers if h.name.lower() == name), "")


class PageTimings(_Lenient):
    on_load: Duration = Field(-1.0, validation_alias="onLoad")


class RecordedPage(_Lenient):
    id: Text = ""
    title: Text = ""
    started: datetime | None = Field(None, validation_alias="startedDateTime")
    timings: PageTimings = Field(
        default_factory=lambda: PageTimings.model_validate({}), validation_alias="pageTimings"
    )


class Creator(_Lenient):
    name: Text = ""
    version: Text = ""


class Log(_Lenient):
    creator: Creator = Creator()
    pages: Annotated[list[RecordedPage], BeforeValidator(lambda value: value or [])] = []
    entries: list[Entry] = Field(max_length=MAX_ENTRIES)


class Har(_Lenient):
    log: Log


def read(path: Path) -> Log:
    """Reads a HAR file; raises :class:`UsageError` for anything that is not one."""
    data = _decoded(path)
    try:
        log = Har.model_validate_json(data).log
    except ValidationError as error:
        key, found, accepted = describe(error)
        raise UsageError(f"{path}: {key}" if key else str(path), found, accepted) from None
    if not log.entries:
        raise UsageError(f"{path}: log.entries", "an empty list", "at least one entry")
    for place, entry in enumerate(log.entries):
        entry.place = place
        if entry.started.tzinfo is None:
            entry.started = entry.started.astimezone()
    return log


def peek(entry: Entry) -> str:
    """The recorded text, byte by byte as Latin-1, for a look at it; nothing where there is none."""
    content = entry.response.content
    if not content.text:
        return ""
    if content.encoding.lower() == "base64":
        try:
            return base64.b64decode(content.text).decode("latin-1")
        except ValueError:
            return ""
    return content.text.encode("utf-8", "replace").decode("latin-1")


def drop_bodies(log: Log) -> None:
    """Forgets the bodies and keeps their sizes."""
    for entry in log.entries:
        content = entry.response.content
        if content.text and content.size < 0:
            exact = content.encoding.lower() != "base64"
            content.size = len(content.text.encode()) if exact else len(content.text) * 3 // 4
        content.text = None


def body_bytes(entry: Entry, path: Path, charset: str) -> bytes | None:
    """The decoded body, or None where the recording has none; frees the text it came from.

    ``charset`` is that of the content-type; text that it cannot hold is encoded in UTF-8.
    """
    content = entry.response.content
    text, content.text = content.text, None
    if text is None or (not text and content.size > 0):
        return None
    place = f"{path}: log.entries[{entry.place}].response.content"
    if content.encoding.lower() == "base64":
        try:
            return base64.b64decode(text, validate=False)
        except (binascii.Error, ValueError) as error:
            raise UsageError(f"{place}.text", f"broken base64 ({error})", "base64") from None
    if content.encoding:
        raise UsageError(f"{place}.encoding", repr(content.encoding[:40]), "base64 or nothing")
    try:
        return text.encode(charset)
    except (UnicodeError, LookupError):
        return text.encode("utf-8", "replace")


def _decoded(path: Path) -> bytes:
    """The file's JSON text, without byte order mark, at most :data:`MAX_BYTES`."""
    accepted = f"a HAR of at most {MAX_BYTES // 2**20} MiB of JSON, plain or gzip"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(str(path), error.strerror or "no file", accepted) from None
    if data[:2] == b"\x1f\x8b":
        data = _gunzip(path, data, accepted)
    if len(data) > MAX_BYTES:
        raise UsageError(str(path), "more than that", accepted)
    return data.removeprefix(b"\xef\xbb\xbf")


def _gunzip(path: Path, data: bytes, accepted: str) -> bytes:
    parts: list[bytes] = []
    room = MAX_BYTES + 1
    while data and room > 0:
        decoder = zlib.decompressobj(31)
        try:
            part = decoder.decompress(data, room)
        except zlib.error as error:
            raise UsageError(str(path), f"broken gzip ({error})", accepted) from None
        parts.append(part)
        room -= len(part)
        if room > 0 and not decoder.eof:
            raise UsageError(str(path), "gzip that ends too early", accepted)
        data = decoder.unused_data if decoder.unused_data[:2] == b"\x1f\x8b" else b""
    return b"".join(parts)
