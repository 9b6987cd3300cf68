"""Assigns the answers of a web archive to pages.

A page is a top-level navigation that ends in an HTML document. The signs are, in this order: the list
of a WACZ, the archiver's page ids, the browser's header Sec-Fetch-Dest, else any HTML that
no page asked for as a frame. An answer belongs to the page that its record names, else to the owner of
its Referer, else to the page before it.

The references in a page's HTML and CSS belong to the page as well: a crawler stores shared objects once, and
a browser asks for them once. In a browser's archive, only answers from before the page are added this way.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from wirepaint.pages import references
from wirepaint.pages.readers.warc_archive import Archive, Exchange, Listed, parsed_date
from wirepaint.pages.room import Room

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_HOPS = 20
_NEAR = timedelta(seconds=10)
_COARSE = timedelta(seconds=2)
_MOST_MARKS = 1_500_000
"""Limit for the tags, attributes and texts of all documents with frames in an archive."""


@dataclass(eq=False)
class ArchivedPage:
    """A page of an archive: its navigation with the redirects before it, and its other answers."""

    id: str
    title: str
    exchanges: list[Exchange]
    """First the navigation."""
    types: dict[Exchange, str] = field(default_factory=dict)
    """Types of some exchanges, as in Chrome's ``_resourceType``."""


def find(archive: Archive, listed: list[Listed]) -> list[ArchivedPage]:
    """The pages of an archive in order, each with its answers by record, Referer or time."""
    return _Finder(archive, listed).pages()


def members(archive: Archive, page: ArchivedPage) -> list[Exchange]:
    """The exchanges of a page and the references of its documents and stylesheets, in order of time."""
    by_key: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in archive.exchanges:
        by_key[exchange.key].append(exchange)
    start = page.exchanges[0].date
    browser = any("text/html" in exchange.asked_header("accept") for exchange in page.types)
    room, taken = Room(), dict.fromkeys(page.exchanges)
    known = {exchange.key for exchange in taken}
    queue = list(taken)
    for exchange in queue:  # it grows
        if exchange.method != "GET":
            continue
        for url in _referred(archive, exchange, page, room):
            key = references.key(url)
            if key in known:
                continue
            known.add(key)
            if found := [e for e in by_key.get(key, []) if e.date <= start or not browser]:
                nearest = min(found, key=lambda other: abs(other.date - start))
                taken[nearest] = None
                queue.append(nearest)
    return sorted(taken, key=lambda exchange: (exchange is not page.exchanges[0], exchange.date))


def _referred(archive: Archive, exchange: Exchange, page: ArchivedPage, room: Room) -> list[str]:
    """Addresses that an answer makes the browser ask for."""
    if exchange.status in _REDIRECTS:
        return [url] if (url := _location(exchange)) else []
    if "html" in exchange.mime and (exchange in page.types or _is_frame(exchange)):
        found = references.read_html(_text(archive, exchange, room), exchange.url, room)
        return [r.url for r in found.found if r.url not in found.icons]
    if "css" in exchange.mime:
        return [r.url for r in references.in_css(_text(archive, exchange, room), exchange.url, room)]
    return []


def _text(archive: Archive, exchange: Exchange, room: Room) -> str:
    if room.marks <= 0:
        return ""
    body = archive.body(exchange)[0]
    room.marks -= len(body) // 256  # for unpacking it
    return body[: references.MOST_READ].decode("latin-1")


def _location(exchange: Exchange) -> str:
    return references.absolute(exchange.header("location"), references.plain(exchange.url)) or ""


def _is_frame(exchange: Exchange) -> bool:
    return exchange.asked_header("sec-fetch-dest") in ("iframe", "frame")


