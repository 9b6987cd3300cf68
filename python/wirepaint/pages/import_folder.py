"""Makes a page archive from the folder of a static site."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from wirepaint import files
from wirepaint.errors import UsageError
from wirepaint.pages.codings import encode_near
from wirepaint.pages.import_har import check_target, made, name_from, store
from wirepaint.pages.model import Page, Recorded, Resource, checked, faults_named, keeping, save_index
from wirepaint.pages.site import File, Site

_MOST_NAMED, _LONGEST = 3, 120
"""Blanked references that the note names, and the characters of each that it shows."""
_COMPRESSED = ("text/", "javascript", "json", "xml", "wasm")


def import_folder(
    path: Path,
    out: Path,
    *,
    name: str | None = None,
    title: str | None = None,
    source: str | None = None,
    licence: str = "not stated",
    seed: int = 1,
    start: str = "index.html",
) -> Page:
    """Imports a static site into the page folder ``out``; the document ``start`` is the page.

    It takes all files of the folder, first those that documents, style sheets and scripts name
    (``Resource.file``). A rehearsal finds which files the page asks for, and drops the others. References
    to files that the folder lacks are blanked, with a note. Text is served in gzip. ``out`` must be
    new, empty or a page folder (it is replaced), and apart from ``path``. Raises
    :class:`UsageError` if there is no such document or too many files are named.
    """
    path, out = Path(path), Path(out)
    checked(name, seed)
    first = PurePosixPath(start)
    inside = not first.is_absolute() and ".." not in first.parts
    if not inside or not (path / first).is_file():
        raise UsageError(str(path), f"no {start}", f"the folder of a static site with {_needed(start)}")
    check_target(out, path)

    def make(folder: Path) -> None:
        _import(path, folder, name=name, title=title, source=source, licence=licence, seed=seed, start=start)

    return made(make, str(path), out)


def _import(
    path: Path,
    folder: Path,
    *,
    name: str | None,
    title: str | None,
    source: str | None,
    licence: str,
    seed: int,
    start: str,
) -> None:
    now = datetime.now(UTC)
    host = re.sub(r"\.{2,}", ".", name_from(path))[:60].rstrip(".")
    site = Site(path, f"https://{host}.example")
    site.walk("" if start == "index.html" else PurePosixPath(start).as_posix())
    with faults_named(str(path)):
        resources = [_resource(number, found, folder) for number, found in enumerate(site.found.values())]
        page = Page(
            name=name or name_from(path),
            title=title or name or files.name(files.real(path)),
            summary=f"{len(resources)} files of a static site",
            source=source or files.name(files.real(path)),
            licence=licence,
            recorded=now.date().isoformat(),
            clock_ms=round(now.timestamp() * 1000),
            url=resources[0].url,
            seed=seed,
            notes=list(_notes(site)),
            resources=resources,
        )
        save_index(page, folder)


def without_unasked(page: Page) -> Page:
    """The rehearsed page without files that were taken only because they are in the folder.

    Files that a document, style sheet or module names stay even if no rehearsal asked for them: another
    view port may need them.
    """
    gone = {r.id for r in page.resources if r.file in ("mentioned", "listed") and r.rehearsed is None}
    if not gone or page.rehearsal is None or page.rehearsal.loads == 0:
        return page
    kept = [resource for resource in page.resources if resource.id not in gone]
    files = f"{len(gone)} file{'s' if len(gone) > 1 else ''}"
    note = f"{files} of the folder that the page does not ask for left out"
    return keeping(page, kept).model_copy(
        update={
            "notes": [*page.notes, note],
            "summary": f"{sum(r.file is not None for r in kept)} files of a static site",
        }
    )


def _needed(start: str) -> str:
    return "an index.html" if start == "index.html" else f"{start}, a path below it"


def _notes(site: Site) -> list[str]:
    notes = []
    if site.blanked:
        count = "1 reference" if len(site.blanked) == 1 else f"{len(site.blanked)} references"
        named = [
            url if len(url) <= _LONGEST else f"{url[:_LONGEST]}..." for url in dict.fromkeys(site.blanked)
        ]
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        first = ", ".join(named[:_MOST_NAMED])
        notes.append(f"{count} to what the folder does not hold blanked: {first}{more}")
    if site.beyond:
        notes.append(f"{site.beyond} files that nothing names left out: the folder holds too many")
    return notes


def _resource(number: int, file: File, folder: Path) -> Resource:
    if file.goes_to:
        return Resource(
            id=number,
            url=file.url,
            status=301,
            headers=[("location", file.goes_to)],
            type=file.kind,
            wire_bytes=0,
            decoded_bytes=0,
            cause=file.cause,
            file=file.standing,
        )
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
        file=file.standing,
    )
