"""The browser's processes from /proc: their tree, CPU time, state and sandbox."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
STOPPED = {"T", "t"}
LOOK_S = 0.02
SEARCH_S = 0.25
SAMPLE_S = 0.05
SECCOMP_FILTER = "2"  # value of Seccomp in /proc/PID/status while a filter is in force


@dataclass(frozen=True)
class Process:
    """One process at one moment."""

    pid: int
    parent: int
    cpu_s: float
    """CPU time of the process and of the children that it has waited for."""


def tree(root: int) -> list[Process]:
    """``root`` and all its descendants."""
    processes = {process.pid: process for entry in Path("/proc").iterdir() if (process := _read(entry))}
    found = [processes[root]] if root in processes else []
    for process in found:
        found += [child for child in processes.values() if child.parent == process.pid]
    return found


class StopWatch:
    """Finds out whether ``root`` or a descendant is stopped, and their CPU time, by polling (``look``)."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._pids: list[int] = []
        self._searched = self._looked = time.monotonic()
        self.stopped_s = 0.0
        """How long one of them was stopped."""
        self.cpu_samples: list[tuple[float, float]] = []
        """CLOCK_MONOTONIC and their CPU seconds so far, at most once per ``SAMPLE_S``."""

    def look(self) -> None:
        """Polls their states, at most once per ``LOOK_S``."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return
        if not self._pids or now - self._searched > SEARCH_S:
            self._pids, self._searched = [process.pid for process in tree(self._root)], now
        found = [stat for pid in self._pids if (stat := _stat(pid))]
        if any(stat[0] in STOPPED for stat in found):
            self.stopped_s += now - self._looked
        self._looked = now
        if not self.cpu_samples or now - self.cpu_samples[-1][0] >= SAMPLE_S:
            self.cpu_samples.append((now, sum(map(_cpu_s, found))))


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the command's name, the state first; empty if the process has ended."""
    try:
        # The name is in parentheses and may hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_s(stat: list[str]) -> float:
    """CPU seconds of a process and of the children that it has waited for."""
    return sum(map(int, stat[11:15])) / TICKS


def cpu(root: int) -> float:
    """CPU seconds that ``root`` and its descendants have used so far."""
    return sum(process.cpu_s for process in tree(root))


def kill(root: int) -> None:
    """Ends ``root`` and its descendants at once."""
    for process in tree(root):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)


def unconfined(root: int) -> str | None:
    """None if the pages of browser ``root`` run in its sandbox, else the missing part.

    A renderer is confined if it has a system call filter and a user namespace of its own.
    """
    seen = False
    for process in tree(root):
        entry = Path(f"/proc/{process.pid}")
        try:
            if b"--type=renderer" not in (entry / "cmdline").read_bytes():
                continue
            status = (entry / "status").read_text()
            own = (entry / "ns/user").readlink() != Path("/proc/self/ns/user").readlink()
        except OSError:
            continue
        seen = True
        filtered = any(line.split() == ["Seccomp:", SECCOMP_FILTER] for line in status.splitlines())
        if not filtered or not own:
            missing = "a system call filter" if own else "a user namespace of its own"
            return f"a renderer without {missing}"
    return None if seen else "no renderer found"


def _read(entry: Path) -> Process | None:
    if not entry.name.isdigit():
        return None
    stat = _stat(int(entry.name))
    return Process(int(entry.name), int(stat[1]), _cpu_s(stat)) if stat else None
