"""Finds the files of a static site: those that the page names, that scripts mention, and all others."""

from __future__ import annotations

import mimetypes
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from wirepaint import files
from wirepaint.errors import UsageError
from wirepaint.pages import modules, references
from wirepaint.pages.model import Cause, CauseKind, Kind
from wirepaint.pages.room import MOST_SCRIPT, Room
from wirepaint.pages.usage import by_mime

MAX_BYTES = 256 * 2**20
MAX_FILES = 5_000
MAX_OFFERED = 4_500
"""Limit for files that nothing names: the remaining resources are for requests to other sites."""

_TYPES = {
    "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8", "woff2": "font/woff2",
    "woff": "font/woff", "ttf": "font/ttf", "otf": "font/otf", "webp": "image/webp", "avif": "image/avif",
    "svg": "image/svg+xml", "webmanifest": "application/manifest+json", "wasm": "application/wasm",
    "glb": "model/gltf-binary", "gltf": "model/gltf+json",
}  # fmt: skip
_NEVER_SERVED = {
    "map", "tsx", "mts", "cts", "jsx", "scss", "sass", "less", "styl", "coffee", "md", "markdown", "rst",
    "lock", "tgz", "gz", "br", "zip", "bak", "orig", "log", "sh", "py", "rb", "php", "go", "rs", "c", "h",
    "yml", "yaml", "toml", "ini", "flow", "tsbuildinfo", "nix",
}  # fmt: skip
_NEVER_NAMED = re.compile(
    r"(readme|licen[cs]e|changelog|authors|contributing|notice|makefile|dockerfile|gruntfile|gulpfile)"
    r"(\W.*)?|(package-lock|tsconfig|composer|bower)\.json",
    re.I,
)
_MOST_LIKELY: tuple[Kind, ...] = ("js", "css", "data", "font", "image", "other", "media", "html")
_NAME = re.compile(rb"[\w.~@%+-]+")
_INTEGRITY = re.compile(r"\sintegrity\s*=", re.I)

Standing = Literal["named", "mentioned", "listed"]


@dataclass
class File:
    """One file at one address; ``goes_to`` is the redirect from a folder's address without its slash."""

    url: str
    body: bytes
    mime: str
    kind: Kind
    cause: Cause
    standing: Standing
    goes_to: str | None = None


