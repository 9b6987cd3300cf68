"""A thin DevTools client over the browser's pipe: JSON messages that end in NUL, flat sessions.

One thread, no hidden queue: only ``call`` and ``pump`` read messages of the browser. They hand every
event to ``on_event``.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Callable
from typing import Any

from wirepaint.errors import RunFailed

EventHandler = Callable[[str, dict[str, Any], str | None], None]

READ_BYTES = 1 << 18
LOOK_S = 0.02
"""Longest time between two calls of ``meanwhile`` while the client waits."""


class DevtoolsClosed(RunFailed):
    """The browser closed the pipe: it ended or crashed."""


class DevtoolsTimeout(RunFailed):
    """The browser did not answer or act in time."""


class CommandFailed(RunFailed):
    """The browser refused a command."""


class Devtools:
    """One connection to one browser.

    ``command_fd`` is written (the browser reads it as fd 3), ``event_fd`` is read (its fd 4). The
    client owns both. It calls ``meanwhile``, if set, while it waits. ``on_event(method, params,
    session)`` may call ``send``, not ``call``.
    """

    def __init__(self, command_fd: int, event_fd: int, on_event: EventHandler) -> None:
        self._command_fd, self._event_fd, self._on_event = command_fd, event_fd, on_event
        os.set_blocking(command_fd, False)
        os.set_blocking(event_fd, False)
        self.meanwhile: Callable[[], None] | None = None
        self._next_id = 0
        self._tail = bytearray()
        self._replies: dict[int, dict[str, Any]] = {}
        self._awaited: set[int] = set()

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        session: str | None = None,
        timeout: float = 10.0,
    ) -> dict[str, Any]:
        """Sends a command and waits for its result; events that arrive meanwhile are handled."""
        number = self.send(method, params, session)
        self._awaited.add(number)
        try:
            if not self.pump(lambda: number in self._replies, timeout):
                raise DevtoolsTimeout(f"the browser did not answer {method} within {timeout:g} s")
        finally:
            self._awaited.discard(number)
        reply = self._replies.pop(number)
        if "error" in reply:
            raise CommandFailed(f"the browser refused {method}: {reply['error'].get('message')}")
        return reply.get("result", {})

    def send(self, method: str, params: dict[str, Any] | None = None, session: str | None = None) -> int:
        """Sends a command whose result nobody waits for; returns its number."""
        self._next_id += 1
        message: dict[str, Any] = {"id": self._next_id, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        self._write(json.dumps(message).encode() + b"\0")
        return self._next_id

    def pump(self, done: Callable[[], bool], timeout: float) -> bool:
        """Handles messages of the browser until ``done()``; False if the time is over first."""
        deadline = time.monotonic() + timeout
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            wait = left if self.meanwhile is None else min(left, LOOK_S)
            if select.select([self._event_fd], [], [], wait)[0]:
                self._read()
            if self.meanwhile is not None:
                self.meanwhile()
        return True

    def close(self) -> None:
        """Closes the pipe."""
        for fd in (self._command_fd, self._event_fd):
            with contextlib.suppress(OSError):
                os.close(fd)

    def _read(self) -> None:
        try:
            data = os.read(self._event_fd, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise DevtoolsClosed("the browser closed its DevTools pipe")
        self._tail += data
        if b"\0" not in data:
            return
        *messages, rest = self._tail.split(b"\0")
        self._tail = bytearray(rest)
        for text in messages:
            message = json.loads(text)
            if "method" in message:
                self._on_event(message["method"], message.get("params", {}), message.get("sessionId"))
            elif message.get("id") in self._awaited:
                self._replies[message["id"]] = message

    def _write(self, data: bytes, patience: float = 5.0) -> None:
        view = memoryview(data)
        deadline = time.monotonic() + patience
        while view:
            try:
                view = view[os.write(self._command_fd, view) :]
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DevtoolsTimeout(f"the browser read no command for {patience:g} s") from None
                select.select([], [self._command_fd], [], left)
            except BrokenPipeError:
                raise DevtoolsClosed("the browser closed its DevTools pipe") from None
