"""The time that an answer waits behind others is not the server's time."""

from __future__ import annotations

import pytest

from wirepaint.recording.queueing import behind_others
from wirepaint.runners.testbed.browser.chromium.exchanges import Exchange


def exchange(name: str, sent: float, first: float, last: float | None, connection: int = 1) -> Exchange:
    made = Exchange(name, f"https://a.test/{name}", "GET", "js", "", None, "parser", "", discovered=sent)
    made.sent, made.first_byte, made.last_byte = sent, first, last
    made.connection, made.protocol = connection, "h2"
    return made


def test_time_in_which_others_arrive_is_counted_once_from_a_round_trip_after_the_request() -> None:
    those = [
        exchange("large", 0.0, 1.0, 5.0),
        exchange("beside it", 0.0, 2.0, 3.0),
        exchange("behind both", 0.0, 6.0, 7.0),
        exchange("late", 4.0, 6.0, 6.5),
    ]
    waited = behind_others(those, {1: 0.5})
    assert waited == pytest.approx({"large": 0.0, "beside it": 1.0, "behind both": 4.0, "late": 0.5})


def test_others_are_those_of_the_same_connection_that_end() -> None:
    those = [
        exchange("elsewhere", 0.0, 1.0, 5.0, connection=2),
        exchange("stream", 0.0, 1.0, None),
        exchange("asked", 0.0, 6.0, 7.0),
    ]
    assert behind_others(those, {})["asked"] == 0.0


def test_http_1_has_no_queue_behind_the_request() -> None:
    those = [exchange("first", 0.0, 1.0, 5.0), exchange("second", 0.0, 6.0, 7.0)]
    for each in those:
        each.protocol = "http/1.1"
    assert behind_others(those, {}) == {}