class Site:
    """The files of a site in the order in which they are found: named files come first."""

    def __init__(self, root: Path, origin: str) -> None:
        self._root, self._origin = files.real(root), origin
        self._bytes = 0
        self._room, self._maps_room, self._scripts_room = Room(), Room(), Room(text=MOST_SCRIPT)
        self._taken: set[Path] = set()
        self._maps = modules.ImportMap()
        self.found: dict[str, File] = {}
        self._number: dict[str, int] = {}
        self.blanked: list[str] = []
        """Addresses of the blanked references."""
        self.beyond = 0
        """Number of files that nothing names and that exceed the limits."""

    def walk(self, start: str) -> None:
        """Finds all files from the document ``start`` on, a path below the root; empty for the index."""
        self._document = f"{self._origin}/{quote(start)}"
        queue = deque([self._take(self._document, Cause(by=None, kind="navigation"))])
        while queue:
            file = queue.popleft()
            if file is not None:
                queue.extend(self._children(file))
            if not queue:
                queue.extend(self._mentioned())
        self._take_listed()

    def _children(self, file: File) -> list[File | None]:
        by, standing = self._number[file.url], file.standing
        if file.goes_to:
            return [self._take(file.goes_to, Cause(by=by, kind="redirect"), standing)]
        if file.kind == "js":
            text = file.body.decode("latin-1")
            text = self._scripts_room.take(text)
            named = modules.in_script(text, file.url, self._document, self._maps)
            return [self._take(url, Cause(by=by, kind="script"), standing) for url in named]
        if file.kind not in ("html", "css"):
            return []
        text = file.body.decode("latin-1")
        if file.kind == "html":
            found = references.in_html(text, file.url, self._room)
        else:
            found = list(references.in_css(text, file.url, self._room))
        kind: CauseKind = "css" if file.kind == "css" else "parser"
        taken = [self._take(r.url, Cause(by=by, kind=kind), standing) for r in found]
        if file.kind == "html":
            named = modules.in_document(text, file.url, self._maps, self._maps_room)
            taken += [self._take(url, Cause(by=by, kind="script"), standing) for url in named]
        if file.kind == "html" or not self._checks_hashes():
            text, _ = references.blank(text, found, self._holds)
            file.body = text.encode("latin-1")
        return taken

    def _holds(self, url: str) -> bool:
        if url not in self.found:
            self.blanked.append(url)
        return url in self.found

    def _checks_hashes(self) -> bool:
        """True if the page's document checks hashes of its parts: those stay unchanged."""
        return bool(_INTEGRITY.search(self.found[self._document].body.decode("latin-1")))

    def _take(self, url: str, cause: Cause, standing: Standing = "named") -> File | None:
        """The file at ``url`` if it is new, of this site and inside its folder."""
        if url in self.found or not url.startswith(self._origin + "/"):
            return None
        path = unquote(urlsplit(url).path, errors="surrogateescape")
        if not files.is_path(path):
            return None
        target = self._root / path.lstrip("/")
        goes_to = None
        if target.is_dir():
            target /= "index.html"
            goes_to = None if path.endswith("/") else f"{self._origin}{urlsplit(url).path}/"
        if not target.is_file() or not files.real(target).is_relative_to(self._root):
            return None
        self._taken.add(target)
        if goes_to is not None:
            return self._add(File(url, b"", "text/html", "html", cause, standing, goes_to))
        self._bytes += target.stat().st_size
        if self._bytes > MAX_BYTES or len(self.found) >= MAX_FILES:
            most = f"at most {MAX_FILES} files of together {MAX_BYTES // 2**20} MiB"
            raise UsageError(str(self._root), "more", most)
        mime = _mime(target)
        body = files.content(target, MAX_BYTES, "a file that can be read")
        return self._add(File(url, body, mime, by_mime(mime, url), cause, standing))

    def _add(self, file: File) -> File:
        self._number[file.url] = len(self.found)
        self.found[file.url] = file
        return file

    def _mentioned(self) -> list[File | None]:
        """Files that scripts may ask for: the text of a file of the page contains their names."""
        names: set[bytes] = set()
        for file in self.found.values():
            if file.kind in ("html", "js"):
                names.update(_NAME.findall(file.body))
        taken: list[File | None] = []
        for target in self._files():
            name = os.fsencode(target.name)
            known = name in names or quote(name).encode() in names
            if known and target not in self._taken and target.suffix not in ("", ".html", ".htm"):
                taken.append(self._take(self._url(target), Cause(by=0, kind="other"), "mentioned"))
        return [file for file in taken if file is not None]

    def _take_listed(self) -> None:
        """Takes all other files that a server would serve, the likeliest kinds first."""
        left = [target for target in self._files() if target not in self._taken and _is_served(target)]
        kinds = {target: by_mime(_mime(target), target.name) for target in left}
        for target in sorted(left, key=lambda target: (_MOST_LIKELY.index(kinds[target]), target)):
            if len(self.found) >= MAX_OFFERED or self._bytes + target.stat().st_size > MAX_BYTES:
                self.beyond += 1
                continue
            self._take(self._url(target), Cause(by=0, kind="other"), "listed")

    def _files(self) -> Iterator[Path]:
        """All files of the folder in order of path, without hidden files and packages."""
        for folder, inner, names in os.walk(self._root):
            inner[:] = sorted(n for n in inner if n[0] != "." and n not in ("node_modules", "__pycache__"))
            yield from (Path(folder, name) for name in sorted(names) if name[0] != ".")

    def _url(self, target: Path) -> str:
        return f"{self._origin}/{quote(bytes(target.relative_to(self._root)))}"


def _mime(target: Path) -> str:
    suffix = target.suffix.lower().lstrip(".")
    return _TYPES.get(suffix) or mimetypes.guess_type(target.name)[0] or "application/octet-stream"


def _is_served(target: Path) -> bool:
    """Whether a file belongs to the site, not to its sources."""
    suffix = target.suffix.lower().lstrip(".")
    if suffix in _NEVER_SERVED or _NEVER_NAMED.fullmatch(target.name) or not target.is_file():
        return False
    if suffix != "ts":
        return True
    with files.opened(
        target, "a file that can be read"
    ) as file:  # MPEG-TS, not TypeScript (ISO/IEC 13818-1: packets of 188 bytes)
        return file.read(189)[::188] == b"GG"
