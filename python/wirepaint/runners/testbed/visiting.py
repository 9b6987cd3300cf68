"""Visits in processes of their own, so that several users load pages at the same time.

A child of the cell starts the browser and waits with it until the visit's time has come. A pipe leads each
way: the child tells that the browser waits, that the load event fired, and at last what the browser saw; the
parent says when to navigate.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wirepaint import linux
from wirepaint.errors import RunFailed, WirepaintError
from wirepaint.runners.testbed import cells
from wirepaint.runners.testbed.browser import BrowserOptions, PageLoad, Spawn, processes, visit

_GO = b"g"
_LENGTH = struct.Struct("=Q")


@dataclass
class Progress:
    """What a child has told so far."""

    waits: bool = False
    """The browser is ready for the navigation."""
    began: bool = False
    load_event: int | None = None
    """CLOCK_MONOTONIC, in ns."""
    cpu_s: float = 0.0
    """CPU time of the browser from the navigation to the load event."""
    stopped_s: float = 0.0
    """Time in which a process of the browser was stopped."""
    load: PageLoad | None = None


class Visiting:
    """One visit under way."""

    def __init__(self, options: BrowserOptions, spawn: Spawn) -> None:
        self.progress = Progress()
        self._input = b""
        self._spent_s: float | None = None
        told, telling = os.pipe2(os.O_CLOEXEC)
        going, go = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            os.close(told)
            os.close(go)
            _child(options, spawn, going, telling)
        os.close(telling)
        os.close(going)
        self.pid, self.fd, self._go = pid, told, go

    def go(self) -> None:
        """Lets the browser navigate."""
        self.progress.began = True
        with contextlib.suppress(BrokenPipeError):
            os.write(self._go, _GO)

    def look(self) -> None:
        """Takes in what the child has written; ``fd`` is readable then.

        Raises what the child raised, or ``RunFailed`` if it died.
        """
        data = os.read(self.fd, 1 << 16)
        if not data:
            self._reap()
            if self.progress.load is None:
                raise RunFailed("a visit's process died; see the run's log")
            return
        self._input += data
        while len(self._input) >= _LENGTH.size:
            (length,) = _LENGTH.unpack(self._input[: _LENGTH.size])
            if len(self._input) < _LENGTH.size + length:
                return
            message = self._input[_LENGTH.size : _LENGTH.size + length]
            self._input = self._input[_LENGTH.size + length :]
            self._take(*pickle.loads(message))

    def _take(self, kind: str, told: Any) -> None:
        if kind == "failed":
            name, text = told
            raise cells.ERRORS.get(name, RunFailed)(text)
        if kind == "waits":
            self.progress.waits = True
        elif kind == "loaded":
            self.progress.load_event, self.progress.cpu_s, self.progress.stopped_s = told
        else:
            self.progress.load = told

    @property
    def has_ended(self) -> bool:
        """True once the child has."""
        return self._spent_s is not None

    def spent_s(self) -> float:
        """CPU time of the child and its browser so far."""
        return processes.cpu(self.pid) if self._spent_s is None else self._spent_s

    def _reap(self) -> None:
        _, _, usage = os.wait4(self.pid, 0)
        self._spent_s = usage.ru_utime + usage.ru_stime
        os.close(self.fd)
        os.close(self._go)

    def kill(self) -> None:
        """Ends the child and its browser if they still run."""
        if not self.has_ended:
            os.kill(self.pid, signal.SIGKILL)
            self._reap()


def watch(going: Sequence[Visiting], wait_s: float) -> None:
    """Waits until a child has told something, or the time is up."""
    by_fd = {visiting.fd: visiting for visiting in going if not visiting.has_ended}
    for fd in select.select(list(by_fd), [], [], wait_s)[0]:
        by_fd[fd].look()


def _child(options: BrowserOptions, spawn: Spawn, going: int, telling: int) -> None:
    """The child: loads the page, tells, and ends."""

    def tell(kind: str, told: Any = None) -> None:
        message = pickle.dumps((kind, told))
        data = _LENGTH.pack(len(message)) + message
        while data:
            data = data[os.write(telling, data) :]

    try:
        linux.die_with_parent()
        # The cell catches these; this process has nothing to tidy.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        moments = _Moments(tell, lambda: os.read(going, 1) == _GO)
        tell("load", visit(options, spawn=spawn, moments=moments))
    except WirepaintError as error:
        tell("failed", (type(error).__name__, str(error)))
    except BaseException as error:
        tell("failed", (RunFailed.__name__, f"{type(error).__name__}: {error}"))
    finally:
        os._exit(0)


class _Moments:
    """Tells the parent of the moments of a page load."""

    def __init__(self, tell: Callable[..., None], may_go: Callable[[], bool]) -> None:
        self._tell, self._may_go = tell, may_go
        self._before = 0.0

    def begin(self, cpu_s: float) -> None:
        self._tell("waits")
        if not self._may_go():
            raise RunFailed("the run ended before the visit began")
        self._before = cpu_s

    def end(self, cpu_s: float, stopped_s: float) -> None:
        self._tell("loaded", (time.monotonic_ns(), cpu_s - self._before, stopped_s))
