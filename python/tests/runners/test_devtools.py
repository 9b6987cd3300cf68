"""The DevTools client with two pipes in place of a browser; the test writes its messages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from wirepaint.runners.testbed.browser.chromium.devtools import (
    CommandFailed,
    Devtools,
    DevtoolsClosed,
    DevtoolsTimeout,
)


class Browser:
    """The browser's ends of the two pipes."""

    def __init__(self) -> None:
        self.commands, ours_in = os.pipe()
        ours_out, self.events = os.pipe()
        self.seen: list[tuple[str, dict[str, Any], str | None]] = []
        self.client = Devtools(ours_in, ours_out, lambda *event: self.seen.append(event))

    def says(self, *messages: dict[str, Any]) -> None:
        os.write(self.events, b"".join(json.dumps(message).encode() + b"\0" for message in messages))

    def heard(self) -> dict[str, Any]:
        return json.loads(os.read(self.commands, 65536).split(b"\0")[-2])


@pytest.fixture
def browser() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.client.close()


def test_a_call_returns_its_result_and_hands_over_the_events_before_it(browser: Browser) -> None:
    browser.says(
        {"method": "Page.loadEventFired", "params": {"timestamp": 1}, "sessionId": "S"},
        {"id": 1, "result": {"product": "X"}},
    )
    assert browser.client.call("Browser.getVersion") == {"product": "X"}
    assert browser.seen == [("Page.loadEventFired", {"timestamp": 1}, "S")]
    assert browser.heard() == {"id": 1, "method": "Browser.getVersion", "params": {}}


def test_a_session_is_named_in_the_message(browser: Browser) -> None:
    browser.client.send("Page.enable", {}, "S")
    assert browser.heard()["sessionId"] == "S"


def test_a_message_in_pieces_is_put_together(browser: Browser) -> None:
    text = json.dumps({"method": "A", "params": {"text": "ä" * 10}}).encode() + b"\0"
    for byte in range(0, len(text), 7):
        os.write(browser.events, text[byte : byte + 7])
        browser.client.pump(lambda: bool(browser.seen), 0.01)
    assert browser.seen == [("A", {"text": "ä" * 10}, None)]


def test_answers_that_nobody_waits_for_are_dropped(browser: Browser) -> None:
    browser.client.send("Page.enable")
    browser.says({"id": 1, "result": {}}, {"id": 2, "result": {"n": 2}})
    assert browser.client.call("Page.next") == {"n": 2}


def test_a_refused_command_names_the_command_and_the_cause(browser: Browser) -> None:
    browser.says({"id": 1, "error": {"code": -32000, "message": "Not attached"}})
    with pytest.raises(CommandFailed, match=r"refused Page\.enable: Not attached"):
        browser.client.call("Page.enable")


def test_silence_is_a_timeout_that_names_the_command(browser: Browser) -> None:
    with pytest.raises(DevtoolsTimeout, match=r"did not answer Browser\.close within 0\.05 s"):
        browser.client.call("Browser.close", timeout=0.05)


def test_an_end_of_the_pipe_is_no_silence(browser: Browser) -> None:
    os.close(browser.events)
    with pytest.raises(DevtoolsClosed):
        browser.client.call("Browser.getVersion")


def test_writing_to_a_browser_that_is_gone_fails_at_once(browser: Browser) -> None:
    os.close(browser.commands)
    with pytest.raises(DevtoolsClosed):
        browser.client.send("Browser.close")


def test_a_browser_that_reads_nothing_does_not_block_for_ever(browser: Browser) -> None:
    with pytest.raises(DevtoolsTimeout, match="read no command"):
        browser.client._write(b"x" * 1_000_000, patience=0.05)
