"""From what an evaluation says of a page to the folder of a page in wirepaint's own format."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from wirepaint import __version__
from wirepaint.errors import UsageError
from wirepaint.evaluation.congestion import slug
from wirepaint.evaluation.reading import nearest, show

Importer = Callable[[Path, Path], object]


class PageRef(BaseModel):
    """A page: ``folder`` holds page.json, ``sha256`` is the hash of page.json."""

    model_config = ConfigDict(frozen=True)

    name: str
    folder: Path
    sha256: str


def cache() -> Path:
    """Folder for what can be made again: ``$XDG_CACHE_HOME/wirepaint``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(root) / "wirepaint"


def resolve(reference: str, base: Path, place: str) -> PageRef:
    """The page of a catalogue name, a page folder, a HAR or a static site; raises UsageError at ``place``.

    A HAR or site is imported once into the cache, under the hash of its content.
    """
    from wirepaint import pages

    shipped = pages.shipped()
    if reference in shipped:
        return _reference(reference, Path(shipped[reference]))
    path = (base / Path(reference).expanduser()).resolve()
    if (path / "page.json").is_file():
        return _reference(slug(path.name), path)
    if path.is_dir() or path.is_file():
        importer = pages.import_folder if path.is_dir() else pages.import_har
        return _reference(_stem(path), _imported(path, importer))
    raise UsageError(
        place, show(reference), f"{nearest(reference, shipped)}, or the path of a page, a HAR or a folder"
    )


def _reference(name: str, folder: Path) -> PageRef:
    digest = hashlib.sha256((folder / "page.json").read_bytes()).hexdigest()
    return PageRef(name=name, folder=folder, sha256=digest)


def _stem(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".har"):
        name = name.removesuffix(suffix)
    return slug(name) or "page"


def _imported(path: Path, importer: Importer) -> Path:
    """Folder in the cache with the page imported from ``path``; complete or absent, never partial."""
    folder = cache() / "imported" / f"{_stem(path)}-{_digest(path)}"
    if (folder / "page.json").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".import-", dir=folder.parent))
    try:
        importer(path, scratch / "page")
        with contextlib.suppress(FileExistsError, OSError):
            (scratch / "page").rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _digest(path: Path) -> str:
    """Hash of a file or of all files below a folder, and of the importer's version."""
    digest = hashlib.sha256(__version__.encode())
    for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(str(file.relative_to(path)).encode() + b"\0")
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16]
