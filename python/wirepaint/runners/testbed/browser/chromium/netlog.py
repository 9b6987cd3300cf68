"""Reads Chromium's NetLog: requests, connections, and when the bytes of each response arrived.

NetLog has what DevTools lacks: connections that never carried a request, the local port of
each connection, and every read from a socket. Times are whole milliseconds (truncated) of
CLOCK_MONOTONIC and are passed on unchanged.

How arriving bytes are assigned to responses
    Plain HTTP/1.1: a read from the socket belongs to the request that uses the socket.
    TLS: a response's bytes become visible only when a TLS record (up to 16 KiB) is complete, but
    they arrive packet by packet. So reads of ciphertext wait until plaintext comes out. Then they
    are assigned to the responses in the order of their bytes in the plaintext (for
    HTTP/2: by the frames that follow). The rest of the ciphertext belongs to the next record.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wirepaint.errors import RunFailed
from wirepaint.runners.testbed.browser.contract import Connection

TLS_RECORD_BYTES = 16_384  # largest plaintext of a TLS record (RFC 8446 section 5.1)
RECORD_OVERHEAD_BYTES = 29  # header, nonce and tag around a record (TLS 1.2 with AES-GCM; 22 in TLS 1.3)


@dataclass
class Chunk:
    """Bytes of a response that arrived together."""

    time_ms: int
    bytes: int


@dataclass
class Request:
    """One request on the network; each hop of a redirect is a request."""

    source: int
    """NetLog source of the request, shared by the hops of a redirect."""
    url: str
    method: str
    started_ms: int
    initiator: str
    """Origin that asked; ``not an origin`` for the browser itself (and for the first navigation)."""
    connection: int | None = None
    """NetLog source of the socket; DevTools calls it connectionId."""
    stream: int | None = None
    """HTTP/2 stream."""
    cancelled: bool = False
    """The browser stopped reading before the end of the response."""
    chunks: list[Chunk] = field(default_factory=list)


@dataclass
class NetLog:
    """The content of a log."""

    requests: list[Request]
    connections: list[Connection]
    """Times are nanoseconds of CLOCK_MONOTONIC, in whole milliseconds."""
    complete: bool
    """False when the log was cut off (the browser was killed)."""


def _ns(milliseconds: int) -> int:
    return milliseconds * 1_000_000


def _handshake_ms(connection: Connection) -> int:
    """Lower bound of the round-trip time: the TCP handshake, less the truncation error."""
    if connection.connected is None:
        return 0
    return max(0, (connection.connected - connection.opened) // 1_000_000 - 1)


def read(path: Path) -> NetLog:
    """Reads a log, also one that was cut off; raises ``RunFailed`` when there is no log."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        raise RunFailed(f"the browser left no NetLog: {error}") from error
    try:
        document, complete = _load(text)
        return _Reader(document["constants"]).run(document["events"], complete)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RunFailed(f"the browser's NetLog {path.name} is not readable") from None


def _load(text: str) -> tuple[dict[str, Any], bool]:
    """The document, and whether it is whole."""
    try:
        return json.loads(text), True
    except ValueError:
        # Cut off. The first line holds the constants, then follows one event per line.
        first, _, rest = text.partition("\n")
    document = json.loads(first.strip().rstrip(",") + "}")
    document["events"] = []
    for line in rest.splitlines():
        with contextlib.suppress(ValueError):
            event = json.loads(line.strip().removeprefix('"events": [').rstrip(",]"))
            if isinstance(event, dict) and "source" in event:
                document["events"].append(event)
    return document, False


@dataclass
class _Socket:
    """A connection's bytes on their way from ciphertext to responses."""

    connection: Connection
    job: int | None = None
    """The stream job that uses the socket (HTTP/1.1)."""
    ratio: float = 1.0
    """Ciphertext bytes per plaintext byte over the whole connection."""
    reads: list[Chunk] = field(default_factory=list)
    """Ciphertext that has not come out as plaintext yet."""
    plain: int = 0
    """Plaintext that came out since the last read of ciphertext."""
    plain_ms: int = 0
    shares: list[tuple[int, int]] = field(default_factory=list)
    """(stream job, bytes) in the order of the plaintext."""
    headed: list[int] = field(default_factory=list)
    """Indices into ``shares`` of header blocks; the log does not give their length."""


