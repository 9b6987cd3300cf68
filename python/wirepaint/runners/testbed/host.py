"""The machine during a run: CPU time by part, stolen time, time that tasks waited.

The counters are the kernel's: /proc/stat for the machine, /proc/PID/stat for processes,
/proc/pressure/cpu for waiting. In a PID namespace too, /proc/stat covers the whole machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirepaint.runners.testbed import cells
from wirepaint.runners.testbed.browser import processes

USER, NICE, SYSTEM, STEAL = 0, 1, 2, 7  # fields of the line "cpu" of /proc/stat


@dataclass(frozen=True)
class Sample:
    """Counters of the machine at one moment, in seconds."""

    time: float
    tasks: float
    """CPU time of all tasks, without interrupts."""
    steal: float
    waiting: float | None
    """Time in which some task waited for a CPU; None if the kernel does not report it."""

    @classmethod
    def take(cls) -> Sample:
        """Reads the counters."""
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        ticks = [int(field) / processes.TICKS for field in fields]
        return cls(time.monotonic(), ticks[USER] + ticks[NICE] + ticks[SYSTEM], ticks[STEAL], _waiting())


@dataclass(frozen=True)
class Counters:
    """What happened on the machine between start and stop of a witness, in seconds."""

    duration: float
    cores: int
    parts: Mapping[str, float]
    """CPU time of each named part."""
    browser: float
    controller: float
    tasks: float
    steal: float
    pressure: float | None
    browser_stopped: float = 0.0
    """Time in which a process of the browser was stopped."""
    others: tuple[tuple[str, float], ...] = ()
    """Names and CPU time of the processes that are not part of the run and used most."""

    @property
    def total(self) -> float:
        """CPU time that the machine had."""
        return self.duration * self.cores

    @property
    def foreign(self) -> float:
        """CPU time of tasks that are not part of the run."""
        return max(0.0, self.tasks - sum(self.parts.values()) - self.browser - self.controller)

    def row(self, emulator: Mapping[str, Any]) -> dict[str, Any]:
        """Row of the table ``host``; ``emulator`` is the emulator's summary."""
        lateness = emulator.get("lateness") or {}
        return {
            "cpu_browser": self.browser,
            "cpu_server": self.parts.get("server"),
            "cpu_emulator": self.parts.get("emulator"),
            "cpu_foreign": self.foreign,
            "cpu_total": self.total,
            "steal": self.steal,
            "pressure": self.pressure,
            "lateness_p50": lateness.get("p50"),
            "lateness_p99": lateness.get("p99"),
            "lateness_max": lateness.get("max"),
        }


class Witness:
    """Watches the machine from construction, or the last ``begin``, until ``stop``."""

    def __init__(self, pids: Mapping[str, int], visits_cpu_s: Callable[[], float] = lambda: 0.0) -> None:
        """``visits_cpu_s`` gives the CPU time so far of the processes of visits, browsers included."""
        self._pids, self._visits_cpu_s = dict(pids), visits_cpu_s
        cells.watch_others()
        self.begin()

    def begin(self) -> None:
        """Starts over."""
        self._visits = self._visits_cpu_s()
        self._parts = {name: processes.cpu(pid) for name, pid in self._pids.items()}
        self._own = time.process_time()
        self._before = Sample.take()

    def stop(self, browser_cpu_s: float = 0.0, browser_stopped_s: float = 0.0) -> Counters:
        """The counters since the start. The parts must still run; the visits give the browsers' counters."""
        before, after = self._before, Sample.take()
        duration = after.time - before.time
        pressure = None
        if before.waiting is not None and after.waiting is not None:
            pressure = (after.waiting - before.waiting) / duration
        of_visits = self._visits_cpu_s() - self._visits
        return Counters(
            duration=duration,
            cores=os.cpu_count() or 1,
            parts={name: processes.cpu(pid) - self._parts[name] for name, pid in self._pids.items()},
            browser=browser_cpu_s,
            controller=time.process_time() - self._own + max(of_visits - browser_cpu_s, 0.0),
            tasks=after.tasks - before.tasks,
            steal=after.steal - before.steal,
            pressure=pressure,
            browser_stopped=browser_stopped_s,
            others=tuple(cells.others()),
        )


def _waiting() -> float | None:
    """Seconds since boot in which some task waited for a CPU ("some ... total=MICROSECONDS")."""
    try:
        some = Path("/proc/pressure/cpu").read_text().split("\n", 1)[0]
    except OSError:
        return None
    return int(some.rpartition("total=")[2]) / 1e6
