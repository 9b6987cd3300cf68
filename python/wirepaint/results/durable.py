"""Writes files durably and atomically: they are on the disk when the call returns."""

from __future__ import annotations

import os
import re
from pathlib import Path

from wirepaint import linux


def write(path: Path, content: bytes) -> None:
    """Writes a file: after a crash it holds the old content or the new, never a part.

    If ``path`` is a symbolic link, the file replaces it.
    """
    scratch = path.with_name(f".{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(scratch, flags, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Syncs one file or folder (the names in it) to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_filesystem(folder: Path) -> None:
    """Syncs all files of a folder's file system: cheaper than many files one by one."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        linux.sync_filesystem(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Syncs a folder with all files and folders below it."""
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            if file.is_file() and not file.is_symlink():
                sync(file)
        sync(Path(parent))


def of_system(said: str) -> OSError | None:
    """The OSError in a message of a Rust program, ``... (os error 28)``; None without one."""
    found = re.search(r"\(os error (\d+)\)", said)
    if found is None:
        return None
    number = int(found[1])
    return OSError(number, os.strerror(number))
