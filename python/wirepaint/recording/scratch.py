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

from wirepaint.runners.testbed.process import ORDINARY_USER

PREFIX = "wirepaint-record-"

_GUARD = """
rounds=20 tries=300
read -r ended && rounds=2
while [ $rounds -gt 0 ] && [ $tries -gt 0 ]; do
  tries=$((tries - 1))
  rm -rf -- "$0" 2>/dev/null
  sleep 0.1
  [ -e "$0" ] || rounds=$((rounds - 1))
done
"""
"""Waits for a line, or until nobody holds the other end of its standard input. A browser that is
just being killed makes its folders again, so they must stay away for 2 s then."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the browser alone: as root, it belongs to the ordinary user.

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
        if os.geteuid() == 0:
            os.chown(folder, ORDINARY_USER, ORDINARY_USER)
        yield folder
    finally:
        with contextlib.suppress(BrokenPipeError):
            os.write(writer, b"ended\n")
        os.close(writer)
        if guard is not None:
            guard.wait()
        shutil.rmtree(folder, ignore_errors=True)
