"""NetLogs that the browser wrote, and logs written by hand where the order of events matters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirepaint.errors import RunFailed
from wirepaint.runners.testbed.browser.chromium import netlog

LOGS = Path(__file__).parent / "netlogs"


def requests_of(log: netlog.NetLog) -> list[tuple[Any, ...]]:
    """(address, connection, stream, [(ms after the first request, bytes)]) of each request."""
    start = log.requests[0].started_ms
    return [
        (
            request.url.removeprefix("https://").replace(".test:8766", ""),
            request.connection,
            request.stream,
            [(chunk.time_ms - start, chunk.bytes) for chunk in request.chunks],
        )
        for request in log.requests
    ]


def connections_of(log: netlog.NetLog) -> list[tuple[Any, ...]]:
    """(id, host, local port, protocol, opened, connected, TLS done, resumed, bytes in, requests)."""
    start = log.requests[0].started_ms
    return [
        (
            c.number,
            c.host,
            c.client_port,
            c.protocol,
            c.opened // 10**6 - start,
            (c.connected or 0) // 10**6 - start,
            (c.tls_done or 0) // 10**6 - start,
            c.resumed,
            c.received,
            c.requests,
        )
        for c in log.connections
    ]


def test_http_1_bytes_belong_to_the_request_that_uses_the_connection() -> None:
    log = netlog.read(LOGS / "h1.json")
    assert log.complete
    assert requests_of(log) == [
        ("a/fix.html", 18, None, [(17, 361)]),
        ("a/a.css", 18, None, [(36, 248)]),
        ("a/r/x", 28, None, [(40, 347)]),
        ("a/i1.jpg", 34, None, [(41, 17350), (43, 3593)]),
        ("b/i2.jpg", 40, None, [(43, 8067)]),
        ("a/big.jpg", 34, None, [(55, 8067)]),
    ]
    assert connections_of(log) == [
        (18, "a.test", 39466, "http/1.1", 2, 3, 16, False, 1932, 2),
        (28, "a.test", 39468, "http/1.1", 33, 35, 37, True, 532, 1),
        (34, "a.test", 39484, "http/1.1", 34, 35, 37, True, 29253, 2),
        (40, "b.test", 39490, "http/1.1", 34, 35, 38, False, 9362, 1),
    ]


def test_http_2_bytes_belong_to_the_request_of_their_stream() -> None:
    log = netlog.read(LOGS / "h2.json")
    assert requests_of(log) == [
        ("a/fix.html", 18, 1, [(10, 299)]),
        ("a/a.css", 18, 3, [(39, 136)]),
        ("a/r/x", 18, 5, [(42, 188)]),
        ("a/i1.jpg", 18, 7, [(42, 17048), (45, 3841)]),
        ("b/i2.jpg", 18, 9, [(45, 7963)]),
        ("a/big.jpg", 18, 11, [(51, 7954)]),
    ]
    assert connections_of(log) == [(18, "a.test", 39506, "h2", 7, 7, 8, False, 38921, 6)]


def proxied(name: str) -> list[tuple[Any, ...]]:
    """(host, server's port, tunnelled, TCP's and TLS's handshakes done, requests) of each connection."""
    log = netlog.read(LOGS / name)
    start = log.requests[0].started_ms
    return [
        (
            c.host,
            c.server_port,
            c.tunnelled,
            (c.connected or 0) // 10**6 - start,
            c.tls_done and c.tls_done // 10**6 - start,
            c.requests,
        )
        for c in log.connections
    ]


def test_plain_requests_through_a_proxy_share_connections_by_host() -> None:
    assert proxied("proxied.json") == [
        ("a.plain.test", 3128, False, 33, None, 2),
        ("b.plain.test", 3128, False, 113, None, 1),
        ("a.plain.test", 3128, False, 115, None, 1),
        ("b.plain.test", 3128, False, 118, None, 1),
    ]


def test_in_a_tunnel_tls_begins_a_round_trip_after_tcp() -> None:
    """26 ms each: TCP, CONNECT, TLS 1.3. The third connection was surplus and closed before TLS was done."""
    assert proxied("tunnel.json") == [
        ("a.plain.test", 3128, True, 34, 90, 3),
        ("b.plain.test", 3128, True, 172, 228, 2),
        ("b.plain.test", 3128, True, 173, None, 0),
    ]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_log_that_was_cut_off_tells_what_it_holds(tmp_path: Path, share: float) -> None:
    whole = (LOGS / "h2.json").read_text()
    cut = tmp_path / "netlog.json"
    cut.write_text(whole[: int(len(whole) * share)])
    log = netlog.read(cut)
    assert not log.complete
    expected = requests_of(netlog.read(LOGS / "h2.json"))
    assert share < 0.5 or requests_of(log)[0] == expected[0]
    assert [row[0] for row in requests_of(log)] == [row[0] for row in expected[: len(log.requests)]]


def test_a_request_whose_answer_was_not_read_to_its_end_is_cancelled(tmp_path: Path) -> None:
    log = Script("http/1.1")
    for number in (1, 2):
        log.request(50, number)
    log.add(90, 102, "CANCELLED")
    log.read(tmp_path)
    assert [each.cancelled for each in netlog.read(tmp_path / "netlog.json").requests] == [False, True]


@pytest.mark.parametrize(
    "text", ["", "not a log", '{"constants":{}', '{"events": []}', "[]", '{"constants":{},"events":[]}']
)
def test_what_is_no_log_fails_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "netlog.json"
    path.write_text(text)
    with pytest.raises(RunFailed, match=r"NetLog netlog\.json is not readable"):
        netlog.read(path)


def test_no_log_fails_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="the browser left no NetLog"):
        netlog.read(tmp_path / "netlog.json")


