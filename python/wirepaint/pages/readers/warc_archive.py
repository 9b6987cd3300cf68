"""Joins the records of a web archive into exchanges, with their requests, revisits and bodies.

A temporary file holds the bodies as stored; they are decoded one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import IO

from wirepaint.errors import UsageError
from wirepaint.pages import references
from wirepaint.pages.codings import decoded
from wirepaint.pages.readers.source import Source
from wirepaint.pages.readers.warc_records import Headers, Message, Record, message, records

MAX_BODY = 64 * 2**20
_HEAD = 2**18
_MOST_CHUNKS = 200_000
_HEADS, _HEADERS = 2**26, 1_000_000
"""Limits for all HTTP headers of an archive, which are in memory: bytes and number."""
ORIGINAL = "x-orig-"
"""Browsertrix's prefix for headers that no longer match its stored bodies."""


@dataclass
class Listed:
    """A page in the list of a WACZ."""

    url: str
    id: str = ""
    date: str = ""
    title: str = ""


@dataclass(eq=False)
class Exchange:
    """A request and its answer."""

    url: str
    date: datetime
    status: int = 200
    protocol: str = ""
    headers: Headers = field(default_factory=list)
    mime: str = ""
    stored: tuple[int, int] = (0, 0)
    """Place of the body in the temporary file: start, and size on the wire."""
    digest: str = ""
    id: str = ""
    page_id: str = ""
    resource_type: str = ""
    asked: Message | None = None
    posted: int = 0
    refers: tuple[str, str, str] | None = None
    """For a revisit: id, address and date of the record with the body."""

    @cached_property
    def key(self) -> str:
        """The normal form of its address."""
        return references.key(self.url)

    def header(self, name: str) -> str:
        """Value of the answer's first header of this name (lower case), or nothing."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def asked_header(self, name: str) -> str:
        """Value of the request's first header of this name (lower case), or nothing."""
        return self.asked.header(name) if self.asked else ""

    @property
    def method(self) -> str:
        return (self.asked.method if self.asked else "") or "GET"


class Archive:
    """The exchanges of all files of an archive."""

    def __init__(self, store: IO[bytes]) -> None:
        self.exchanges: list[Exchange] = []
        self.notes: Counter[str] = Counter()
        self.undecodable: set[Exchange] = set()
        self._store, self._end = store, 0
        self._requests: list[tuple[str, str, Message, int]] = []
        self._heads, self._headers = _HEADS, _HEADERS
        self._place = ""

    def add(self, source: Source) -> None:
        """Reads one file of the archive."""
        self._place = self._place or source.place
        for record in records(source):
            url = record.field("warc-target-uri").replace(" ", "%20")
            kind = record.field("warc-type").lower()
            if not references.is_address(references.plain(url)):
                continue
            if kind == "request":
                block = record.read(_HEAD)
                if asked := self._message(block, record):
                    posted = len(block) - asked.size + record.length
                    self._requests.append((record.field("warc-concurrent-to"), url, asked, posted))
            elif kind in ("response", "revisit", "resource"):
                self._answer(kind, url, record)
            elif kind == "continuation":
                self.notes["parts of answers cut in pieces, which are not put together"] += 1

    def _answer(self, kind: str, url: str, record: Record) -> None:
        date = parsed_date(record.field("warc-date"))
        if date is None:
            self.notes["records without a date"] += 1
            return
        found = Exchange(url, date, id=record.field("warc-record-id"))
        found.page_id = record.field("warc-page-id")
        found.resource_type = record.field("warc-resource-type")
        found.digest = record.field("warc-payload-digest").lower()
        block = b""
        if kind == "resource":
            found.mime = record.field("content-type")
            found.headers = [("content-type", found.mime)] if found.mime else []
        else:
            block = record.read(_HEAD)
            answer = self._message(block, record)
            if answer is not None:
                found.protocol, found.status = answer.status
                found.headers = answer.headers
                block = block[answer.size :]
            elif kind == "response":
                self.notes["answers without an HTTP head"] += 1
                return
            found.mime = found.header("content-type")
        if kind == "revisit":
            names = ("warc-refers-to", "warc-refers-to-target-uri", "warc-refers-to-date")
            ident, target, when = (record.field(name) for name in names)
            found.refers = (ident, target or url, when)
        else:
            found.stored = (self._end, len(block) + record.length)
            self._store.write(block)
            while record.length:
                self._store.write(record.read(2**18))
            self._end += found.stored[1]
        self.exchanges.append(found)

    def _message(self, block: bytes, record: Record) -> Message | None:
        """The HTTP head of a record; raises UsageError beyond the limits for headers."""
        found = message(block)
        if found is not None:
            self._heads -= found.size
            self._headers -= len(found.headers)
            if self._heads < 0 or self._headers < 0:
                most = f"at most {_HEADERS:,} HTTP headers in {_HEADS // 2**20} MiB"
                raise UsageError(f"{record.source.place}: {record.place}", "more than that", most)
        return found

    def join(self) -> None:
        """Gives answers their requests and revisits their bodies, and sorts all by date."""
        by_id = {e.id: e for e in self.exchanges if e.id}
        waiting: dict[str, list[Exchange]] = {}
        for exchange in reversed(self.exchanges):
            waiting.setdefault(exchange.url, []).append(exchange)
        for concurrent, url, asked, posted in self._requests:
            answer = by_id.get(concurrent)
            if answer is None or answer.asked is not None or answer.url != url:
                rest = waiting.get(url, [])
                while rest and rest[-1].asked is not None:
                    rest.pop()
                answer = rest.pop() if rest else None
            if answer is not None:
                answer.asked, answer.posted = asked, posted
        self._resolve(by_id)
        self.exchanges.sort(key=lambda exchange: exchange.date)

    def _resolve(self, by_id: dict[str, Exchange]) -> None:
        whole = [e for e in self.exchanges if e.refers is None]
        by_digest = {e.digest: e for e in whole if e.digest}
        by_url: dict[str, list[Exchange]] = {}
        for exchange in whole:
            by_url.setdefault(references.plain(exchange.url), []).append(exchange)
        kept: list[Exchange] = []
        for exchange in self.exchanges:
            if exchange.refers is not None:
                original = _original(exchange, by_id, by_url, by_digest)
                if original is None:
                    self.notes["revisits of answers that the archive does not hold"] += 1
                    continue
                _revisit(exchange, original)
            kept.append(exchange)
        self.exchanges = kept

    def body(self, exchange: Exchange) -> tuple[bytes, int]:
        """The decoded body, and its size on the wire before decoding, -1 if that is not stored.

        Raises UsageError for a body that unpacks to more than :data:`MAX_BODY`.
        """
        start, size = exchange.stored
        if size > MAX_BODY:
            raise self._too_large(exchange)
        self._store.seek(start)
        body = self._store.read(size)
        coding = exchange.header("content-encoding")
        try:
            if "chunked" in exchange.header("transfer-encoding").lower():
                body = _unchunked(body)
            if exchange.header(ORIGINAL + "content-encoding"):
                return body, -1
            return decoded(body, coding, MAX_BODY), len(body)
        except OverflowError:
            raise self._too_large(exchange) from None
        except ValueError:
            # Some archivers store the decoded body and leave the header as it was.
            if body and not _looks_encoded(body, coding):
                return body, -1
            self.undecodable.add(exchange)
            return b"", len(body)

    def _too_large(self, exchange: Exchange) -> UsageError:
        return UsageError(
            f"{self._place}: {exchange.url[:100]}", "a larger body", f"at most {MAX_BODY // 2**20} MiB"
        )


