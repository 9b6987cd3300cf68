"""The catalogue: the networks, pages and other files of wirepaint, found by name.

A reference in an evaluation is a name of the catalogue or a path. It is a path if it contains
``/`` or ends in the suffix of its kind; paths are relative to the file that names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wirepaint import files
from wirepaint.errors import UsageError
from wirepaint.reading import located, nearest, show

ROOT = Path(__file__).parent / "catalog"


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


def find(kind: str, reference: str, base: Path, place: str = "") -> Path:
    """File of a catalogue name or path; raises UsageError at ``place``."""
    shipped = {name_of(path): path for path in _files(kind)}
    if reference in shipped:
        return shipped[reference]
    about = KINDS[kind]
    path = located(reference, base, place or kind)
    if path.is_file():
        return files.real(path)
    raise UsageError(place or kind, show(reference), f"{nearest(reference, shipped)}, or the {about.path}")


def name_of(path: Path) -> str:
    """Name of a catalogue file: its file name without ``.toml`` or ``.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".toml")


def _files(kind: str) -> list[Path]:
    folder = ROOT / KINDS[kind].folder
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.endswith(KINDS[kind].suffixes))
