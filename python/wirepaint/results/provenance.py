"""The machine and the versions of the programs that made a result."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wirepaint import __version__

_CLOCK_MONOTONIC_COARSE = 6
"""Clock id in linux/time.h: the clock advances with the tick, so its resolution is 1 / HZ."""


def command_line() -> str:
    """The command as the user typed it."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def now() -> str:
    """Wall clock in ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Versions of the programs that every result depends on; a results folder has one version of each."""
    return {
        "wirepaint": __version__,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def host() -> str:
    """The name of this machine."""
    return platform.node() or "localhost"


def machine() -> dict[str, Any]:
    """The machine: name, processor, cores, memory in bytes, tick rate in Hz, clock source."""
    return {
        "host": host(),
        "system": f"{platform.system()} {platform.version()}",
        "processor": _first("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "hz": round(1 / time.clock_getres(_CLOCK_MONOTONIC_COARSE)),
        "clock_source": _text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _first(path: str, key: str) -> str | None:
    for line in (_text(path) or "").splitlines():
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return None