class _Reader:
    """One pass over the events in their order."""

    def __init__(self, constants: dict[str, Any]) -> None:
        self._types = {number: name for name, number in constants["logEventTypes"].items()}
        self._begin = constants["logEventPhase"]["PHASE_BEGIN"]
        self._end = constants["logEventPhase"]["PHASE_END"]
        self._requests: list[Request] = []
        self._current: dict[int, Request] = {}  # URL_REQUEST -> its current hop
        self._jobs: dict[int, Request] = {}  # HTTP_STREAM_JOB -> the hop that it serves
        self._job_socket: dict[int, int] = {}
        self._sockets: dict[int, _Socket] = {}
        self._groups: dict[int, str] = {}  # CONNECT_JOB -> "https://host:port"
        self._sessions: dict[int, int] = {}  # HTTP2_SESSION -> socket
        self._streams: dict[tuple[int, int], int] = {}  # (session, stream) -> job
        self._request_streams: dict[
            tuple[int, int], tuple[int, int]
        ] = {}  # (request, stream) -> (socket, job)
        self._sent: dict[int, int] = {}  # job -> when its request was sent
        self._chunks: dict[int, list[Chunk]] = defaultdict(list)

    def run(self, events: list[dict[str, Any]], complete: bool) -> NetLog:
        ratios = self._ratios(events)
        handlers = {
            name.removeprefix("_on_"): getattr(self, name) for name in dir(self) if name.startswith("_on_")
        }
        for event in events:
            kind = self._types.get(event["type"], "")
            if kind in handlers:
                source = event["source"]["id"]
                handlers[kind](source, int(event["time"]), event["phase"], event.get("params") or {})
                if kind == "TCP_CONNECT" and source in self._sockets:
                    self._sockets[source].ratio = ratios.get(source, 1.0)
        for socket in self._sockets.values():
            self._deal(socket)
        for job, chunks in self._chunks.items():
            if request := self._jobs.get(job):
                request.chunks += _merged(chunks)
        for job, socket in self._job_socket.items():
            if (request := self._jobs.get(job)) and socket in self._sockets:
                request.connection = socket
        for request in self._requests:
            if request.connection is not None:
                self._sockets[request.connection].connection.requests += 1
        return NetLog(self._requests, [socket.connection for socket in self._sockets.values()], complete)

    def _ratios(self, events: Iterable[dict[str, Any]]) -> dict[int, float]:
        """Ciphertext per plaintext of each encrypted socket, after its handshake."""
        cipher: dict[int, int] = defaultdict(int)
        plain: dict[int, int] = defaultdict(int)
        for event in events:
            kind, source = self._types.get(event["type"], ""), event["source"]["id"]
            if kind == "SOCKET_BYTES_RECEIVED":
                cipher[source] += event["params"]["byte_count"]
            elif kind == "SSL_SOCKET_BYTES_RECEIVED":
                plain[source] += event["params"]["byte_count"]
            elif kind == "SSL_HANDSHAKE_MESSAGE_RECEIVED" and not plain[source]:
                cipher[source] = 0
        return {source: max(1.0, cipher[source] / count) for source, count in plain.items() if count}

    # Requests and the jobs that find them a connection.

    def _on_URL_REQUEST_START_JOB(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if phase != self._begin:
            return
        request = Request(
            source, params.get("url", ""), params.get("method", "GET"), time, params.get("initiator", "")
        )
        self._requests.append(request)
        self._current[source] = request

    def _on_CANCELLED(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if request := self._current.get(source):
            request.cancelled = True

    def _on_HTTP_STREAM_JOB_BOUND_TO_REQUEST(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        if request := self._current.get(_dependency(params)):
            self._jobs[source] = request

    def _on_SOCKET_IN_USE(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if (socket := self._sockets.get(source)) is None:
            return
        self._deal(socket)
        socket.job = _dependency(params) if phase == self._begin else None
        if socket.job is not None and socket.connection.protocol != "h2":
            self._job_socket[socket.job] = source
            self._sent[socket.job] = time

    # Connections.

    def _on_SOCKET_POOL_CONNECT_JOB_CREATED(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        self._groups[source] = params.get("group_id", "")

    def _on_SOCKET_ALIVE(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if phase == self._begin:
            # It is known as a TCP socket only when it connects; the connect job names the group.
            self._groups.setdefault(-source, self._groups.get(_dependency(params), ""))
        elif socket := self._sockets.get(source):
            socket.connection.closed = _ns(time)

    def _on_TCP_CONNECT(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if phase == self._begin:
            connection = Connection(source, opened=_ns(time))
            group = self._groups.get(-source, "")
            # A group id is "[prefix/]scheme://host:port[ <suffix>]".
            if (start := group.find("http")) >= 0:
                address = urlsplit(group[start:].split(" ")[0])
                connection.host, connection.encrypted = address.hostname, address.scheme == "https"
            if addresses := params.get("address_list"):
                connection.server_address, connection.server_port = _endpoint(addresses[0])
            self._sockets[source] = _Socket(connection)
        elif (socket := self._sockets.get(source)) and "net_error" not in params:
            connection = socket.connection
            connection.connected = _ns(time)
            connection.client_address, connection.client_port = _endpoint(params.get("local_address", ""))
            connection.server_address, connection.server_port = _endpoint(params.get("remote_address", ""))

    def _on_HTTP_TRANSACTION_TUNNEL_SEND_REQUEST(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        if phase == self._begin and (socket := self._sockets.get(source)):
            socket.connection.tunnelled = True

    def _on_SSL_CONNECT(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if (socket := self._sockets.get(source)) is None:
            return
        connection = socket.connection
        connection.encrypted = True
        if phase == self._end and "net_error" not in params:
            connection.tls_done = _ns(time)
            protocol = params.get("next_proto")
            connection.protocol = None if protocol in (None, "unknown") else protocol
            connection.resumed = bool(params.get("is_resumed"))
            connection.tls = params.get("version")

    def _on_SSL_HANDSHAKE_MESSAGE_RECEIVED(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        # Certificates and session tickets belong to no response.
        if (socket := self._sockets.get(source)) and not socket.plain:
            socket.reads.clear()

    # Bytes.

    def _on_SOCKET_BYTES_SENT(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if socket := self._sockets.get(source):
            socket.connection.sent += params["byte_count"]

    def _on_SOCKET_BYTES_RECEIVED(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if (socket := self._sockets.get(source)) is None:
            return
        count = params["byte_count"]
        socket.connection.received += count
        if socket.connection.encrypted:
            self._deal(socket)
            socket.reads.append(Chunk(time, count))
        elif socket.job is not None:
            self._chunks[socket.job].append(Chunk(time, count))

    def _on_SSL_SOCKET_BYTES_RECEIVED(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        if (socket := self._sockets.get(source)) is None:
            return
        socket.plain += params["byte_count"]
        socket.plain_ms = time
        if socket.connection.protocol != "h2" and socket.job is not None:
            socket.shares.append((socket.job, params["byte_count"]))

    # HTTP/2.

    def _on_HTTP2_SESSION_INITIALIZED(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        self._sessions[source] = _dependency(params)

    def _on_HTTP2_SESSION_SEND_HEADERS(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        job, stream = _dependency(params), params["stream_id"]
        request, socket = self._jobs.get(job), self._sessions.get(source)
        if request is None or socket is None:
            return
        self._streams[source, stream] = job
        self._request_streams[request.source, stream] = (socket, job)
        self._job_socket[job] = socket
        self._sent[job] = time
        request.stream = stream

    def _on_HTTP2_SESSION_RECV_HEADERS(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        job = self._streams.get((source, params["stream_id"]))
        socket = self._sockets.get(self._sessions.get(source, -1))
        if job is not None and socket is not None:
            socket.headed.append(len(socket.shares))
            socket.shares.append((job, 0))

    def _on_HTTP2_STREAM_UPDATE_RECV_WINDOW(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        # The window shrinks by the payload of each piece of a DATA frame as it is read.
        found = self._request_streams.get((source, params["stream_id"]))
        if found and params["delta"] < 0:
            self._sockets[found[0]].shares.append((found[1], -params["delta"]))

    def _deal(self, socket: _Socket) -> None:
        """Assigns the ciphertext of the plaintext so far to the responses in it."""
        if not socket.plain:
            return
        shares = socket.shares
        if shares:
            # No byte of a response arrives within a round trip of its request: earlier bytes are
            # the overhead of short records.
            earliest = self._sent.get(shares[0][0], 0) + _handshake_ms(socket.connection)
            while len(socket.reads) > 1 and socket.reads[0].time_ms < earliest:
                del socket.reads[0]
        total = sum(chunk.bytes for chunk in socket.reads)
        overhead = RECORD_OVERHEAD_BYTES * (1 + len(shares))
        # At most the last read and the rest of one record can belong to the next responses.
        ahead = socket.reads[-1].bytes + TLS_RECORD_BYTES if socket.reads else 0
        used = max(round(socket.plain * socket.ratio), socket.plain + overhead, total - ahead)
        # A rest as small as the overhead is overhead, not the head of the next record.
        used = total if total - used <= overhead else used
        taken = list(_take(socket.reads, used)) or [Chunk(socket.plain_ms, used)]
        rest = socket.plain - sum(count for _, count in shares)
        for index in socket.headed:
            shares[index] = (shares[index][0], max(0, rest // len(socket.headed)))
        for job, chunk in _spread(shares, taken):
            self._chunks[job].append(chunk)
        socket.plain, socket.shares, socket.headed = 0, [], []


def _dependency(params: dict[str, Any]) -> int:
    return params.get("source_dependency", {}).get("id", -1)


def _endpoint(text: str) -> tuple[str | None, int | None]:
    """``("10.1.2.3", 443)`` of ``10.1.2.3:443``."""
    address, _, port = text.rpartition(":")
    return (address, int(port)) if address and port.isdigit() else (None, None)


def _take(reads: list[Chunk], count: int) -> Iterator[Chunk]:
    """Removes the first ``count`` bytes from ``reads`` and yields them."""
    while count > 0 and reads:
        step = min(count, reads[0].bytes)
        yield Chunk(reads[0].time_ms, step)
        reads[0].bytes -= step
        count -= step
        if not reads[0].bytes:
            del reads[0]


def _spread(shares: list[tuple[int, int]], arrivals: list[Chunk]) -> Iterator[tuple[int, Chunk]]:
    """Lays the shares, in their order, over the arrivals; the bytes of a share are kept exactly."""
    plain = sum(count for _, count in shares)
    cipher = sum(chunk.bytes for chunk in arrivals)
    # Ends of the arrivals, counted in plaintext.
    ends, at = [], 0
    for chunk in arrivals:
        at += chunk.bytes
        ends.append(plain * at // cipher if cipher else plain)
    index, position = 0, 0
    for job, count in shares:
        end = position + count
        while position < end:
            while index < len(ends) - 1 and ends[index] <= position:
                index += 1
            step = (min(end, ends[index]) if index < len(ends) - 1 else end) - position
            yield job, Chunk(arrivals[index].time_ms, step)
            position += step


def _merged(chunks: list[Chunk]) -> list[Chunk]:
    """One chunk per millisecond."""
    merged: dict[int, int] = defaultdict(int)
    for chunk in chunks:
        merged[chunk.time_ms] += chunk.bytes
    return [Chunk(time, count) for time, count in sorted(merged.items())]
