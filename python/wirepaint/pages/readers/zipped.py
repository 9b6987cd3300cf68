"""Reads zip files: a HAR with its bodies (Playwright), or a web archive (WACZ)."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from wirepaint.errors import UsageError
from wirepaint.pages.har import Log
from wirepaint.pages.readers import har_file, json_text, wacz
from wirepaint.pages.readers.source import Source

ACCEPTED = "a zip that holds one HAR (Playwright's .har.zip), or a WACZ"
_MAX_INDEX = 16 * 2**20
_TAIL = 2**16 + 200


def is_zip(file: IO[bytes], place: str) -> bool:
    """True for a file that begins like a zip; leaves it at its start."""
    try:
        head = file.read(4)
        file.seek(0)
    except OSError as error:
        raise UsageError(place, f"a file that cannot be read ({error.strerror})", "a recording") from None
    return head in (b"PK\x03\x04", b"PK\x05\x06")


def read(file: IO[bytes], path: Path, page: str | None) -> Log:
    """Reads the recording in a zip; ``page`` as in :func:`wirepaint.pages.readers.read`."""
    _check_index(file, str(path))
    try:
        archive = ZipFile(file)
    except (BadZipFile, OSError, ValueError, NotImplementedError, OverflowError) as error:
        raise UsageError(str(path), f"a broken zip ({error})", ACCEPTED) from None
    with archive:
        members = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        if wacz.is_wacz(members):
            return wacz.read(members, lambda info, limit: _open(archive, info, path, limit), page)
        return _read_har(members, archive, path)


def _read_har(members: dict[str, ZipInfo], archive: ZipFile, path: Path) -> Log:
    hars = ["har.har"] if "har.har" in members else [name for name in members if name.endswith(".har")]
    if len(hars) != 1:
        listed = ", ".join(hars[:5]) or ", ".join(list(members)[:5]) or "no file"
        raise UsageError(str(path), f"a zip of {listed[:200]!r}", ACCEPTED)
    folder = hars[0].rpartition("/")[0]
    source = _open(archive, members[hars[0]], path, json_text.MAX_BYTES)

    def beside(name: str, limit: int) -> bytes | None:
        info = members.get(f"{folder}/{name}" if folder else name)
        return None if info is None else _open(archive, info, path, limit, unpack=False).read(limit + 1)

    return har_file.read(json_text.read(source), source.place, beside)


def _open(archive: ZipFile, info: ZipInfo, path: Path, limit: int, *, unpack: bool = True) -> Source:
    place = f"{path}: {info.filename[:100]!r}"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or info.flag_bits & 1:
        raise UsageError(place, "encrypted, or packed in an unusual way", "a member stored or deflated")
    try:
        member = archive.open(info)
    except (BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError, zlib.error) as error:
        raise UsageError(place, f"a broken member ({error})", ACCEPTED) from None
    return Source(member, place, limit, f"a whole member of at most {limit // 2**20} MiB", unpack=unpack)


def _check_index(file: IO[bytes], place: str) -> None:
    """Refuses an index that is larger than any recording's; leaves the file at its start."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    end, large = tail.rfind(b"PK\x05\x06"), tail.rfind(b"PK\x06\x06")
    found = int.from_bytes(tail[end + 12 : end + 16], "little") if end >= 0 else 0
    if large >= 0:
        found = int.from_bytes(tail[large + 40 : large + 48], "little")
    if min(found, size) > _MAX_INDEX:
        raise UsageError(place, "a zip of too many files", ACCEPTED)
    file.seek(0)
