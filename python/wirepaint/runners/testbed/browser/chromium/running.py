"""A browser from its start to its end: the process and its DevTools pipe."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from wirepaint.errors import RunFailed
from wirepaint.runners.testbed.browser import processes
from wirepaint.runners.testbed.browser.chromium.devtools import (
    Devtools,
    DevtoolsClosed,
    DevtoolsTimeout,
    EventHandler,
)
from wirepaint.runners.testbed.browser.contract import Spawn

START_S = 20.0
"""Longest wait for the answer to the first command; 0.1 s is usual."""
CLOSE_S = 3.0
"""`Browser.close` sometimes hangs; after this time the processes are killed."""


class Running:
    """A running browser; closing the object ends it."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        spawn: Spawn,
        on_event: EventHandler,
    ) -> None:
        self._log = log
        command_out, command_in = os.pipe()
        event_out, event_in = os.pipe()
        try:
            with log.open("wb") as messages:
                self._process = spawn(
                    argv,
                    extra_fds={3: command_out, 4: event_in},
                    env=environment,
                    stdout=messages,
                    stderr=messages,
                )
        except BaseException:
            os.close(command_in)
            os.close(event_out)
            raise
        finally:
            os.close(command_out)
            os.close(event_in)
        self.devtools = Devtools(command_in, event_out, on_event)
        self.pid = self._process.pid

    def version(self) -> str:
        """Product and version; raises ``RunFailed`` when the browser did not start."""
        try:
            return self.devtools.call("Browser.getVersion", timeout=START_S)["product"]
        except (DevtoolsClosed, DevtoolsTimeout) as error:
            lines = self._log.read_text("utf-8", "replace").strip().splitlines()
            raise RunFailed(f"the browser did not start: {lines[-1] if lines else error}") from None

    def close(self) -> bool:
        """Ends the browser so that it completes its NetLog; False if it had to be killed."""
        deadline = time.monotonic() + CLOSE_S
        with contextlib.suppress(DevtoolsClosed, DevtoolsTimeout):
            self.devtools.call("Browser.close", timeout=CLOSE_S)
        try:
            self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._kill()
            return False
        return True

    def end(self) -> None:
        """Ends the browser at once if it still runs."""
        self.devtools.close()
        if self._process.poll() is None:
            self._kill()

    def _kill(self) -> None:
        processes.kill(self.pid)
        self._process.wait()
