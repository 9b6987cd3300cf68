"""iperf3 as the tool of flows: what it is told, what it tells, and what contradicts the emulator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wirepaint.runners.testbed import iperf3, iperf3_reports

FLOW = {
    "name": "a",
    "kind": {"kind": "bulk", "bytes": None},
    "start_ns": 10**9,
    "sender": "server",
    "client": "client",
    "server": "server",
    "dscp": 46,
    "nodelay": True,
    "background": False,
    "tool": "iperf3",
}
HOSTS = {"client": {"address": "10.64.0.2"}, "server": {"address": "10.63.0.1"}}


def words(**changes: Any) -> str:
    return " ".join(iperf3.arguments(FLOW | changes, "10.63.0.1", 20_001, "cubic"))


def test_the_client_is_told_amount_rate_direction_class_and_congestion_control() -> None:
    assert words() == (
        "iperf3 --client 10.63.0.1 --port 20001 --json --interval 0.1 --congestion cubic --dscp 46 "
        "--reverse --no-delay --time 0"
    )
    assert words(stop_ns=4 * 10**9, sender="client", nodelay=False).endswith("--dscp 46 --time 3")
    assert words(kind={"kind": "bulk", "bytes": 5000}).endswith("--no-delay --bytes 5000")
    rate = {"kind": "cbr", "write_bytes": 160, "rates": [{"at_ns": 0, "bit_per_s": 64_000}]}
    assert words(kind=rate).endswith("--bitrate 64000 --length 160 --time 0")


def report(*, client: bool, sends: bool, sizes: list[int], error: str | None = None) -> str:
    """What an end tells, with the keys that are read (of iperf3 3.12)."""
    own = {"local_port": 40_000, "remote_port": 20_001}
    if not client:
        own = {"local_port": 20_001, "remote_port": 40_000}
    streams = [
        {"end": (n + 1) / 10, "bytes": size, "sender": sends} | ({"retransmits": n} if sends else {})
        for n, size in enumerate(sizes)
    ]
    told: dict[str, Any] = {
        "start": {"connected": [own], "test_start": {"reverse": int(sends != client)}},
        "intervals": [{"streams": [stream]} for stream in streams],
        "end": {"sender_tcp_congestion" if sends else "receiver_tcp_congestion": "cubic"},
    }
    if client:
        told["start"]["connecting_to"] = {"host": "10.63.0.1", "port": 20_001}
    return json.dumps(told | ({"error": error} if error else {}))


def exchange(*, sent: list[int], received: list[int], is_over: bool = True) -> iperf3_reports.Exchange:
    client = iperf3_reports.read(report(client=True, sends=False, sizes=received))
    server = iperf3_reports.read(report(client=False, sends=True, sizes=sent))
    return iperf3_reports.Exchange(FLOW, HOSTS, 20_001, 5_000, client, server, is_over=is_over)


def test_intervals_have_the_bytes_of_the_receiver_and_the_retransmissions_of_the_sender() -> None:
    found = exchange(sent=[900, 500, 600], received=[800, 1000])
    rows = found.rows(7)
    assert [(row["time"], row["received_bytes"], row["retransmitted"]) for row in rows] == [
        (100_005_000, 800, 0), (200_005_000, 1000, 3),
    ]  # fmt: skip
    assert {(row["connection"], row["bytes"], row["started"], row["ended"]) for row in rows} == {
        (7, 1800, 5_000, 200_005_000)
    }
    record = found.record(7)
    assert (record["client_port"], record["bytes_received"], record["bytes_sent"]) == (40_000, 1800, 0)
    assert (record["server"]["congestion"], record["client"]["congestion_end"]) == ("cubic", "cubic")
    assert record["server"]["tcp"] == {"total_retrans": 3} and record["client"]["tcp"] is None


def test_a_flow_that_was_cut_off_has_no_end() -> None:
    rows = exchange(sent=[10], received=[10], is_over=False).rows(0)
    assert [row["ended"] for row in rows] == [None]


@pytest.mark.parametrize("text", ["", "iperf3: error", '{"start": {}, "error": "unable to connect"}'])
def test_an_end_that_was_never_connected_tells_nothing(text: str) -> None:
    assert iperf3_reports.read(text).port is None


def emulated(down_payload: int) -> dict[str, dict[str, int]]:
    """The emulator's counts of packets of 1448 bytes of payload."""
    packets = down_payload // 1448
    down = {"delivered_packets": packets, "delivered_bytes": packets * 1514}
    return {"down": down, "up": {"delivered_packets": 100, "delivered_bytes": 100 * 66}}


@pytest.mark.parametrize(
    ("carried", "found"),
    [(1_500_000, []), (900_000, ["received"]), (1_700_000, ["sent"])],
)
def test_counts_that_the_emulator_contradicts_make_a_run_invalid(carried: int, found: list[str]) -> None:
    run = {
        "flows": [FLOW],
        "visits": [],
        "transport": {"sysctls": {}},
        "segments": [{"down": {}, "up": {}}],
    }
    told = iperf3_reports.Told(0, 10**9)
    # Three retransmitted segments are sent twice.
    told.add(exchange(sent=[500_000, 500_000, 500_000], received=[700_000, 700_000]))
    reasons = list(iperf3.check(told, run, emulated(carried)))
    assert [(r.check, r.severity) for r in reasons] == [("iperf3", "invalid")] * len(found)
    assert all(word in reason.found for word, reason in zip(found, reasons, strict=True))
    beside = run | {"flows": [FLOW, FLOW | {"tool": "wirepaint"}]}
    more = list(iperf3.check(told, beside, emulated(carried)))
    assert len(more) == (found == ["received"])
