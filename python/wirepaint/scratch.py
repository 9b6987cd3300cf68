"""A temporary folder that is gone when its maker is, however that ended."""

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
"""A folder is made first and locked then."""

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
"""Reads a number of rounds, or nothing where its maker was killed. A browser that is just being killed makes
its folders again: the folder must stay away for 0.6 s then. After one second nothing may be left."""


@contextmanager
def scratch(*, browser: bool = False) -> Iterator[Path]:
    """A folder of this user alone; ``browser`` says that a browser writes in it, which may still be ending.

    A small guard process removes it when this process ends, also by kill -9. Where the guard was killed
    too, the next call removes it: a folder in use is locked.
    """
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
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


def _sweep() -> None:
    """Removes folders of this user that nobody has locked for a minute."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                found = os.fstat(descriptor)
                if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _LOCKED_WITHIN_S:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left)
            finally:
                os.close(descriptor)
