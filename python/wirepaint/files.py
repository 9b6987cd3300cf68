"""Reads files from others: only regular ones, opened without waiting, up to a limit.

A path in an evaluation or a page may name a device, a pipe without a writer or an endless file of ``/proc``.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO

from wirepaint.errors import UsageError

_LONGEST_PATH, _LONGEST_NAME = 2_000, 255
"""Bytes of a path and of each of its parts; Linux takes 4,096, with the folder that it is relative to."""


def opened(path: Path, accepted: str, place: str = "") -> IO[bytes]:
    """Opens a regular file; raises :class:`UsageError` at ``place`` (default: the path) for others."""
    place = place or str(path)
    try:
        # Checked before it is opened: opening a device may have side effects.
        _check(path.stat().st_mode, place, accepted)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError):
            accepted = "a file that this user may read"
        raise UsageError(place, _why(error), accepted) from None
    file = os.fdopen(descriptor, "rb")
    try:
        _check(os.fstat(descriptor).st_mode, place, accepted)
    except UsageError:
        file.close()
        raise
    return file


def content(path: Path, most: int, accepted: str, place: str = "") -> bytes:
    """The content of a regular file of at most ``most`` bytes; raises as :func:`opened`."""
    place = place or str(path)
    with opened(path, accepted, place) as file:
        try:
            data = file.read(most + 1) or b""
        except OSError as error:
            raise UsageError(place, _why(error), accepted) from None
    if len(data) > most:
        raise UsageError(place, f"more than {most} bytes", accepted)
    return data


def hashed(path: Path, most: int, accepted: str) -> tuple[bytes, int]:
    """SHA-256 and size of a regular file of at most ``most`` bytes; raises as :func:`opened`."""
    digest, size = hashlib.sha256(), 0
    with opened(path, accepted) as file:
        try:
            while size <= most and (block := file.read(2**20)):
                digest.update(block)
                size += len(block)
        except OSError as error:
            raise UsageError(str(path), _why(error), accepted) from None
    if size > most:
        raise UsageError(str(path), f"more than {most} bytes", accepted)
    return digest.digest(), size


def text(path: Path, most: int, accepted: str, place: str = "") -> str:
    """The content of a UTF-8 file; raises as :func:`content`, also for other encodings."""
    try:
        return content(path, most, accepted, place).decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"bytes that are not UTF-8 at byte {error.start}"
        raise UsageError(place or str(path), found, accepted) from None


def real(path: Path) -> Path:
    """The absolute path without symbolic links; for a circle of links, one of them."""
    return Path(os.path.realpath(path))


def name(path: Path) -> str:
    """Name of a file as text, with any bytes."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def is_path(text: str) -> bool:
    """False for a text that cannot be a path."""
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        return False
    longest = max(map(len, encoded.split(b"/")))
    return b"\0" not in encoded and len(encoded) <= _LONGEST_PATH and longest <= _LONGEST_NAME


def _check(mode: int, place: str, accepted: str) -> None:
    if not S_ISREG(mode):
        raise UsageError(place, "a folder" if S_ISDIR(mode) else "no regular file", accepted)


def _why(error: OSError | ValueError) -> str:
    return str(error.strerror).lower() if isinstance(error, OSError) else str(error)
