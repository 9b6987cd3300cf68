"""A temporary folder that is removed when its maker ends in any way."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "wirepaint-scratch-"

_LOCKED_WITHIN_S = 60
"""A folder is locked after it is made; younger ones may not be locked yet."""

_GUARD = """
rounds=6 tries=300
read -r ended && rounds=$ended
while [ $rounds -gt 0 ] && [ $tries -gt 0 ]; do
  tries=$((tries - 1))
  rm -rf -- "$0" 2>/dev/null
  sleep 0.1
  [ -e "$0" ] || rounds=$((rounds - 1))
done
"""
"""Reads a number of rounds, or nothing if its maker was killed. A dying browser makes its folders again, so
then the folder must stay away for 0.6 s. After one second nothing may be left."""


@contextmanager
def scratch(*, browser: bool = False, within: Path | None = None) -> Iterator[Path]:
    """A folder only for this user; ``browser``: a browser writes in it, and may still run at the end.

    It is made ``within`` a folder, that of temporary files by default.

    A small guard process removes the folder when this process ends, also by kill -9. If the guard was killed
    too, the next call removes the folder: a folder in use is locked.
    """
    within = within or Path(tempfile.gettempdir())
    _sweep(within)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    reader, writer = os.pipe()
    guard = None
    try:
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, folder],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        os.close(reader)
        yield folder
    finally:
        with contextlib.suppress(BrokenPipeError):
            os.write(writer, b"2\n" if browser else b"0\n")
        os.close(writer)
        if guard is not None:
            guard.wait()
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _sweep(within: Path) -> None:
    """Removes folders of this user that nobody has locked for a minute."""
    for left in within.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                found = os.fstat(descriptor)
                if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _LOCKED_WITHIN_S:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left)
            finally:
                os.close(descriptor)
