"""Checks names before they become paths.

A results folder may come from somebody else, and the user who resumes it may be root. Neither a key in its
journal nor a symbolic link may lead out of the folder.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from wirepaint.errors import UsageError, show

LONGEST = 230
"""Bytes. A file name has at most 255, with ``.partial-`` and the number of the attempt."""
_KEY = re.compile(r"[a-z0-9_][a-z0-9._-]*\.v[0-9]{2,}")


def run_key(key: Any, place: str) -> str:
    """``key``; raises UsageError at ``place`` if it is no key of a run."""
    if isinstance(key, str) and len(key) <= LONGEST and _KEY.fullmatch(key):
        return key
    accepted = f"a run key: at most {LONGEST} of a-z, 0-9, '.', '_' and '-', and .v and the visit at its end"
    raise UsageError(place, f"the run key {show(key)}", accepted)


def network(name: Any, place: str) -> str:
    """``name``; raises UsageError at ``place`` if no file of calibration/ can have this name."""
    return _of_calibration(name, "network", place)


def host(name: Any, place: str) -> str:
    """``name``; raises UsageError at ``place`` if no folder of calibration/ can have this name."""
    if name in (".", ".."):
        raise UsageError(place, f"the host {show(name)}", "the name of a host")
    return _of_calibration(name, "host", place)


def _of_calibration(name: Any, what: str, place: str) -> str:
    named = isinstance(name, str) and name != "" and "/" not in name and name.isprintable()
    if named and len(name.encode()) <= LONGEST:
        return name
    accepted = f"a name of at most {LONGEST} bytes without '/' and control characters"
    raise UsageError(place, f"the {what} {show(name)}", accepted)


def file(name: Any, place: str) -> str:
    """``name``; raises UsageError at ``place`` if it leads out of the folder of its run."""
    if isinstance(name, str) and _is_within(name):
        return name
    raise UsageError(place, f"the file {show(name)}", "a path within the folder of the run")


@lru_cache
def _is_within(name: str) -> bool:
    path = PurePosixPath(name)
    within = not path.is_absolute() and ".." not in path.parts and str(path) == name
    return within and name not in ("", ".") and "\0" not in name


def inside(folder: Path, *parts: str) -> Path:
    """``folder`` / ``parts``; raises UsageError if one of the parts is a symbolic link."""
    path = folder
    for part in parts:
        path /= part
        if path.is_symlink():
            raise UsageError(
                str(path), "a symbolic link", "what wirepaint wrote there; a link may lead elsewhere"
            )
    return path
