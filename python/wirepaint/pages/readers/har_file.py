"""Reads HAR 1.2 of browsers and their tools; bodies may be in files beside it (Playwright)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel

from wirepaint import files
from wirepaint.errors import UsageError
from wirepaint.pages.har import Log
from wirepaint.pages.model import faults_named

MAX_BODIES = 128 * 2**20
"""Bytes of all bodies of a recording in separate files."""

Bodies = Callable[[str, int], bytes | None]
"""The content of the file of this name beside the HAR, of at most N bytes; None if there is none."""


class _Har(BaseModel):
    log: Log


def read(data: bytes, place: str, bodies: Bodies) -> Log:
    """Reads a HAR; ``bodies`` finds the files named in ``content._file``."""
    with faults_named(place):
        log = _Har.model_validate_json(data).log
    room, missing = MAX_BODIES, 0
    for number, entry in enumerate(log.entries):
        content = entry.response.content
        if not content.file or content.text:
            continue
        key = f"{place}: log.entries[{number}].response.content._file"
        if not _plain(content.file):
            raise UsageError(key, repr(content.file[:80]), "the name of a file beside the HAR")
        body = bodies(content.file, room)
        if body is None:
            missing += 1
            continue
        room -= len(body)
        if room < 0:
            raise UsageError(key, "more than that", f"bodies of together {MAX_BODIES // 2**20} MiB")
        content.hold(body)
    if missing:
        log.notes.append(f"{missing} bodies missing beside the HAR")
    return log


def beside(path: Path) -> Bodies:
    """Bodies in files in the folder of the HAR at ``path``."""

    def find(name: str, limit: int) -> bytes | None:
        file = path.parent / name
        if not file.is_file():
            return None
        if not files.real(file).is_relative_to(files.real(path.parent)):
            raise UsageError(str(file), "a link out of its folder", "a file beside the HAR")
        return files.content(file, limit + 1, "a file beside the HAR")

    return find


def _plain(name: str) -> bool:
    """True for a name that stays in its folder."""
    return not (set(name) & set("/\\:\0")) and name not in (".", "..") and files.is_path(name)
