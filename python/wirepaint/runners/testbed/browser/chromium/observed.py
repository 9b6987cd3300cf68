"""Joins DevTools' exchanges with NetLog's requests and connections into what every browser reports.

DevTools knows why and when the page asked, NetLog when bytes arrived and over which socket. NetLog's times
are whole milliseconds (truncated); where both say the same, DevTools' microseconds count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urldefrag

from wirepaint.runners.testbed.browser.chromium import netlog
from wirepaint.runners.testbed.browser.chromium.exchanges import Exchange
from wirepaint.runners.testbed.browser.contract import Chunk, Connection, Request

SAME_CONNECT_NS = 2_000_000
"""DevTools and NetLog report the same connect if their times differ by less; NetLog truncates to 1 ms."""


class Observed:
    """One visit's requests and connections; ``epoch_ns`` is CLOCK_MONOTONIC at time 0 of the trace.

    ``visible`` holds DevTools' ids (without hop) of exchanges whose objects appear in the first view port.
    """

    def __init__(
        self, exchanges: Sequence[Exchange], log: netlog.NetLog, epoch_ns: int, visible: Collection[str] = ()
    ) -> None:
        self._epoch_ns = epoch_ns
        # DevTools calls an answer cached that the server had to confirm.
        exchanges = [
            replace(exchange, from_cache=exchange.from_cache and not exchange.revalidated)
            for exchange in exchanges
        ]
        fetched = [exchange for exchange in exchanges if not exchange.from_cache]
        pairs, self.unseen = _pair(fetched, log.requests, {urldefrag(each.url).url for each in exchanges})
        self.requests = [self._request(exchange, pairs.get(exchange.id), visible) for exchange in exchanges]
        self.connections = [self._connection(connection, fetched) for connection in log.connections]

    def ns(self, seconds: float) -> int:
        """A DevTools time in nanoseconds since the epoch."""
        return round(seconds * 1e9) - self._epoch_ns

    def _maybe(self, seconds: float | None) -> int | None:
        return None if seconds is None else self.ns(seconds)

    def _ms(self, milliseconds: int) -> int:
        return milliseconds * 1_000_000 - self._epoch_ns

    def _request(
        self, exchange: Exchange, request: netlog.Request | None, visible: Collection[str]
    ) -> Request:
        arrivals = request.chunks if request else []
        sent, first, last = map(self._maybe, (exchange.sent, exchange.first_byte, exchange.last_byte))
        if arrivals and first is not None:
            # DevTools sees decoded bytes; the first packet of a TLS record comes earlier. NetLog
            # truncates to milliseconds, so the byte had arrived by the end of its millisecond.
            first = max(sent or 0, min(first, self._ms(arrivals[0].time_ms + 1)))
        encoded, came = exchange.encoded_bytes, sum(chunk.bytes for chunk in arrivals)
        if encoded <= exchange.head_bytes and encoded < came / 2:
            # For a worker's script, DevTools counts only the head. NetLog's sum is exact to one read.
            encoded = came
        return Request(
            id=exchange.id,
            url=exchange.url,
            method=exchange.method,
            type=exchange.type,
            frame=exchange.frame,
            initiator=exchange.initiator,
            initiator_type=exchange.initiator_type,
            priority=exchange.priority,
            asked_priority=exchange.asked_priority,
            discovered=self.ns(exchange.discovered),
            queued=self._maybe(exchange.queued),
            sent=sent,
            first_byte=first,
            last_byte=last,
            status=exchange.status,
            protocol=exchange.protocol,
            connection=exchange.connection or (request.connection if request else None),
            cache=_cache(exchange.headers),
            encoded_bytes=encoded,
            decoded_bytes=exchange.decoded_bytes,
            from_cache=exchange.from_cache,
            revalidated=exchange.revalidated,
            failed=exchange.failed,
            # DevTools calls it loaded; only NetLog tells that the rest was refused.
            broken_image=request is not None and request.cancelled and exchange.type == "image",
            in_viewport=exchange.base_id in visible,
            stack=exchange.stack,
            chunks=[Chunk(self._arrival(chunk, first, last), chunk.bytes) for chunk in arrivals],
        )

    def _arrival(self, chunk: netlog.Chunk, first: int | None, last: int | None) -> int:
        at = self._ms(chunk.time_ms) + 500_000
        at = max(at, first) if first is not None else at
        return min(at, last) if last is not None else at

    def _connection(self, connection: Connection, exchanges: Sequence[Exchange]) -> Connection:
        """The connection in times of the run; to the microsecond if DevTools reports them."""
        marks = (connection.opened, connection.connected, connection.tls_done, connection.closed)
        opened, connected, tls_done, closed = (None if at is None else at - self._epoch_ns for at in marks)
        assert opened is not None
        for exchange in exchanges:
            if exchange.connection == connection.number and exchange.connect:
                begin, end = map(self.ns, exchange.connect)
                if abs(begin - opened) <= SAME_CONNECT_NS:
                    opened, tls_done = begin, self._maybe(exchange.tls_done)
                    if not connection.tunnelled:
                        connected = end  # DevTools counts a CONNECT as part of the connect
                    break
        return replace(connection, opened=opened, connected=connected, tls_done=tls_done, closed=closed)


def _cache(headers: Mapping[str, str]) -> str | None:
    named = {name.lower(): value for name, value in headers.items()}
    return named.get("x-cache") or named.get("cache-status")


def _pair(
    exchanges: Sequence[Exchange], requests: Sequence[netlog.Request], known: set[str]
) -> tuple[Mapping[str, netlog.Request], list[str]]:
    """NetLog's request for each exchange, and the addresses of requests without an exchange.

    ``known`` are the addresses of all exchanges, those from the cache included.
    """
    waiting: dict[tuple[str, str], list[netlog.Request]] = defaultdict(list)
    for request in requests:
        waiting[request.method, urldefrag(request.url).url].append(request)
    pairs: dict[str, netlog.Request] = {}
    for exchange in exchanges:
        candidates = waiting[exchange.method, urldefrag(exchange.url).url]
        if not candidates:
            continue
        same = [c for c in candidates if exchange.connection and c.connection == exchange.connection]
        pairs[exchange.id] = (same or candidates)[0]
        candidates.remove(pairs[exchange.id])
    # HSTS: the browser turned http:// into https:// without asking the network.
    known = known | {f"http:{url.removeprefix('https:')}" for url in known if url.startswith("https:")}
    unseen = [
        request.url
        for left in waiting.values()
        for request in left
        # A cache may answer a request without the network.
        if request.connection is not None or urldefrag(request.url).url not in known
    ]
    return pairs, unseen
