"""From a folder of a static site to a page archive."""

from __future__ import annotations

import mimetypes
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from wirepaint.errors import UsageError
from wirepaint.pages import references
from wirepaint.pages.codings import encode_near
from wirepaint.pages.import_har import check_target, name_from, replacing, store
from wirepaint.pages.model import Cause, CauseKind, Kind, Page, Recorded, Resource, checked, save_index
from wirepaint.pages.usage import by_mime

MAX_BYTES = 256 * 2**20
MAX_FILES = 5_000

_TYPES = {
    "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8", "woff2": "font/woff2",
    "woff": "font/woff", "ttf": "font/ttf", "otf": "font/otf", "webp": "image/webp", "avif": "image/avif",
    "svg": "image/svg+xml", "webmanifest": "application/manifest+json", "wasm": "application/wasm",
}  # fmt: skip
_COMPRESSED = ("text/", "javascript", "json", "xml")


def import_folder(
    path: Path,
    out: Path,
    *,
    name: str | None = None,
    title: str | None = None,
    source: str | None = None,
    licence: str = "not stated",
    seed: int = 1,
) -> Page:
    """Imports a static site into the page folder ``out``; ``index.html`` is the page.

    Taken are the files that the page refers to, in HTML and CSS, and those whose names its files
    mention. References to anything else are blanked, with a note. Text is served in gzip. ``out``
    must be new, empty or a page folder, which is replaced, and apart from ``path``.
    Raises :class:`UsageError` where there is no index.html or too much.
    """
    path, out = Path(path), Path(out)
    checked(name, seed)
    if not (path / "index.html").is_file():
        raise UsageError(str(path), "no index.html", "the folder of a static site with an index.html")
    check_target(out, path)
    site = _Site(path, f"https://{name_from(path)}.example")
    site.walk()
    with replacing(out) as folder:
        resources = [_resource(number, found, folder) for number, found in enumerate(site.found.values())]
        blanked = f"{site.blanked} references to what the folder does not hold blanked"
        page = Page(
            name=name or name_from(path),
            title=title or name or path.resolve().name,
            summary=f"{len(resources)} files of a static site",
            source=source or path.resolve().name,
            licence=licence,
            recorded=datetime.now(UTC).date().isoformat(),
            url=resources[0].url,
            seed=seed,
            notes=[blanked] if site.blanked else [],
            resources=resources,
        )
        save_index(page, folder)
    return page


@dataclass
class _File:
    url: str
    body: bytes
    mime: str
    kind: Kind
    cause: Cause


class _Site:
    """The files of a site that its page uses, in the order in which they are found."""

    def __init__(self, root: Path, origin: str) -> None:
        self._root, self._origin = root.resolve(), origin
        self._bytes = 0
        self._taken: set[Path] = set()
        self.found: dict[str, _File] = {}
        self.blanked = 0

    def walk(self) -> None:
        queue = deque([self._take(self._origin + "/", Cause(by=None, kind="navigation"))])
        while queue:
            file = queue.popleft()
            if file is not None and file.kind in ("html", "css"):
                queue.extend(self._children(file))
        self._take_mentioned()

    def _children(self, file: _File) -> list[_File | None]:
        text = file.body.decode("latin-1")
        if file.kind == "html":
            found = references.in_html(text, file.url)
        else:
            found = list(references.in_css(text, file.url))
        number = list(self.found).index(file.url)
        kind: CauseKind = "css" if file.kind == "css" else "parser"
        taken = [self._take(r.url, Cause(by=number, kind=kind)) for r in found]
        text, count = references.blank(text, found, lambda url: url in self.found)
        self.blanked += count
        file.body = text.encode("latin-1")
        return taken

    def _take(self, url: str, cause: Cause) -> _File | None:
        """The file at ``url`` when it is new, of this site and inside its folder."""
        if url in self.found or not url.startswith(self._origin + "/"):
            return None
        target = self._root / unquote(urlsplit(url).path).lstrip("/")
        if "\0" in str(target):
            return None
        if target.is_dir():
            target /= "index.html"
        if not target.is_file() or not target.resolve().is_relative_to(self._root):
            return None
        self._bytes += target.stat().st_size
        if self._bytes > MAX_BYTES or len(self.found) >= MAX_FILES:
            most = f"at most {MAX_FILES} files of together {MAX_BYTES // 2**20} MiB"
            raise UsageError(str(self._root), "more", most)
        suffix = target.suffix.lower().lstrip(".")
        mime = _TYPES.get(suffix) or mimetypes.guess_type(target.name)[0] or "application/octet-stream"
        self._taken.add(target)
        file = _File(url, target.read_bytes(), mime, by_mime(mime, url), cause)
        self.found[url] = file
        return file

    def _take_mentioned(self) -> None:
        """Files that scripts may ask for: their names stand in the text of a file of the page."""
        scripts = b"\n".join(f.body for f in self.found.values() if f.kind in ("html", "js"))
        for target in sorted(self._root.rglob("*")):
            mentioned = target.suffix and target.name.encode() in scripts
            if mentioned and target not in self._taken and target.suffix not in (".html", ".htm"):
                path = quote(target.relative_to(self._root).as_posix())
                self._take(f"{self._origin}/{path}", Cause(by=0, kind="other"))


def _resource(number: int, file: _File, folder: Path) -> Resource:
    compressed = any(word in file.mime for word in _COMPRESSED) and len(file.body) > 200
    wire = encode_near(file.body, "gzip" if compressed else "identity", None)
    headers = [("content-type", file.mime), ("cache-control", "max-age=3600")]
    headers += [("content-encoding", "gzip"), ("vary", "accept-encoding")] if compressed else []
    return Resource(
        id=number,
        url=file.url,
        headers=headers,
        body=store(folder, wire) if wire else None,
        type=file.kind,
        wire_bytes=len(wire),
        decoded_bytes=len(file.body),
        compressibility=round(len(wire) / len(file.body), 4) if compressed else None,
        cause=file.cause,
        recorded=Recorded(),
    )
