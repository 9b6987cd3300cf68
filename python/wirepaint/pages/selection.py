"""Selects the entries of a HAR for a page: of one page, with network answers, each request once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from wirepaint.errors import UsageError
from wirepaint.pages import references
from wirepaint.pages.har import Entry, Log, RecordedPage, choose_page, peek
from wirepaint.pages.hsts import preloaded
from wirepaint.pages.model import Kind
from wirepaint.pages.references import plain
from wirepaint.pages.room import Room
from wirepaint.pages.usage import kind_of, unhinted, unhinted_kind

_LONGEST_PATH, _LONGEST_HOST = 8_192, 253
"""Servers accept no longer path; DNS has no longer name."""

_DRIVEN_METHODS = ("GET", "HEAD", "POST")
"""Methods of the requests of synthesised bodies: they need no preflight."""

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_HOPS = 20


@dataclass(eq=False)
class Draft:
    """An entry that becomes a resource; times in ms since the navigation."""

    entry: Entry
    url: str
    method: str
    kind: Kind
    status: int
    start: float
    end: float
    room: Room
    """For reading the bodies of the page."""
    target: Draft | None = None
    """The target of its redirect."""
    came_from: Draft | None = None
    """The redirect that led here."""

    @cached_property
    def markup(self) -> references.Markup:
        """The references in the recorded body of a document or stylesheet."""
        text = peek(self.entry)[: references.MOST_READ]
        if self.kind == "css":
            return references.Markup(list(references.in_css(text, self.url, self.room)))
        return references.read_html(text, self.url, self.room)

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.url


@dataclass
class Selection:
    """The drafts in order of start, first the redirects to the base document and the base document."""

    drafts: list[Draft]
    base: Draft
    """The document after redirects."""
    load_ms: float | None
    aliases: dict[str, str] = field(default_factory=dict)
    """Addresses that the import changed: recorded address to replayed address."""
    notes: list[str] = field(default_factory=list)
    page: RecordedPage | None = None


def select(log: Log, path: Path, page: str | None) -> Selection:
    """Chooses the page and its requests; raises :class:`UsageError` if there is none."""
    used = {entry.page for entry in log.entries}
    pages = [p for p in log.pages if p.id in used] if page is None else log.pages
    recorded = choose_page(pages, str(path), page) if pages or page is not None else None
    counts: Counter[str] = Counter()
    aliases: dict[str, str] = {}
    entries: list[Entry] = []
    for entry in log.entries:
        of_other = recorded is not None and entry.page and entry.page != recorded.id
        reason = _why_left_out(entry, path)
        if of_other:
            continue
        if entry.header("non-authoritative-reason"):
            aliases[plain(entry.request.url)] = plain(_location(entry))
            reason = "redirects inside the browser"
        if reason:
            counts[reason] += 1
        else:
            entries.append(entry)
    if not entries:
        raise UsageError(f"{path}: log.entries", "no answered http or https request", "at least one")
    entries.sort(key=lambda entry: entry.started)
    room = Room()
    drafts = [_draft(entry, entries[0], room) for entry in entries]
    _link_redirects(drafts)
    chain = _chain(_first(drafts))
    origin = chain[0].start
    for draft in drafts:
        draft.start, draft.end = max(0.0, draft.start - origin), max(0.0, draft.end - origin)
    load = None
    if recorded and recorded.timings.on_load > 0:
        began = recorded.started or entries[0].started
        load = (began - chain[0].entry.started) / timedelta(milliseconds=1) + recorded.timings.on_load
    leading = set(chain)
    drafts = chain + [draft for draft in drafts if draft not in leading]
    _upgrade(drafts, chain, aliases, counts)
    drafts = _once(drafts, counts)
    _keep_replayable_redirects(drafts, counts)
    base = drafts[0]
    while base.target:
        base = base.target
    if base.status == 204:
        raise UsageError(f"{path}: log.entries", f"no answer of the page {base.url[:100]}", "a document")
    _settle_kinds(drafts, base)
    for draft in drafts:
        final, hops = draft, 0
        while final.target and hops < _MOST_HOPS:
            final, hops = final.target, hops + 1
        first, hops = draft, 0
        while first.came_from and hops < _MOST_HOPS:
            first, hops = first.came_from, hops + 1
        # A frame without content, or the target of a posted form, is a beacon, not a document.
        empty_frame = final.kind == "html" and final.status == 204 and draft is not base
        draft.kind = "data" if empty_frame or first.method != "GET" else final.kind
    if not base.entry.response.content.recorded:
        every = len(drafts)
        drafts = [draft for draft in drafts if draft.method in _DRIVEN_METHODS]
        if others := every - len(drafts):
            counts["preflights and unusual methods, which a synthesised page cannot ask for"] += others
    notes = [f"{number} {reason}" for reason, number in sorted(counts.items())]
    return Selection(drafts, base, load, aliases, notes, recorded)


def _why_left_out(entry: Entry, path: Path) -> str | None:
    place = f"{path}: log.entries[{entry.place}]"
    url = entry.request.url.strip()
    if not url.lower().startswith(("http://", "https://")):
        return "requests without network (data:, blob:, websockets, extensions)"
    asked = plain(url)
    try:
        parts = urlsplit(asked)
        longest = max(len(parts.path) / _LONGEST_PATH, len(parts.hostname or "") / _LONGEST_HOST)
    except ValueError:
        longest = 0.0
    if longest > 1 or len(url) > references.LONGEST_ADDRESS:
        return "addresses longer than servers take"
    if not references.is_address(asked):
        raise UsageError(f"{place}.request.url", repr(url[:100]), "an absolute http or https address")
    method = entry.request.method.upper()
    if not (method.isascii() and method.isalpha() and len(method) <= 16):
        raise UsageError(f"{place}.request.method", repr(method[:40]), "an HTTP method")
    status = entry.response.status
    if entry.resource_type.lower() == "websocket" or status == 101:
        return "requests without network (data:, blob:, websockets, extensions)"
    if status in (0, -1):
        return "failed or blocked requests (status 0)"
    if not 100 <= status <= 599:
        raise UsageError(f"{place}.response.status", str(status), "0 or 100 to 599")
    if status < 200:
        return "interim answers (status 1xx)"
    return None


def _location(entry: Entry) -> str:
    target = entry.header("location") or entry.response.redirect_url
    try:
        return references.join(entry.request.url, target) if target else ""
    except ValueError:
        return ""


def _draft(entry: Entry, first: Entry, room: Room) -> Draft:
    start = (entry.started - first.started) / timedelta(milliseconds=1)
    timings = entry.timings
    spent = entry.time if entry.time >= 0 else max(timings.wait, 0.0) + max(timings.receive, 0.0)
    # With a cold cache the browser gets the whole answer; the server makes partial ones itself.
    status = 200 if entry.response.status in (206, 304) else entry.response.status
    url = plain(entry.request.url.strip())
    return Draft(entry, url, entry.request.method.upper(), kind_of(entry), status, start, start + spent, room)


def _first(drafts: list[Draft]) -> Draft:
    """The navigation: the first document, with the redirects that lead to it."""
    gets = [d for d in drafts if d.method == "GET"]
    documents = (d for d in gets if _is_document(_chain(d)[-1]))
    redirects = (d for d in gets if d.status in _REDIRECTS)
    return next(documents, None) or next(redirects, None) or (gets or drafts)[0]


def _is_document(draft: Draft) -> bool:
    return draft.status not in _REDIRECTS and (draft.kind == "html" or unhinted(draft.entry))


def _chain(first: Draft) -> list[Draft]:
    """A request and the targets of its redirects."""
    chain = {first: None}
    while (following := next(reversed(chain)).target) and following not in chain and len(chain) < _MOST_HOPS:
        chain[following] = None
    return list(chain)


def _settle_kinds(drafts: list[Draft], base: Draft) -> None:
    """Finds the kind of HTML answers whose requests give no hint, from their use in the page."""
    if base.kind in ("data", "other"):
        base.kind = "html"
    open_questions = {references.key(d.url): d for d in drafts if d is not base and unhinted(d.entry)}
    if not open_questions or not base.entry.response.content.recorded:
        return
    asked_by: dict[str, str] = {}
    documents = [d for d in drafts if d.kind in ("html", "css") and d not in open_questions.values()]
    for document in documents:  # it grows by frames
        for reference in document.markup.found:
            key = references.key(reference.url)
            if key in asked_by:
                continue
            asked_by[key] = reference.element
            if reference.element in ("iframe", "frame") and (frame := open_questions.get(key)):
                frame.kind = "html"
                documents.append(frame)
    for key, draft in open_questions.items():
        draft.kind = unhinted_kind(peek(draft.entry), asked_by.get(key, ""))


def _link_redirects(drafts: list[Draft]) -> None:
    """Joins each redirect with the request that followed it."""
    waiting: dict[str, list[Draft]] = {}
    for draft in drafts:
        if sources := waiting.get(draft.url):
            draft.came_from = sources.pop(0)
            draft.came_from.target = draft
        if draft.status in _REDIRECTS and (target := plain(_location(draft.entry))):
            waiting.setdefault(target, []).append(draft)


def _upgrade(drafts: list[Draft], chain: list[Draft], aliases: dict[str, str], counts: Counter[str]) -> None:
    """Changes http addresses to https where the browser would.

    These are http parts of an https page (the browser blocks or upgrades them), hosts in its preloaded
    HSTS list, and hosts whose site asked to be in the list.
    """
    secure_page = chain[-1].url.startswith("https:")
    asking = {
        ".".join((urlsplit(draft.url).hostname or "").split(".")[-2:])
        for draft in drafts
        if "preload" in draft.entry.header("strict-transport-security")
    }
    for draft in drafts:
        host = urlsplit(draft.url).hostname or ""
        listed = preloaded(host) or ".".join(host.split(".")[-2:]) in asking
        if draft.url.startswith("http:") and (listed or (secure_page and draft not in chain)):
            secure = plain("https:" + draft.url.removeprefix("http:"))
            aliases[draft.url] = secure
            draft.url = secure
            counts["http requests asked for by https, as the browser would"] += 1


def _once(drafts: list[Draft], counts: Counter[str]) -> list[Draft]:
    """The drafts with each (method, url) once: the first request with the best answer."""
    groups: dict[tuple[str, str], list[Draft]] = {}
    for draft in drafts:
        groups.setdefault(draft.key, []).append(draft)
    dropped: set[Draft] = set()
    for group in groups.values():
        first = group[0]
        if len(group) == 1:
            continue
        best = min(group, key=_badness)
        dropped.update(d for d in group if d is not first)
        if best is first:
            continue
        # A redirect that returned to its own address: the hops in between are dropped.
        hop = first.target
        while hop and hop.key != first.key and hop not in dropped:
            dropped.add(hop)
            hop = hop.target
        first.entry, first.status, first.kind, first.end = best.entry, best.status, best.kind, best.end
        first.target = best.target
        if best.target:
            best.target.came_from = first
    if dropped:
        counts["repeated requests merged into the first"] += len(dropped)
    return [draft for draft in drafts if draft not in dropped]


def _badness(draft: Draft) -> tuple[bool, bool, bool, bool]:
    """Sort key of several answers; the lowest is kept: content, else a redirect to another address."""
    redirects = draft.status in _REDIRECTS
    to_itself = redirects and (draft.target is None or draft.target.key == draft.key)
    return redirects, to_itself, draft.status >= 400, draft.status == 204


def _keep_replayable_redirects(drafts: list[Draft], counts: Counter[str]) -> None:
    """Keeps a redirect if its target is reached only through it; else it answers 204."""
    alive = set(drafts)
    for draft in drafts:
        if draft.came_from is not None and draft.came_from not in alive:
            draft.came_from = None
    for draft in drafts:
        if draft.status not in _REDIRECTS:
            draft.target = None
        elif draft.target not in alive or (draft.target and draft.target.came_from is not draft):
            draft.status, draft.target = 204, None
            counts["redirects without a target of their own answered as 204"] += 1