def _original(
    revisit: Exchange,
    by_id: dict[str, Exchange],
    by_url: dict[str, list[Exchange]],
    by_digest: dict[str, Exchange],
) -> Exchange | None:
    """The original of a revisit: by id, by address and date, by address and digest, or by digest."""
    ident, target, when = revisit.refers or ("", "", "")
    named = by_id.get(ident)
    if named is not None and named.refers is None:
        return named
    date = parsed_date(when)
    same = by_url.get(references.plain(target), [])
    for candidate in same:
        if (date and candidate.date == date) or (revisit.digest and candidate.digest == revisit.digest):
            return candidate
    return by_digest.get(revisit.digest) if revisit.digest else None


def _revisit(exchange: Exchange, original: Exchange) -> None:
    """Fills a revisit with its original answer; a 304 becomes the whole answer."""
    exchange.stored, exchange.status = original.stored, original.status
    exchange.protocol = exchange.protocol or original.protocol
    exchange.headers, exchange.mime = original.headers, original.mime
    exchange.resource_type = exchange.resource_type or original.resource_type


def parsed_date(text: str) -> datetime | None:
    """A date of the archive in UTC; None if ``text`` is no date."""
    try:
        found = datetime.fromisoformat(text[:40])
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _unchunked(body: bytes) -> bytes:
    """The body without chunk framing; unchanged if it has none (some archivers remove it).

    Raises ValueError for more chunks than any server sends.
    """
    parts: list[bytes] = []
    at = 0
    while len(parts) < _MOST_CHUNKS:
        end = body.find(b"\n", at, at + 1000)
        size = body[at:end].partition(b";")[0].strip() if end >= 0 else b""
        if not size or len(size) > 8 or size.strip(b"0123456789abcdefABCDEF"):
            return b"".join(parts) if parts else body
        length = int(size, 16)
        if not length:
            return b"".join(parts)
        parts.append(body[end + 1 : end + 1 + length])
        at = end + 1 + length
        at += 2 if body[at : at + 2] == b"\r\n" else body[at : at + 1] == b"\n"
    raise ValueError("too many chunks")


def _looks_encoded(body: bytes, coding: str) -> bool:
    return body[:2] == b"\x1f\x8b" if "gzip" in coding else not body[:512].isascii()
