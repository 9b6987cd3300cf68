"""The events of one page load, in orders that a browser on a busy machine sends them in."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import pytest

from wirepaint.errors import RunFailed
from wirepaint.runners.testbed.browser.chromium.devtools import Devtools
from wirepaint.runners.testbed.browser.chromium.watching import Watching

FRAME, SESSION = "F", "S"


class Load(Watching):
    """A load whose browser is a thread: it answers each command, ``Page.navigate`` after ``events``."""

    def __init__(self, *events: tuple[str, dict[str, Any]]) -> None:
        super().__init__("https://a.test/")
        self._commands, ours_in = os.pipe()
        ours_out, self._events = os.pipe()
        self._before_the_answer = events
        self._devtools = Devtools(ours_in, ours_out, self.on_event)
        threading.Thread(target=self._browse, daemon=True).start()

    def _browse(self) -> None:
        result = {"targetId": FRAME, "sessionId": SESSION, "frameId": FRAME, "loaderId": "first"}
        with os.fdopen(self._commands, "rb") as commands:
            received = b""
            while more := os.read(commands.fileno(), 65536):
                *whole, received = (received + more).split(b"\0")
                for command in map(json.loads, whole):
                    if command["method"] == "Page.navigate":
                        for method, params in self._before_the_answer:
                            self._say({"method": method, "params": params, "sessionId": SESSION})
                    self._say({"id": command["id"], "result": result})

    def _say(self, message: dict[str, Any]) -> None:
        os.write(self._events, json.dumps(message).encode() + b"\0")

    def _refused(self, error: str) -> RunFailed:
        return RunFailed(error)

    def goes(self, limit_s: float) -> tuple[bool, str]:
        """Whether the load event came, and the document that the page ended at."""
        try:
            return self._goto(self._open_target(None), limit_s), self._loader
        finally:
            self._devtools.close()


def navigated(loader: str, frame: str = FRAME, url: str = "https://a.test/") -> tuple[str, dict[str, Any]]:
    return "Page.frameNavigated", {"frame": {"id": frame, "loaderId": loader, "url": url}}


def loaded(loader: str) -> tuple[str, dict[str, Any]]:
    return "Page.lifecycleEvent", {"frameId": FRAME, "loaderId": loader, "name": "load", "timestamp": 1.0}


@pytest.mark.parametrize(
    ("events", "end"),
    [
        # As Chromium sent them with four busy processes beside it on two cores.
        ([navigated("first"), navigated("second"), loaded("second")], (True, "second")),
        ([navigated("first"), loaded("first")], (True, "first")),
        ([loaded("first")], (True, "first")),
        ([navigated("blank", url="about:blank"), loaded("blank")], (False, "first")),
        ([navigated("first"), navigated("inner", "G"), loaded("inner")], (False, "first")),
    ],
)
def test_a_load_ends_with_the_last_document_even_if_all_came_before_the_answer(
    events: list[tuple[str, dict[str, Any]]], end: tuple[bool, str]
) -> None:
    assert Load(*events).goes(30.0 if end[0] else 0.2) == end
