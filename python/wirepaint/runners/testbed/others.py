"""Which processes of the machine, other than the run's own, used the CPU."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

TICKS = os.sysconf("SC_CLK_TCK")
MOST = 3
"""Names that are given."""
LEAST_S = 0.02
"""Seconds of CPU time below which a process is not named: two ticks."""


@dataclass(frozen=True)
class Process:
    """A process at one moment."""

    name: str
    parent: int
    cpu_s: float
    """Of the process and of the children that it has waited for."""


class Others:
    """Watches the processes of the whole machine, from construction on.

    ``proc`` is a descriptor of a /proc that shows them all. ``root`` and its descendants are the run's own.
    """

    def __init__(self, proc: int, root: int) -> None:
        self._proc, self._root = proc, root
        self._before = processes(proc, root)

    def most(self) -> list[tuple[str, float]]:
        """Names and CPU seconds of those that used most, processes of one name together."""
        after = processes(self._proc, self._root)
        used: defaultdict[str, float] = defaultdict(float)
        for pid, now in after.items():
            before = self._before.get(pid)
            used[now.name] += now.cpu_s - (before.cpu_s if before else 0.0)
        for pid, gone in self._before.items():
            if pid in after:
                continue
            # The next ancestor that lives has its whole time now, by waiting.
            heir = gone.parent
            while heir not in after and heir in self._before:
                heir = self._before[heir].parent
            if heir in after:
                used[after[heir].name] -= gone.cpu_s
        named = sorted(used.items(), key=lambda each: -each[1])
        return [(name, seconds) for name, seconds in named[:MOST] if seconds >= LEAST_S]


def processes(proc: int, root: int) -> dict[int, Process]:
    """All processes by pid, without ``root`` and its descendants."""
    every = dict(_read(proc))
    own = {root}
    while more := {pid for pid, each in every.items() if each.parent in own and pid not in own}:
        own |= more
    return {pid: each for pid, each in every.items() if pid not in own}


def _read(proc: int) -> Iterator[tuple[int, Process]]:
    for pid in filter(str.isdecimal, os.listdir(proc)):
        with suppress(OSError, ValueError, IndexError):
            stat = os.open(f"{pid}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
            with os.fdopen(stat, errors="replace") as file:
                # The name is in parentheses and may hold spaces and parentheses.
                head, _, tail = file.read().rpartition(")")
            fields = tail.split()
            name = head.partition("(")[2]
            yield int(pid), Process(name, int(fields[1]), sum(map(int, fields[11:15])) / TICKS)