class Script:
    """A log written by hand: one TLS connection (socket 1), one job per request."""

    def __init__(self, protocol: str) -> None:
        self._types: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []
        self.add(0, 1, "TCP_CONNECT", 1, address_list=["10.0.0.1:443"])
        self.add(20, 1, "TCP_CONNECT", 2, local_address="10.0.0.2:4000", remote_address="10.0.0.1:443")
        self.add(40, 1, "SSL_CONNECT", 2, next_proto=protocol, is_resumed=False)

    def add(self, time: int, source: int, kind: str, phase: int = 0, /, **params: Any) -> None:
        number = self._types.setdefault(kind, len(self._types))
        event = {"time": str(time), "type": number, "phase": phase, "source": {"id": source, "type": 0}}
        self._events.append(event | {"params": params})

    def request(self, time: int, number: int) -> None:
        """Request 100 + number through job 200 + number."""
        self.add(time, 100 + number, "URL_REQUEST_START_JOB", 1, url=f"https://h/{number}", method="GET")
        self.add(
            time, 200 + number, "HTTP_STREAM_JOB_BOUND_TO_REQUEST", source_dependency={"id": 100 + number}
        )

    def cipher(self, time: int, count: int) -> None:
        self.add(time, 1, "SOCKET_BYTES_RECEIVED", byte_count=count)

    def plain(self, time: int, count: int) -> None:
        self.add(time, 1, "SSL_SOCKET_BYTES_RECEIVED", byte_count=count)

    def read(self, folder: Path) -> list[list[tuple[int, int]]]:
        phases = {"PHASE_BEGIN": 1, "PHASE_END": 2, "PHASE_NONE": 0}
        constants = {"logEventTypes": self._types, "logEventPhase": phases, "logSourceType": {}}
        path = folder / "netlog.json"
        path.write_text(json.dumps({"constants": constants, "events": self._events}))
        return [[(c.time_ms, c.bytes) for c in request.chunks] for request in netlog.read(path).requests]


def test_the_bytes_of_a_tls_record_count_when_they_arrive_not_when_it_is_complete(tmp_path: Path) -> None:
    log = Script("http/1.1")
    log.request(50, 1)
    log.add(50, 1, "SOCKET_IN_USE", 1, source_dependency={"id": 201})
    for time in (70, 80, 90, 100):
        log.cipher(time, 4100)  # a record of 16,378 bytes and 22 of overhead, packet by packet
    log.plain(100, 16378)
    assert log.read(tmp_path) == [[(70, 4094), (80, 4095), (90, 4094), (100, 4095)]]


def test_a_record_that_holds_two_responses_is_dealt_in_the_order_of_its_frames(tmp_path: Path) -> None:
    log = Script("h2")
    log.add(40, 300, "HTTP2_SESSION_INITIALIZED", protocol="h2", source_dependency={"id": 1})
    for number, stream in ((1, 1), (2, 3)):
        log.request(50, number)
        log.add(
            50, 300, "HTTP2_SESSION_SEND_HEADERS", source_dependency={"id": 200 + number}, stream_id=stream
        )
    log.cipher(70, 5000)
    log.cipher(80, 5000)
    log.plain(80, 10000)
    log.add(80, 101, "HTTP2_STREAM_UPDATE_RECV_WINDOW", stream_id=1, delta=-2500)
    log.add(80, 102, "HTTP2_STREAM_UPDATE_RECV_WINDOW", stream_id=3, delta=-7500)
    assert log.read(tmp_path) == [[(70, 2500)], [(70, 2500), (80, 5000)]]


def test_a_session_ticket_is_nobodys_response(tmp_path: Path) -> None:
    log = Script("http/1.1")
    log.request(50, 1)
    log.add(50, 1, "SOCKET_IN_USE", 1, source_dependency={"id": 201})
    log.cipher(60, 300)
    log.add(60, 1, "SSL_HANDSHAKE_MESSAGE_RECEIVED", type=4)
    log.cipher(90, 1022)
    log.plain(90, 1000)
    assert log.read(tmp_path) == [[(90, 1000)]]


def test_a_connection_without_a_request_is_surplus(tmp_path: Path) -> None:
    log = Script("h2")
    log.read(tmp_path)
    (connection,) = netlog.read(tmp_path / "netlog.json").connections
    assert (connection.requests, connection.client_port, connection.protocol) == (0, 4000, "h2")


def test_an_answer_does_not_arrive_within_a_round_trip_of_its_question(tmp_path: Path) -> None:
    log = Script("http/1.1")
    log.request(100, 1)
    log.cipher(60, 400)  # overhead of short records that an earlier answer left over
    log.add(100, 1, "SOCKET_IN_USE", 1, source_dependency={"id": 201})
    log.cipher(125, 800)
    log.cipher(140, 822)
    log.plain(140, 1600)
    # The handshake took 20 ms, so nothing before 119 ms can belong to the answer.
    assert log.read(tmp_path) == [[(125, 789), (140, 811)]]
