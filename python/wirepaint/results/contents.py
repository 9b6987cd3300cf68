"""The files of a run: digests are computed when the run is stored, and checked when it is read."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import Literal

from wirepaint.errors import UsageError
from wirepaint.results import names

_SMALL = 1 << 20
_ACCEPTED = "the results as they were kept (`wirepaint verify` says what to do)"


@dataclass(frozen=True)
class Fault:
    """A fault of a file or folder of the results; ``found`` describes it."""

    path: Path
    kind: Literal["damaged", "missing", "foreign"]
    found: str

    def error(self) -> UsageError:
        return UsageError(str(self.path), self.found, _ACCEPTED)


def digest(path: Path | str) -> str:
    """Size in bytes and SHA-256 of a file; raises OSError, also if it is no regular file."""
    mode = os.lstat(path).st_mode
    if not S_ISREG(mode):
        raise OSError(errno.EINVAL, "a symbolic link" if S_ISLNK(mode) else "no regular file", str(path))
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        # For a small file, which most are, `file_digest` takes longer to make its buffer than to read.
        digest = hashlib.sha256(file.read()) if size <= _SMALL else hashlib.file_digest(file, "sha256")
        return f"{size} {digest.hexdigest()}"


def record(folder: Path) -> dict[str, str]:
    """Digests of all files below a folder by their relative paths."""
    # Names are joined as text: a Path for each file took as long as its digest.
    found = {name: f"{folder}/{name}" for name in sorted(_listed(folder))}
    return {name: digest(path) for name, path in found.items() if S_ISREG(os.lstat(path).st_mode)}


class Contents:
    """The files of one run that is done. Each is checked once."""

    def __init__(self, folder: Path, digests: Mapping[str, str]) -> None:
        """``digests`` come from the journal; raises UsageError if a name leads out of ``folder``."""
        self.folder = folder
        self.digests = {names.file(name, str(folder)): digest for name, digest in digests.items()}
        self._whole: set[str] = set()
        self._listed = False

    @property
    def files(self) -> list[str]:
        """Relative paths of the run's files."""
        return list(self.digests)

    def path(self, name: str) -> Path | None:
        """Path of an unchanged file of the run; None if the run had no such file.

        Raises UsageError if the file has changed, or if files of the run are missing or added.
        """
        if not self._listed:
            for fault in self._names():
                raise fault.error()
            self._listed = True
        if name not in self.digests:
            return None
        if name not in self._whole:
            if fault := self._damage(name):
                raise fault.error()
            self._whole.add(name)
        return self.folder / name

    def check(self) -> None:
        """Raises UsageError for the first file that has changed."""
        for name in self.digests:
            self.path(name)

    def faults(self) -> Iterator[Fault]:
        """All faults of the run's files."""
        found = list(self._names())
        yield from found
        if any(fault.path == self.folder for fault in found):
            return  # its folder's fault says it of all files
        missing = {fault.path for fault in found}
        for name in self.digests:
            if self.folder / name not in missing and (fault := self._damage(name)):
                yield fault

    def _names(self) -> Iterator[Fault]:
        """Files that are missing or added."""
        if self.folder.is_symlink() or self.folder.parent.is_symlink():
            yield Fault(self.folder, "foreign", "a symbolic link")
            return
        if not self.folder.is_dir():
            yield Fault(self.folder, "missing", "no folder")
            return
        there = set(_listed(self.folder))
        for name in self.digests:
            if name not in there:
                yield Fault(self.folder / name, "missing", "no such file")
        for name in sorted(there - set(self.digests)):
            yield Fault(self.folder / name, "foreign", "a file that the run did not have")

    def _damage(self, name: str) -> Fault | None:
        path = f"{self.folder}/{name}"
        size, _, sha256 = str(self.digests[name]).partition(" ")
        try:
            there = os.lstat(path)
            # A far larger file would take long to read.
            other_size = S_ISREG(there.st_mode) and str(there.st_size) != size
            found = str(there.st_size) if other_size else digest(path)
        except OSError as error:
            return Fault(Path(path), "damaged", str(error.strerror).lower())
        if found == self.digests[name]:
            return None
        now_size, _, now = found.partition(" ")
        said = f"SHA-256 {now[:12]}, not {sha256[:12]}" if now else f"{now_size} bytes, not {size}"
        return Fault(Path(path), "damaged", f"a damaged file ({said})")


def _listed(folder: Path) -> Iterator[str]:
    """Relative paths of all entries that are not folders, including symbolic links."""
    for parent, folders, files in os.walk(folder):
        below = "" if parent == str(folder) else f"{Path(parent).relative_to(folder).as_posix()}/"
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in (*files, *links):
            yield f"{below}{name}"
