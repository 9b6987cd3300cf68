"""The names of shared semaphores that workers leave behind when they are killed.

Dask starts each process of a worker with two queues, which have six semaphores in /dev/shm. Python removes
them when the worker ends. If the worker is killed, a small process of Python does so. If that is killed too,
as by `kill -9` of the process group, they stay. So their names say whose they are, and the next worker on
that machine removes those of dead owners.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import suppress
from pathlib import Path

from wirepaint.runners import ownership

_PREFIX = "wirepaint-"
_OPENED_WITHIN_S = 60
"""A new process opens them by name; younger ones stay. Their owner may be in another PID namespace."""


def name_after_owner() -> None:
    """Names the semaphores that this process makes from now on after it."""
    # No public setting of Python has it. Without it they stay unnamed, as those of every Python program.
    config = getattr(multiprocessing.current_process(), "_config", {})
    config["semprefix"] = f"/{_PREFIX}{ownership.identity(os.getpid())}"


def sweep(memory: Path = Path("/dev/shm")) -> None:
    """Removes the semaphores of dead owners."""
    for left in memory.glob(f"sem.{_PREFIX}*"):
        owner = left.name.removeprefix(f"sem.{_PREFIX}").rpartition("-")[0]
        with suppress(OSError):  # gone, or another user's
            if not ownership.is_alive(owner) and time.time() - left.lstat().st_mtime > _OPENED_WITHIN_S:
                left.unlink()
