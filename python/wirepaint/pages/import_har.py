"""Makes a page archive from a HAR."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wirepaint import files, ordinary
from wirepaint.errors import UsageError
from wirepaint.pages import causes, har, headers, readers, references, servers, sizes, stability
from wirepaint.pages.cache import hand_over, make_folder, sweep, unwritable
from wirepaint.pages.codings import coding_of, encode_near
from wirepaint.pages.model import (
    BODIES,
    MOST_BODY,
    MOST_POST,
    Cause,
    Page,
    Recorded,
    Resource,
    checked,
    faults_named,
    load,
    save_index,
)
from wirepaint.pages.selection import Draft, Selection, select

_WAIT_MS = 30.0
"""A request later than this after its parent's end may have waited for another answer."""

_UNEXPLAINED = 0.5
"""An answer counts as the trigger if at most this share of that time remains after it."""

_GUESSED_MS = 10.0
"""Largest computing time before a request with a guessed cause: the rest of the gap is mostly network.

Chromium asks for resources in markup 8 to 11 ms after the document, measured with ten pages.
"""

_LATE_SHARE = 0.1
"""Share of the requests from which on it is said that they begin after the load event or failed."""

_SUFFIXES = re.compile(r"(\.harp?|\.warc|\.wacz|\.jsonl?)?(\.gz|\.zip)?$", re.I)
_TEXT = {"html", "css", "js", "data"}


def import_har(
    path: Path,
    out: Path,
    *,
    name: str | None = None,
    title: str | None = None,
    page: str | None = None,
    source: str | None = None,
    licence: str = "not stated",
    seed: int = 1,
    sizes_only: bool | None = False,
) -> Page:
    """Imports a recording of any format that ``readers`` knows into the page folder ``out``.

    ``sizes_only`` drops recorded bodies. Synthesised bodies ask for exactly the recorded requests;
    recorded scripts may draw random addresses or wait for real servers. None
    drops them if that is likely (:func:`wirepaint.pages.stability.doubt`).
    ``page`` chooses one of several recorded pages by id or by number from 1. ``out`` must be new,
    empty or a page folder (it is replaced), and must not hold the recording. Raises :class:`UsageError`
    with file and place.
    """
    path, out = Path(path), Path(out)
    checked(name, seed)
    check_target(out, path)
    options = {"name": name, "title": title, "page": page, "source": source, "licence": licence, "seed": seed}

    def make(folder: Path) -> None:
        import_log(readers.read(path, page), path, folder, sizes_only=sizes_only, **options)

    return made(make, str(path), out)


def import_log(
    log: har.Log,
    path: Path,
    folder: Path,
    *,
    name: str | None = None,
    title: str | None = None,
    page: str | None = None,
    source: str | None = None,
    licence: str = "not stated",
    seed: int = 1,
    sizes_only: bool | None = False,
    viewport: tuple[int, int] | None = None,
    mobile: bool = False,
    notes: Sequence[str] = (),
) -> None:
    """Imports the log that a reader made from ``path``; see :func:`import_har`.

    ``viewport`` and ``mobile`` describe the screen of the recording; ``notes`` are added to the page's.
    The caller has checked name and seed; ``folder`` comes from :func:`made`.
    """
    if sizes_only:
        har.drop_bodies(log)
    selection = select(log, path, page)
    if sizes_only is None and (doubt := stability.doubt(selection)):
        har.drop_bodies(log)
        selection = select(log, path, page)
        selection.notes.append(f"recorded bodies replaced by synthesised ones: {doubt}")
    selection.notes[:0] = log.notes
    recorder = f"{log.creator.name} {log.creator.version}".strip()
    _leave_out_icons(selection)
    with faults_named(str(path)):
        resources = _resources(selection, path, folder)
        result = Page(
            name=name or name_from(path),
            title=(title or (selection.page.title if selection.page else "") or selection.base.url)[:200],
            summary=f"{len(resources)} requests recorded by {recorder or 'an unnamed recorder'}",
            source=source or files.name(path),
            licence=licence,
            recorded=selection.drafts[0].entry.started.date().isoformat(),
            clock_ms=max(0, round(selection.drafts[0].entry.started.timestamp() * 1000)),
            viewport=viewport,
            mobile=mobile,
            url=resources[0].url,
            seed=seed,
            notes=[*notes, *selection.notes, *_late(resources), *_broken(resources)],
            resources=resources,
        )
        save_index(result, folder)


