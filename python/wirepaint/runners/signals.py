"""Stops a command on a signal, where it can be stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Signals:
    """Turns SIGINT and SIGTERM into ``KeyboardInterrupt``, but only inside ``interruptible``.

    Elsewhere they are remembered. After the first signal, no other one interrupts the clean-up.
    """

    def __init__(self) -> None:
        self.asked = False
        self._interruptible = False

    def __enter__(self) -> Signals:
        self._before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        if threading.current_thread() is threading.main_thread():
            for number in self._before:
                signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Lets a signal raise ``KeyboardInterrupt`` in the body."""
        self._interruptible = True
        try:
            if self.asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._interruptible = False

    def _handle(self, *_: object) -> None:
        self.asked = True
        if self._interruptible:
            self._interruptible = False
            raise KeyboardInterrupt
