"""Progress of the runs on stderr: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as RichProgress

from wirepaint.evaluation import ResolvedRun
from wirepaint.printing import counted
from wirepaint.runners.contract import Progress

_PARTS = 10
"""A line after each such part of the runs."""
_QUIET_S = 30
"""A line after so long at most."""
_LEAST_LEFT_S = 10
"""A shorter time left is over before it is read, and its rounding would exceed it."""


def on_stderr() -> Progress:
    """The form of progress that suits stderr: a bar on a terminal, lines elsewhere."""
    plain = not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb"
    return Lines() if plain else Bar()


def time_left(seconds: float) -> str:
    """``40 s left``; empty below 10 s and for NaN."""
    return f"{duration(seconds)} left" if seconds >= _LEAST_LEFT_S else ""


def duration(seconds: float) -> str:
    """A time span in words, coarse: ``40 s``, ``3 min``, ``2 h 10 min``."""
    if seconds < 90:
        return f"{max(5 * math.ceil(seconds / 5), 5)} s" if seconds > 0 else "0 s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Lines:
    """A line after each tenth of the runs and after 30 s without one; problems have lines of their own.

    A line counts the results of this command.
    """

    def __init__(self) -> None:
        self._workers = ""

    def began(self, title: str, total: int, done: int) -> None:
        self._total, self._done = total, done
        self._results: Counter[str] = Counter()
        self._said = time.monotonic()
        self.note(f"{title}: {total} runs" + (f", {done} of them done" if done else ""))

    def calibrating(self, network: str) -> None:
        self.note(f"measuring the network {network}")

    def running(self, run: ResolvedRun, attempt: int) -> None:
        pass

    def workers(self, number: int) -> None:
        self._workers = counted(number, "worker")

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def finished(self, run: ResolvedRun, result: str, seconds_left: float) -> None:
        self._done += 1
        self._results[re.split("[:,]", result)[0]] += 1
        last = self._done == self._total
        is_part = self._done * _PARTS // self._total > (self._done - 1) * _PARTS // self._total
        if not is_part and time.monotonic() < self._said + _QUIET_S:
            return
        self._said = time.monotonic()
        results = [f"{number} {name}" for name, number in self._results.items()]
        parts = [*results, "" if last else time_left(seconds_left), self._workers]
        self.note(f"[{self._done}/{self._total}] {', '.join(filter(None, parts))}")

    def close(self) -> None:
        pass


class Silent(Lines):
    """Only lines on problems."""

    def began(self, title: str, total: int, done: int) -> None:
        pass

    def calibrating(self, network: str) -> None:
        pass

    def finished(self, run: ResolvedRun, result: str, seconds_left: float) -> None:
        pass


class Bar:
    """A bar, and above it a line for each run with a problem.

    Events redraw it, not a thread: the testbed forks.
    """

    def __init__(self) -> None:
        self._bar = RichProgress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("[dim]{task.description}"),
            console=Console(stderr=True, highlight=False),
            auto_refresh=False,
            transient=True,
        )

    def began(self, title: str, total: int, done: int) -> None:
        self._bar.console.print(title, style="bold", markup=False)
        self._workers, self._drawn = "", 0.0
        self._task = self._bar.add_task("", total=total, completed=done, left="")
        self._bar.start()

    def calibrating(self, network: str) -> None:
        self._bar.update(self._task, description=f"measuring the network {network}", refresh=True)

    def running(self, run: ResolvedRun, attempt: int) -> None:
        again = f", attempt {attempt}" if attempt > 1 else ""
        visit = "warm-up" if run.warmup else f"visit {run.visit}"
        self._bar.update(self._task, description=f"{run.scenario} · {run.page_name} · {visit}{again}")
        self._draw()

    def workers(self, number: int) -> None:
        self._workers = counted(number, "worker")

    def note(self, text: str) -> None:
        self._bar.console.print(text, markup=False)

    def finished(self, run: ResolvedRun, result: str, seconds_left: float) -> None:
        left = ", ".join(filter(None, [time_left(seconds_left), self._workers]))
        self._bar.update(self._task, advance=1, left=left)
        self._draw()

    def _draw(self) -> None:
        """Ten times a second at most: drawing takes longer than many a simulated run."""
        if time.monotonic() > self._drawn + 0.1:
            self._drawn = time.monotonic()
            self._bar.refresh()

    def close(self) -> None:
        self._bar.stop()
