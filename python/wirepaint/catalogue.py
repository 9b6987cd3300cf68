"""The catalogue: the networks, pages and other files of wirepaint, found by name.

A reference in an evaluation is a name of the catalogue or a path, relative to the file that names it. A
name counts in any case, and by its aliases (catalog/aliases.toml).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BeforeValidator

from wirepaint import files
from wirepaint.errors import UsageError
from wirepaint.reading import located, show
from wirepaint.reading import nearest as nearest_of

ROOT = Path(__file__).parent / "catalog"
_ALIASES = ROOT / "aliases.toml"


@dataclass(frozen=True)
class Kind:
    """A kind of entry: its folder in the catalogue and the suffixes of its files."""

    folder: str
    suffixes: tuple[str, ...]
    path: str


KINDS = {
    "browser": Kind("browsers", (".toml",), "path of a .toml file"),
    "network": Kind("networks", (".toml",), "path of a .toml file"),
    "study": Kind("studies", (".toml",), "path of a .toml file"),
    "capacity trace": Kind(
        "capacity-traces", (".down", ".up", ".trace", ".txt", ".gz"), "path of a trace file"
    ),
}


def names(kind: str) -> list[str]:
    """Names of the shipped entries of the kind, sorted."""
    return sorted({name_of(path) for path in _files(kind)})


def called(kind: str, name: str, known: Iterable[str]) -> str:
    """The one of ``known`` that ``name`` means, in any case or by an alias of the kind; else ``name``."""
    by_key = {_key(each): each for each in known}
    found = by_key.get(_key(name)) or by_key.get(_key(_aliases(kind).get(_key(name), "")))
    return found or name


def meant(kind: str, known: Iterable[str]) -> BeforeValidator:
    """Reads a text of a file as the one of ``known`` that it means."""
    return BeforeValidator(lambda name: called(kind, name, known) if isinstance(name, str) else name)


def nearest(kind: str, name: str, known: Iterable[str]) -> str:
    """``known`` as text, with the name or alias that is most similar to ``name``."""
    known = list(known)
    return nearest_of(name, known, [alias for alias, of in _aliases(kind).items() if of in known])


@cache
def _aliases(kind: str) -> dict[str, str]:
    return tomllib.loads(_ALIASES.read_text("utf-8")).get(kind, {})


def _key(name: str) -> str:
    return name.strip().casefold().replace(" ", "-").replace("_", "-")


def find(kind: str, reference: str, base: Path, place: str = "") -> Path:
    """File of a catalogue name or path; raises UsageError at ``place``."""
    shipped = {name_of(path): path for path in _files(kind)}
    if reference in shipped:
        return shipped[reference]
    about = KINDS[kind]
    path = located(reference, base, place or kind)
    if path.is_file():
        return files.real(path)
    if (meant := called(kind, reference, shipped)) in shipped:
        return shipped[meant]
    accepted = f"{nearest(kind, reference, shipped)}, or the {about.path}"
    raise UsageError(place or kind, show(reference), accepted)


def name_of(path: Path) -> str:
    """Name of a catalogue file: its file name without ``.toml`` or ``.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".toml")


def _files(kind: str) -> list[Path]:
    folder = ROOT / KINDS[kind].folder
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.endswith(KINDS[kind].suffixes))
