"""The files of metrics/: what was computed from the runs. A reader computes again what is missing or damaged.

Each is named by the definition of its metrics and by the SHA-256 of its own content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from wirepaint.results import names
from wirepaint.results.contents import Fault

FOLDER = "metrics"


def name(definition: str, content: bytes) -> str:
    """The name of a file."""
    return f"{definition}-{hashlib.sha256(content).hexdigest()[:32]}.parquet"


def files(results: Path, definition: str = "*") -> list[Path]:
    """The files of a definition, or of all; raises UsageError if ``metrics/`` is a symbolic link."""
    return sorted(names.inside(results, FOLDER).glob(f"{definition}-*.parquet"))


def content(path: Path) -> bytes | None:
    """The content of a whole file; None if it is damaged, gone or a symbolic link."""
    try:
        found = b"" if path.is_symlink() else path.read_bytes()
    except OSError:
        return None
    return found if path.name == name(path.name.partition("-")[0], found) else None


def write(results: Path, definition: str, content: bytes) -> Path:
    """Writes a file, whole or not at all; raises OSError where it cannot."""
    folder = names.inside(results, FOLDER)
    folder.mkdir(exist_ok=True)
    path = folder / name(definition, content)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(content)
    return scratch.replace(path)


def faults(results: Path) -> Iterator[Fault]:
    """The damaged files."""
    for path in files(results):
        if content(path) is None:
            yield Fault(path, "damaged", "a damaged file; once it is gone its metrics are computed again")
