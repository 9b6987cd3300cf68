"""Resolves the pages of an evaluation to page folders in wirepaint's own format."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from wirepaint import catalogue, files
from wirepaint.errors import UsageError
from wirepaint.pages.model import DESKTOP, INDEX, Page, parsed, read_index
from wirepaint.printing import counted
from wirepaint.reading import located, nearest, show

_MOST_FILES, _MOST_BYTES = 50_000, 2**30
_ACCEPTED = (
    f"a recording or site of at most {_MOST_BYTES // 2**20} MiB in {_MOST_FILES:,} files "
    "(`wirepaint page import` takes more)"
)

Importer = Callable[[Path, Path], object]
"""Imports the page at the first path into the folder at the second path, atomically."""


class PageRef(BaseModel):
    """A page: ``folder`` holds page.json, ``sha256`` is the hash of page.json."""

    model_config = ConfigDict(frozen=True)

    name: str
    folder: Path
    sha256: str
    plain: bool = False
    """True if some of its requests use plain http."""
    hosts: tuple[str, ...] = ()
    """Names of the hosts of its requests."""
    viewport: tuple[int, int] = DESKTOP
    """Default view port in CSS pixels."""
    by_https: PageRef | None = None
    """The https version for HTTP/2, if some of its requests use plain http."""
    cannot_count: str | None = None
    """Why no visit of it can count, according to its rehearsals."""
    rehearsal: dict[str, Any] | None = None
    """Verdict, browser, the simulator's error, the CPU time of others, recorded requests; None if there is
    none."""
    said: str | None = None
    """What `page import` says of a page that the evaluation itself imports."""
    contents: str | None = None
    """SHA-256 of what its servers answer: the same, however often the page is rehearsed."""


def of_folder(folder: Path) -> PageRef:
    """The page in a folder in wirepaint's own format."""
    from wirepaint.pages import secure

    index = read_index(folder)
    digest = hashlib.sha256(index).hexdigest()
    page = parsed(index, folder / INDEX)
    found = page.rehearsal
    why = found.reason if found is not None and found.verdict == "does not" else None
    plain = secure.is_plain(page)
    kept = {"verdict", "reason", "left_out", "error", "judged", "browser", "unstable_share", "others_cpu"}
    return PageRef(
        name=page.name,
        folder=folder,
        sha256=digest,
        plain=plain,
        hosts=tuple(sorted({(urlsplit(one.url).hostname or "").lower() for one in page.resources})),
        viewport=page.usual_viewport,
        cannot_count=why,
        rehearsal=found.model_dump(include=kept) | {"requests": _recorded(page)} if found else None,
        contents=_contents(page),
    )


def _recorded(page: Page) -> int:
    """Number of recorded requests: those of which ``left_out`` were asked for in no rehearsal."""
    return sum(not resource.stand_in and resource.file is None for resource in page.resources)


def _contents(page: Page) -> str:
    digest = hashlib.sha256(page.url.encode())
    answers = {"method", "url", "status", "headers", "body", "wire_bytes", "decoded_bytes"}
    for resource in page.resources:
        if not resource.stand_in:
            digest.update(resource.model_dump_json(include=answers).encode())
    return digest.hexdigest()


def find(reference: str, base: Path, place: str) -> Path:
    """The path of a catalogue name, a page folder, a recording or a static site.

    Raises UsageError at ``place``.
    """
    from wirepaint import pages

    shipped = pages.shipped()
    if reference in shipped:
        return Path(shipped[reference])
    if "://" in reference:
        accepted = "a page on this machine; `wirepaint page record URL -o PAGE` makes one of an address"
        raise UsageError(place, show(reference), accepted)
    path = files.real(located(reference, base, place))
    if path.is_file() or (path / INDEX).is_file() or (path / "index.html").is_file():
        return path
    if (meant := catalogue.called("page", reference, shipped)) in shipped:
        return Path(shipped[meant])
    if path.is_dir():
        raise UsageError(place, show(reference), f"a folder with {INDEX} or index.html")
    accepted = f"{nearest(reference, shipped)}, or the path of a page, a HAR or a folder"
    raise UsageError(place, show(reference), accepted)


def shipped_name(folder: Path) -> str | None:
    """The name of a page of the catalogue; None for any other place."""
    from wirepaint import pages

    return next((name for name, shipped in pages.shipped().items() if Path(shipped) == folder), None)


def name_of(reference: str) -> str:
    """A name for the page of a reference, from its file name, without reading it."""
    from wirepaint.pages.import_har import name_from

    return name_from(Path(reference))


def resolve(reference: str, base: Path, place: str) -> PageRef:
    """The page at the place that :func:`find` gives.

    A recording or site is imported once into the cache, under the hash of its content.
    """
    from wirepaint import pages

    path = find(reference, base, place)
    if (path / INDEX).is_file():
        return of_folder(path)
    folder = _imported(path, pages.import_har if path.is_file() else pages.import_folder)
    return of_folder(folder).model_copy(update={"said": _said(pages.load(folder))})


def _said(page: Page) -> str | None:
    if not page.notes:
        return None
    requests = sum(not resource.stand_in for resource in page.resources)
    return f"{page.name}, imported: {counted(requests, 'request')}; {'; '.join(page.notes)}"


def _imported(path: Path, importer: Importer) -> Path:
    """Folder in the cache with the page imported from ``path``."""
    from wirepaint import pages

    folder = pages.cache_dir().parent / "imported" / _digest(path)
    if not (folder / INDEX).is_file():
        importer(path, folder)
    return folder


def _digest(path: Path) -> str:
    """Hash of the path, of the content of the file or folder, and of the importer itself."""
    from wirepaint import pages

    importer = sorted(Path(pages.__file__).parent.rglob("*.py"))
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape"))
    left = _MOST_BYTES
    for file in [*importer, *_source(path)]:
        digest.update(f"\0{file}\0".encode("utf-8", "surrogateescape"))
        content, size = files.hashed(file, left, _ACCEPTED)
        left -= size
        digest.update(content)
    return digest.hexdigest()[:32]


def _source(path: Path) -> list[Path]:
    """The file, or all files below the folder, without following links."""
    if path.is_file():
        return [path]
    found: list[Path] = []
    for folder, _, names in os.walk(path):
        found += (file for name in names if (file := Path(folder, name)).is_file() and not file.is_symlink())
        if len(found) > _MOST_FILES:
            raise UsageError(str(path), "more than that", _ACCEPTED)
    return sorted(found)