class _Finder:
    def __init__(self, archive: Archive, listed: list[Listed]) -> None:
        self._archive, self._all = archive, archive.exchanges
        self._listed, self._room = listed, Room(_MOST_MARKS)
        self._pages: list[ArchivedPage] = []
        self._owner: dict[str, ArchivedPage] = {}
        """By key of the address: the page that asked for it last."""
        self._frames: dict[ArchivedPage, set[str]] = {}
        self._has_ids = any(exchange.page_id for exchange in self._all)
        self._chains = {chain[0]: chain for chain in self._documents()}
        """Each HTML document with the redirects that led to it, by the first of them."""
        self._within = {e: chain[0] for chain in self._chains.values() for e in chain}
        self._begun: dict[Exchange, ArchivedPage] = {}
        self._wanted = self._named()

    def pages(self) -> list[ArchivedPage]:
        by_id: dict[str, ArchivedPage] = {}
        early: list[Exchange] = []
        for exchange in self._all:
            page = self._begin(exchange)
            if page is not None:
                by_id.setdefault(exchange.page_id, page)
            elif not self._pages:
                early.append(exchange)
                continue
            elif (page := self._owner_of(exchange, self._pages[-1], by_id)) is None:
                continue
            else:
                page.exchanges.append(exchange)
                if self._asked_as_frame(exchange, page):
                    page.types[exchange] = "iframe"
            self._owner[exchange.key] = page
        if self._pages:
            first = self._pages[0]
            first.exchanges += [e for e in early if self._is_of_first(e, first, by_id)]
        self._name()
        return self._pages

    def _begin(self, exchange: Exchange) -> ArchivedPage | None:
        """The page whose navigation includes the exchange; None for all other exchanges."""
        first = self._within.get(exchange)
        if first is not exchange:
            return self._begun.get(first) if first else None
        chain = self._chains[exchange]
        if (exchange in self._wanted) if self._wanted else self._navigates(exchange, chain[-1]):
            page = ArchivedPage(chain[-1].url, "", list(chain), dict.fromkeys(chain, "document"))
            self._pages.append(page)
            self._begun[exchange] = page
        return self._begun.get(exchange)

    def _owner_of(
        self, exchange: Exchange, current: ArchivedPage, by_id: dict[str, ArchivedPage]
    ) -> ArchivedPage | None:
        if exchange.page_id and self._has_ids:
            return by_id.get(exchange.page_id)
        referer = exchange.asked_header("referer")
        return (self._owner.get(references.key(referer)) if referer else None) or current

    def _is_of_first(self, exchange: Exchange, first: ArchivedPage, by_id: dict[str, ArchivedPage]) -> bool:
        """Whether an exchange before the first page belongs to it: clocks of archivers are coarse."""
        if exchange in self._within or first.exchanges[0].date - exchange.date > _COARSE:
            return False
        return self._owner_of(exchange, first, by_id) is first

    def _documents(self) -> list[list[Exchange]]:
        """Each HTML document after the redirects that led to it within seconds."""
        waiting: dict[str, list[Exchange]] = {}
        chains: list[list[Exchange]] = []
        for exchange in self._all:
            if exchange.method != "GET":
                continue
            chain = waiting.pop(exchange.key, [])
            if chain and exchange.date - chain[-1].date > _NEAR:
                chain = []
            if exchange.status in _REDIRECTS and (location := _location(exchange)):
                if len(chain) < _MAX_HOPS:
                    waiting[references.key(location)] = [*chain, exchange]
            elif "html" in exchange.mime and exchange.status < 300:
                chains.append([*chain, exchange])
        return chains

    def _named(self) -> set[Exchange]:
        """The first exchanges of the pages in a list or with page ids; empty without both."""
        by_key: dict[str, list[Exchange]] = defaultdict(list)
        for first, chain in self._chains.items():
            for exchange in chain:
                by_key[exchange.key].append(first)
        found: set[Exchange] = set()
        if self._listed:
            for page in self._listed:
                near = by_key.get(references.key(page.url), [])
                if near:
                    same = [first for first in near if page.id and first.page_id == page.id]
                    found.add((same or near)[0] if same or not page.date else _nearest(near, page.date))
        elif self._has_ids:
            seen: set[str] = set()
            for first, chain in self._chains.items():
                if first.page_id not in seen and not _is_frame(chain[-1]):
                    seen.add(first.page_id)
                    found.add(first)
        return found

    def _navigates(self, first: Exchange, document: Exchange) -> bool:
        """Whether a document is a page of its own and no part of the page before it."""
        if dest := document.asked_header("sec-fetch-dest").lower():
            return dest == "document"
        accept = document.asked_header("accept")
        if document.asked and accept and "text/html" not in accept:
            return False
        if document.asked_header("x-requested-with"):
            return False
        referer = first.asked_header("referer")
        owner = self._owner.get(references.key(referer)) if referer else None
        owner = owner or (self._pages[-1] if self._pages else None)
        if owner is None:
            return True
        if document.key in self._frames_of(owner):
            return False
        # A script's frame looks like a link; frames of other sites are advertisements.
        other = _site(document.url) != _site(owner.exchanges[0].url)
        return not (referer and other)

    def _frames_of(self, page: ArchivedPage) -> set[str]:
        """Keys of the addresses that the documents of a page show in frames."""
        if page not in self._frames:
            self._frames[page] = set()
            for document in [e for e, kind in page.types.items() if kind == "document"]:
                self._add_frames(document, page)
        return self._frames[page]

    def _add_frames(self, document: Exchange, page: ArchivedPage) -> None:
        text = _text(self._archive, document, self._room)
        if "frame" not in text.lower():
            return
        for reference in references.in_html(text, document.url, self._room):
            if reference.element in ("iframe", "frame"):
                self._frames[page].add(references.key(reference.url))

    def _asked_as_frame(self, exchange: Exchange, page: ArchivedPage) -> bool:
        if "html" not in exchange.mime or exchange.method != "GET" or exchange.status >= 400:
            return False
        if _is_frame(exchange):
            return True
        if exchange.key not in self._frames_of(page):
            return False
        self._add_frames(exchange, page)
        return True

    def _name(self) -> None:
        titles = {references.key(page.url): page.title for page in self._listed}
        seen: set[str] = set()
        for page in self._pages:
            page.title = titles.get(references.key(page.id), "")
            if page.id in seen:
                page.id += f" {page.exchanges[0].date:%Y-%m-%dT%H:%M:%SZ}"
            if page.id in seen:
                page.id += f" {len(seen) + 1}"
            seen.add(page.id)


def _nearest(exchanges: list[Exchange], date: str) -> Exchange:
    wanted = parsed_date(date) or exchanges[0].date
    return min(exchanges, key=lambda exchange: abs(exchange.date - wanted))


def _site(url: str) -> str:
    return ".".join((urlsplit(url).hostname or "").split(".")[-2:])
