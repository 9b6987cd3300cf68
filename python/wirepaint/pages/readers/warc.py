"""Reads web archives (WARC 1.0 and 1.1, plain or gzip): their answers become the entries of one page.

An archive has no initiators, and no times except a date. ``warc_records`` reads it, ``warc_archive``
joins answers, requests and bodies, ``warc_pages`` finds its pages. Only the bodies of the wanted page
are unpacked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable

from wirepaint.errors import UsageError
from wirepaint.pages import har
from wirepaint.pages.readers import warc_pages
from wirepaint.pages.readers.source import Source
from wirepaint.pages.readers.warc_archive import ORIGINAL, Archive, Exchange, Listed
from wirepaint.pages.readers.warc_pages import ArchivedPage
from wirepaint.pages.readers.warc_records import Headers

MAX_BYTES = 512 * 2**20
"""Largest unpacked size of an archive."""
_MAX_BODIES = 128 * 2**20


def read(sources: Iterable[Source], page: str | None, listed: Iterable[Listed] = ()) -> har.Log:
    """Reads the files of an archive; the entries are those of the wanted page, by default the first."""
    with tempfile.TemporaryFile() as store:
        archive = Archive(store)
        place = ""
        for source in sources:
            place = place or source.place
            archive.add(source)
        archive.join()
        pages = warc_pages.find(archive, list(listed))
        if not pages:
            found = f"an archive of {len(archive.exchanges)} answers, none of which is an HTML document"
            raise UsageError(place, found, "an archive of at least one web page")
        recorded = [har.RecordedPage(id=p.id, title=p.title, started=p.exchanges[0].date) for p in pages]
        chosen = pages[recorded.index(har.choose_page(recorded, place, page))]
        members = warc_pages.members(archive, chosen)
        if len(members) > har.MAX_ENTRIES:
            raise UsageError(place, f"a page of {len(members)} requests", f"at most {har.MAX_ENTRIES}")
        log = har.Log(creator=har.Creator(name="a web archive"), pages=recorded, entries=[])
        room = _MAX_BODIES
        for exchange in members:
            log.entries.append(_entry(archive, exchange, chosen))
            room -= max(log.entries[-1].response.content.size, 0)
            if room < 0:
                raise UsageError(place, "a page of larger bodies", f"at most {_MAX_BODIES // 2**20} MiB")
        if lost := sum(exchange in archive.undecodable for exchange in members):
            archive.notes["bodies that cannot be decoded, replaced by synthesised ones"] = lost
        log.notes.extend(f"{number} {what}" for what, number in sorted(archive.notes.items()))
        return log


def _entry(archive: Archive, exchange: Exchange, page: ArchivedPage) -> har.Entry:
    began = page.exchanges[0].date  # objects that were loaded before are asked for again
    body, wire = archive.body(exchange)
    headers = [har.Header(name=n, value=v) for n, v in _as_sent(exchange.headers)]
    stated = next((h.value for h in headers if h.name.lower() == "content-length"), "")
    if wire < 0 and stated.isascii() and stated.isdecimal() and 0 < len(stated) < 12:
        wire = int(stated) if int(stated) < len(body) else -1
    content = har.Content(size=len(body) if body or not wire else -1, mime=exchange.mime)
    content.hold(body or None)
    asked = exchange.asked.headers if exchange.asked else []
    return har.Entry(
        page=page.id,
        started=max(exchange.date, began),
        request=har.Request(
            method=exchange.method,
            url=exchange.url,
            headers=[har.Header(name=n, value=v) for n, v in asked],
            body_size=exchange.posted,
        ),
        response=har.Response(
            status=exchange.status,
            http_version=exchange.protocol,
            headers=headers,
            body_size=wire,
            content=content,
        ),
        resource_type=page.types.get(exchange, "") or exchange.resource_type,
    )


def _as_sent(headers: Headers) -> Headers:
    """The headers as the server sent them."""
    originals = {n.lower().removeprefix(ORIGINAL) for n, _ in headers if n.lower().startswith(ORIGINAL)}
    return [
        (name[len(ORIGINAL) :] if name.lower().startswith(ORIGINAL) else name, value)
        for name, value in headers
        if name.lower() not in originals
    ]
