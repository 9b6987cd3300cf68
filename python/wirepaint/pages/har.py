"""A recording in the form of HAR 1.2; the readers of every format (``readers/``) fill it.

Lenient where recorders differ (null, -1 and missing numbers, unknown keys), strict about the parts
of a page: address, status, headers, body.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from wirepaint.errors import UsageError

MAX_ENTRIES = 5_000
_MAX_HEADERS = 1_000
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.I)


def _size(value: Any) -> Any:
    """HAR has -1 for unknown; recorders also write null, floats, text and nothing."""
    if value is None or (isinstance(value, int | float) and not 0 <= value < 2**53):
        return -1
    return int(value) if isinstance(value, float) else value


def _duration(value: Any) -> Any:
    if value is None or (isinstance(value, int | float) and not 0 <= value <= 3_600_000):
        return -1.0
    return value


def _text(value: Any) -> Any:
    return "" if value is None else str(value) if isinstance(value, int | float) else value


def _dated(value: datetime) -> datetime:
    if not 1970 <= value.year < 2400:
        raise ValueError("a date from 1970 to 2399")
    return value if value.tzinfo else value.astimezone()


Size = Annotated[int, BeforeValidator(_size)]
Duration = Annotated[float, BeforeValidator(_duration)]
Text = Annotated[str, BeforeValidator(_text)]
Date = Annotated[datetime, AfterValidator(_dated)]


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Header(_Lenient):
    name: str
    value: Text = ""


class Content(_Lenient):
    size: Size = -1
    compression: Size = -1
    mime: Text = Field(default="", validation_alias="mimeType")
    text: str | None = None
    encoding: Text = ""
    file: Text = Field(default="", validation_alias="_file")
    """Name of the file beside the HAR that holds the body (Playwright)."""
    _raw: bytes | None = PrivateAttr(None)

    @property
    def recorded(self) -> bool:
        """True if the recording has a body with content."""
        return bool(self.text or self._raw)

    def hold(self, body: bytes | None) -> None:
        """Sets the decoded body, in place of text."""
        self._raw, self.text = body, None

    def decoded(self, charset: str) -> bytes | None:
        """The decoded body, None if there is none; raises ValueError for broken base64.

        Text that ``charset`` cannot hold is encoded in UTF-8.
        """
        if self._raw is None and self.text is not None and (self.text or self.size <= 0):
            if self.encoding.lower() == "base64":
                self.hold(base64.b64decode(self.text, validate=False))
                return self._raw
            try:
                self.hold(self.text.encode(charset))
            except (UnicodeError, LookupError):
                self.hold(self.text.encode("utf-8", "replace"))
        return self._raw


class Response(_Lenient):
    status: int
    http_version: Text = Field(default="", validation_alias="httpVersion")
    headers: list[Header] = Field(default=[], max_length=_MAX_HEADERS)
    redirect_url: Text = Field(default="", validation_alias="redirectURL")
    headers_size: Size = Field(default=-1, validation_alias="headersSize")
    body_size: Size = Field(default=-1, validation_alias="bodySize")
    transfer_size: Size = Field(default=-1, validation_alias="_transferSize")
    content: Content = Field(default_factory=lambda: Content.model_validate({}))


class Request(_Lenient):
    method: str
    url: str
    headers: list[Header] = Field(default=[], max_length=_MAX_HEADERS)
    body_size: Size = Field(default=-1, validation_alias="bodySize")

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
    initiator_type: Text = Field(default="", validation_alias="initiatorType")
    priority: Text = ""


class Entry(_Lenient):
    """One request and its response; ``place`` is its index in ``log.entries``."""

    place: int = -1
    page: Text = Field(default="", validation_alias="pageref")
    started: Date = Field(validation_alias="startedDateTime")
    time: Duration = -1.0
    request: Request
    response: Response
    timings: Timings = Timings()
    connection: Text = ""
    server: Text = Field(default="", validation_alias="serverIPAddress")
    initiator: Any = Field(default=None, validation_alias="_initiator")
    initiator_type: Text = Field(default="", validation_alias="_initiator_type")
    priority: Text = Field(default="", validation_alias=AliasChoices("_priority", "_initialPriority"))
    resource_type: Text = Field(default="", validation_alias="_resourceType")
    hints: Hints = Field(default_factory=lambda: Hints.model_validate({}), validation_alias="_norm")

    def header(self, name: str) -> str:
        """Value of the response's first header of this name (lower case), or nothing."""
        return next((h.value for h in self.response.headers if h.name.lower() == name), "")


class PageTimings(_Lenient):
    on_load: Duration = Field(default=-1.0, validation_alias="onLoad")


class RecordedPage(_Lenient):
    id: Text = ""
    title: Text = ""
    started: Date | None = Field(default=None, validation_alias="startedDateTime")
    timings: PageTimings = Field(
        default_factory=lambda: PageTimings.model_validate({}), validation_alias="pageTimings"
    )


class Creator(_Lenient):
    name: Text = ""
    version: Text = ""


class Log(_Lenient):
    creator: Creator = Creator()
    pages: Annotated[
        list[RecordedPage], Field(max_length=MAX_ENTRIES), BeforeValidator(lambda value: value or [])
    ] = []
    entries: list[Entry] = Field(max_length=MAX_ENTRIES)
    _notes: list[str] = PrivateAttr(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What the reader left out or changed, one sentence each."""
        return self._notes


def choose_page(pages: list[RecordedPage], place: str, wanted: str | None) -> RecordedPage:
    """The page with this id or number from 1, the first for None; raises UsageError if there is none."""
    if wanted is None and pages:
        return pages[0]
    for position, recorded in enumerate(pages, start=1):
        if wanted in (recorded.id, str(position)):
            return recorded
    listed = ", ".join(p.id[:100] for p in pages[:10]) or "none in this file"
    raise UsageError(f"{place}: page", repr(wanted), f"a number from 1 or an id of log.pages: {listed}")


def charset(entry: Entry) -> str | None:
    """The charset in the response's content-type."""
    found = _CHARSET.search(entry.header("content-type"))
    return found.group(1) if found else None


def peek(entry: Entry) -> str:
    """The recorded body, byte by byte as Latin-1, for inspection; empty if there is none."""
    if entry.response.content.encoding.lower() not in ("", "base64"):
        return ""
    try:
        return (entry.response.content.decoded(charset(entry) or "utf-8") or b"").decode("latin-1")
    except ValueError:
        return ""


def drop_bodies(log: Log) -> None:
    """Forgets the bodies and keeps their sizes."""
    for entry in log.entries:
        content = entry.response.content
        if content.size < 0 and (text := peek(entry)):
            content.size = len(text)
        content.hold(None)


def body_bytes(entry: Entry, path: Path) -> bytes | None:
    """Takes the decoded body out of the entry; None if the recording has none."""
    content = entry.response.content
    place = f"{path}: log.entries[{entry.place}].response.content"
    if content.text is not None and content.encoding.lower() not in ("", "base64"):
        raise UsageError(f"{place}.encoding", repr(content.encoding[:40]), "base64 or nothing")
    try:
        body = content.decoded(charset(entry) or "utf-8")
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"{place}.text", f"broken base64 ({error})", "base64") from None
    content.hold(None)
    return body