def made(make: Callable[[Path], None], of: str, out: Path, *, browser: bool = False) -> Page:
    """The page that ``make`` writes to a folder as an ordinary user, moved to ``out``.

    ``of`` names the source in errors; ``browser``: ``make`` starts a browser.
    """

    def work(folder: Path, _: ordinary.Say) -> None:
        (folder / BODIES).mkdir()
        make(folder)

    with ordinary.done(work, of, browser=browser) as (folder, _), replacing(out) as target:
        ordinary.take(folder, target, BODIES)
        return load(target)


def name_from(path: Path) -> str:
    """A page's name from the name of its source file or folder."""
    return re.sub(r"[^a-z0-9._-]+", "-", stem(path).lower()).strip("-._")[:64] or "page"


def stem(path: Path) -> str:
    """The name of a recording's file without the suffixes of its format."""
    return _SUFFIXES.sub("", path.name)


def check_target(out: Path, source: Path | None = None) -> None:
    """Raises :class:`UsageError` unless a page made of ``source`` may be written to, or replace, ``out``.

    Replacing ``out`` removes its content, so it must not contain ``source`` or lie in it. None
    stands for a source that is no file.
    """
    made = files.real(out)
    read = files.real(source) if source else None
    if read and (made.is_relative_to(read) or read.is_relative_to(made)):
        where = "the source itself" if made == read else f"a place within the source {source}"
        found = where if made.is_relative_to(read) else f"the folder that holds the source {source}"
        raise UsageError(str(out), found, "a folder apart from the source (-o)")
    if out.name in ("", ".."):  # neither can be replaced by another folder
        raise UsageError(
            str(out), "a folder that is not named", "the name of a new folder or a page folder (-o)"
        )
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        load(out)
    except UsageError as error:
        found = f"something that is no page ({error.place}: {error.found})"
        raise UsageError(str(out), found, "a new folder, an empty one or a page folder") from None


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """A temporary folder beside ``out`` that replaces it on success.

    Call :func:`check_target` first.
    """
    make_folder(out.parent)
    try:
        sweep(out.parent, f".{out.name}.importing.*")
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.importing.", dir=out.parent))
    except OSError as error:
        raise unwritable(out, error) from None
    try:
        (folder / BODIES).mkdir()
        yield folder
        folder.chmod(0o755)
        hand_over(folder)
        if out.exists():
            shutil.rmtree(out)
        folder.rename(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def store(folder: Path, wire: bytes) -> str:
    """Stores a body as on the wire; returns its hash."""
    digest = hashlib.sha256(wire).hexdigest()
    target = folder / BODIES / digest
    if not target.exists():
        target.write_bytes(wire)
    return digest


def _leave_out_icons(selection: Selection) -> None:
    """Leaves out the icons of a recorded document: a headless browser does not ask for them."""
    if not selection.base.entry.response.content.recorded:
        return
    icons = selection.base.markup.icons
    # An icon without an address has the address of its document.
    kept = [
        d for d in selection.drafts if d.url not in icons or d.target or d.came_from or d is selection.base
    ]
    if left_out := len(selection.drafts) - len(kept):
        selection.drafts[:] = kept
        selection.notes.append(f"{left_out} icons, which a headless browser does not ask for")


def _resources(selection: Selection, path: Path, folder: Path) -> list[Resource]:
    drafts = selection.drafts
    thinks = sizes.think_times(draft.entry for draft in drafts)
    answered = servers.numbered(draft.entry.server for draft in drafts)
    position = {draft: index for index, draft in enumerate(drafts)}
    found = _Finder(selection, position)
    blanker = Blanker({draft.url for draft in drafts if draft.method == "GET"})
    resources: list[Resource] = []
    for index, draft in enumerate(drafts):
        fields = _response(draft, path, folder, blanker)
        timings = draft.entry.timings
        with faults_named(f"{path}: log.entries[{draft.entry.place}]"):
            resources.append(
                Resource(
                    id=index,
                    method=draft.method,
                    url=draft.url,
                    status=draft.status,
                    type=draft.kind,
                    think_ms=thinks[index],
                    cause=found.cause(index),
                    priority=draft.entry.priority or draft.entry.hints.priority or None,
                    recorded=Recorded(
                        protocol=draft.entry.response.http_version or None,
                        connection=draft.entry.connection or None,
                        start_ms=_rounded(draft.start),
                        wait_ms=max(timings.wait, 0.0),
                        receive_ms=max(timings.receive, 0.0),
                        after_load=selection.load_ms is not None and draft.start > selection.load_ms,
                        post_bytes=max(draft.entry.request.body_size, 0),
                        server=answered[index],
                    ),
                    **fields,
                )
            )
    if not timed(selection):
        selection.notes.append("no times recorded: effects follow their causes at once")
    if blanker.count:
        selection.notes.append(f"{blanker.count} references to what was not recorded blanked in bodies")
    return resources


def _late(resources: Sequence[Resource]) -> list[str]:
    """A note if page load time leaves out a good part of the page."""
    late = sum(resource.recorded.after_load for resource in resources)
    if late < _LATE_SHARE * len(resources):
        return []
    return [f"{late} of {len(resources)} requests begin after the load event; page load time leaves them out"]


def _broken(resources: Sequence[Resource]) -> list[str]:
    """A note if a good part of the answers are errors."""
    errors = Counter(resource.status for resource in resources if resource.status >= 400)
    if sum(errors.values()) < _LATE_SHARE * len(resources):
        return []
    which = ", ".join(f"{number} with {status}" for status, number in sorted(errors.items()))
    return [f"{sum(errors.values())} of {len(resources)} requests were answered by errors: {which}"]


def timed(selection: Selection) -> bool:
    """False for a crawl: its start times are the crawler's, and its answers have no times."""
    return any(d.entry.timings.wait > 0 or d.entry.timings.receive > 0 for d in selection.drafts)


class Blanker:
    """Overwrites references to unrecorded resources, so that the browser does not ask for them."""

    def __init__(self, recorded: set[str]) -> None:
        self.count = 0
        self._keys = {references.key(url) for url in recorded}
        self._hosts = {references.key(url).split("/")[2] for url in recorded}
        self._hashed = False

    def blank(self, body: bytes, kind: str, found: list[references.Reference]) -> bytes:
        """``body`` with the same length; stylesheets stay unchanged once a document checks hashes.

        ``found`` are its references.
        """
        if kind not in ("html", "css") or (kind == "css" and self._hashed):
            return body
        text = body.decode("latin-1")
        if kind == "html":
            self._hashed = self._hashed or "integrity=" in text
        text, count = references.blank(text, found, self._recorded)
        self.count += count
        return text.encode("latin-1")

    def _recorded(self, url: str) -> bool:
        key = references.key(url)
        return key in self._keys or (key.endswith("/?") and key.split("/")[2] in self._hosts)


def _rounded(milliseconds: float) -> float:
    return round(min(milliseconds, 3_600_000.0), 3)


def _response(draft: Draft, path: Path, folder: Path, blanker: Blanker) -> dict:
    """Headers, body and sizes of a resource."""
    entry = draft.entry
    content_type = entry.header("content-type")
    charset = har.charset(entry)
    found = draft.markup.found if draft.kind in ("html", "css") else []
    body = har.body_bytes(entry, path)
    recorded = sizes.wire_bytes(entry, body)
    decoded = sizes.decoded_bytes(entry, body)
    _check_sizes(entry, decoded, recorded, path)
    if draft.status == 204 or draft.method == "HEAD":
        body, recorded, decoded = None, 0, 0
    if decoded <= 0:
        decoded = recorded or 0
    synthetic = body is None and (decoded > 0 or bool(recorded))
    lines = [(h.name, h.value) for h in entry.response.headers]
    kept = headers.kept(lines, synthetic=synthetic)
    if not content_type and entry.response.content.mime and "unknown" not in entry.response.content.mime:
        kept.append(("content-type", _one_line(entry.response.content.mime)))
    if draft.target is not None:
        kept = headers.replaced(kept, "location", draft.target.url)
    else:
        kept = headers.replaced(kept, "location", None)
    coding = coding_of(entry.header("content-encoding"))
    if synthetic and recorded and coding == "identity" and recorded < decoded:
        coding = "gzip"  # its header was lost
    digest = None
    if body:
        if draft.kind in _TEXT and not charset and content_type and not body.isascii() and _is_utf8(body):
            kept = headers.replaced(kept, "content-type", f"{content_type}; charset=utf-8")
        body = blanker.blank(body, draft.kind, found)
        wire = encode_near(body, coding, recorded)
        digest = store(folder, wire)
        residual = 0 if recorded is None else len(wire) - recorded
        recorded = len(wire)
    else:
        residual = 0
        recorded = sizes.usual_wire_bytes(draft.kind, decoded) if recorded is None else recorded
    empty = not body and not synthetic
    kept = headers.replaced(kept, "content-encoding", None if coding == "identity" or empty else coding)
    encoded = coding != "identity" and decoded > 0
    return {
        "headers": kept,
        "body": digest,
        "synthetic": synthetic,
        "wire_bytes": recorded,
        "decoded_bytes": decoded,
        "compressibility": round(recorded / decoded, 4) if encoded else None,
        "residual_bytes": residual,
    }


def _check_sizes(entry: har.Entry, decoded: int, recorded: int | None, path: Path) -> None:
    """Raises UsageError for bodies that are larger than wirepaint allows."""
    place = f"{path}: log.entries[{entry.place}]"
    stated = {
        "response.content.size": (decoded, MOST_BODY),
        "response.bodySize": (recorded or 0, MOST_BODY),
        "request.bodySize": (entry.request.body_size, MOST_POST),
    }
    for key, (size, most) in stated.items():
        if size > most:
            raise UsageError(f"{place}.{key}", str(size), f"at most {most} ({most // 2**20} MiB)")


def _is_utf8(body: bytes) -> bool:
    """True for bytes that are UTF-8 text."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


class _Finder:
    """Finds the resource that caused another."""

    def __init__(self, selection: Selection, position: dict[Draft, int]) -> None:
        self._drafts = selection.drafts
        self._aliases = selection.aliases
        self._position = position
        self._base = position[selection.base]
        self._by_url = {d.url: i for i, d in enumerate(self._drafts) if d.method == "GET"}
        self._cause: list[Cause] = []
        self._answers_of: dict[int, list[tuple[float, int]]] = {}
        self._timed = timed(selection)
        self._bodies = selection.base.entry.response.content.recorded
        self._named_in = self._read_bodies() if self._bodies else {}

    def cause(self, index: int) -> Cause:
        """Cause of the draft at ``index``; call it in order of the indices."""
        cause = self._find(index)
        self._cause.append(cause)
        return cause

    def _find(self, index: int) -> Cause:
        draft = self._drafts[index]
        if index == 0:
            return Cause(by=None, kind="navigation")
        if draft.came_from is not None:
            source = self._position[draft.came_from]
            if source < index:
                return Cause(by=source, kind="redirect")
        url, recorded_kind = causes.initiator(draft.entry)
        guessed = not url
        referer = draft.entry.request.header("referer")
        named = self._named_by(index, draft, references.plain(referer)) if guessed else None
        parent = self._parent(references.plain(url or referer), index, draft) if named is None else named
        kind = causes.kind(self._drafts[parent].kind, recorded_kind)
        after = max(0.0, draft.start - self._drafts[parent].end) if self._timed else 0.0
        trigger = None
        if named is None and (guessed or not self._bodies):
            trigger = self._trigger(draft, parent, after)
        if self._answers(index):
            insort(self._answers_of.setdefault(parent, []), (draft.end, index))
        if trigger is not None:
            kind = "script" if self._drafts[trigger].kind == "data" else kind
            parent, after = trigger, draft.start - self._drafts[trigger].end
        most = _GUESSED_MS if guessed and self._bodies else after
        return Cause(by=parent, kind=kind, after_ms=_rounded(min(after, most)))

    def _read_bodies(self) -> dict[str, list[int]]:
        """The documents and stylesheets that name an address, by its key."""
        named: dict[str, list[int]] = {}
        for index, draft in enumerate(self._drafts):
            if draft.kind in ("html", "css") and not draft.target:
                for reference in draft.markup.found:
                    holders = named.setdefault(references.key(reference.url), [])
                    if not holders or holders[-1] != index:
                        holders.append(index)
        return named

    def _named_by(self, index: int, draft: Draft, referer: str) -> int | None:
        """The earlier body that names the address: that of the Referer, else the first document."""
        able = ("html", "css") if draft.kind in ("image", "font", "css") else ("html",)
        holders = self._named_in.get(references.key(draft.url), [])
        holders = [h for h in holders if h < index and self._drafts[h].kind in able]
        sender = self._by_url.get(self._aliases.get(referer, referer))
        if sender in holders:
            return sender
        return min(holders, key=lambda holder: (self._drafts[holder].kind == "css", holder), default=None)

    def _trigger(self, draft: Draft, parent: int, after: float) -> int | None:
        """The answer for which a script or document waited before it asked for ``draft``.

        Recorders name the script that asked, not the answer it waited for. If the same parent had
        asked for a script or data that arrived in between, and this explains most of the time
        since the parent's end, the last such answer is the trigger. Without it the delay would contain
        the time of the recorded network and not vary with the replayed one.
        """
        parent_end, asked = self._drafts[parent].end, self._answers_of.get(parent, [])
        if after < _WAIT_MS or self._drafts[parent].kind not in ("html", "js"):
            return None
        position = bisect_right(asked, (draft.start, len(self._drafts)))
        if position == 0:
            return None
        end, last = asked[position - 1]
        return last if end > parent_end and draft.start - end <= _UNEXPLAINED * after else None

    def _answers(self, index: int) -> bool:
        """True for a script or data with content, asked for without redirect."""
        draft = self._drafts[index]
        content = draft.entry.response.content.size > 0 and draft.status == 200
        return draft.kind in ("js", "data") and content and not draft.target and not draft.came_from

    def _parent(self, url: str, index: int, draft: Draft) -> int:
        """The earlier resource at ``url`` that can cause this one, else the nearest one above it."""
        found = self._by_url.get(self._aliases.get(url, url))
        for _ in range(64):
            if found is None or found >= index:
                break
            candidate = self._drafts[found]
            if candidate.target is not None:
                found = self._position[candidate.target]
                continue
            if (
                candidate.status < 400
                and candidate.status != 204
                and (
                    candidate.kind in ("html", "js")
                    or (candidate.kind == "css" and draft.kind in ("image", "font", "css"))
                )
            ):
                return found
            found = self._cause[found].by
        return self._base if self._base < index else 0
