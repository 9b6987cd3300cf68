"""Metrics of flows, on flows whose values can be worked out by hand."""

import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.metrics import _flow
from wirepaint.results.trace import polars_schema, tables

S = 10**9


def rows(flow, connection, started, ended, received, retransmitted=0):
    """A sample a second; ``received`` bytes in each."""
    return [
        {
            "flow": flow, "sender": "server", "connection": connection, "started": started * S,
            "ended": None if ended is None else ended * S, "bytes": sum(received), "time": (started + n) * S,
            "received_bytes": of_second, "retransmitted": retransmitted * n // len(received),
        }
        for n, of_second in enumerate(received, 1)
    ]  # fmt: skip


FLOWS = [
    *rows("web.1", 0, 0, 2, [1_000_000, 1_000_000], 10),  # 8 Mbit/s
    *rows("web.2", 1, 0, 4, [500_000] * 4, 2),  # 4 Mbit/s
    *rows("bulk", 2, 1, None, [1_500_000] * 4),  # 12 Mbit/s, cut off at 5 s
]
MESSAGES = [
    {"flow": "web.1", "connection": 0, "due": n * S, "read": n * S + (30 + n) * 10**6, "bytes": 100}
    for n in range(100)
]


@pytest.fixture
def trace():
    given = {"flow": FLOWS, "message": MESSAGES}
    frames = {name: pl.DataFrame(given.get(name, []), schema=dict(polars_schema(name))) for name in tables()}
    return frames.__getitem__


def values(trace, group):
    return {name: reading.value for name, reading in metrics.measure(trace, flows=group).items()}


def test_the_groups_are_the_names_in_the_order_of_their_beginnings(trace):
    assert _flow.groups(trace) == ["web", "bulk"]


def test_the_values_are_those_worked_out_by_hand(trace):
    web, bulk = values(trace, "web"), values(trace, "bulk")
    assert web["goodput"] == pytest.approx((8 + 4) / 2)
    assert bulk["goodput"] == pytest.approx(12)
    assert web["flow-completion-time"] == pytest.approx(3000)
    assert web["flow-retransmissions"] == pytest.approx((10 + 2) / 2)
    assert web["flow-share"] == pytest.approx(100 * 4 / 10)
    assert web["message-delay-p50"] == pytest.approx(80)
    assert web["message-delay-p99"] == pytest.approx(129)
    assert web["jain-index"] == pytest.approx((8 + 4 + 12) ** 2 / (3 * (64 + 16 + 144)))


def test_a_flow_that_was_cut_off_has_no_completion_time_and_one_without_messages_no_delay(trace):
    missing = {name: reading.reason for name, reading in metrics.measure(trace, flows="bulk").items()}
    assert missing["flow-completion-time"] == "1 of 1 flows did not end"
    assert missing["message-delay-p50"] == "the flow has no messages"
    assert missing["page-load-time"] == "the run holds 0 page visits, not one"


def test_a_visit_has_no_metric_of_flows(trace):
    assert metrics.measure(trace)["goodput"].reason == "a metric of flows"
