"""A temporary folder that is removed when its maker ends in any way."""

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
"""Waits for a number of rounds, or until the other end of its standard input is closed. A dying browser
makes its folders again, so then they must stay away for 2 s."""


@contextmanager
def scratch(*, browser: bool = False) -> Iterator[Path]:
    """A folder only for this user; ``browser``: a browser writes in it, and may still run at the end.

    A small guard process removes the folder when this process ends, also by kill -9.
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
