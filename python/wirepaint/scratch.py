"""A temporary folder that is gone when its maker is, however that ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "wirepaint-"

_GUARD = """
rounds=20 tries=300
read -r ended && rounds=$ended
while [ $rounds -gt 0 ] && [ $tries -gt 0 ]; do
  tries=$((tries - 1))
  rm -rf -- "$0" 2>/dev/null
  sleep 0.1
  [ -e "$0" ] || rounds=$((rounds - 1))
done
"""
"""Waits for a number of rounds, or until nobody holds the other end of its standard input. A browser that is
just being killed makes its folders again, so they must stay away for 2 s then."""


@contextmanager
def scratch(*, browser: bool = False) -> Iterator[Path]:
    """A folder of this user alone; ``browser`` says that a browser writes in it, which may still be ending.

    A small guard process removes it when this process ends, also by kill -9.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
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
