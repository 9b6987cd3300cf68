"""Measures how long an answer waited behind others on its HTTP/2 connection.

A server sends the answers on one connection one after the other, or in turns. So the first byte of a
small script may come long after the server had it ready. A replay creates such queues again, so
they must not count as the server's time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from wirepaint.runners.testbed.browser.chromium.exchanges import Exchange

MULTIPLEXED = "h2"


def behind_others(exchanges: Iterable[Exchange], trips: Mapping[int, float]) -> dict[str, float]:
    """Seconds, by exchange, in which other answers arrived on its connection while it waited.

    ``trips`` is the round trip of each connection in seconds: nothing can queue before the request has
    reached the server and an answer has come back. Computing of the server while it sends other answers
    counts as queueing. Endless answers, such as event streams, are ignored.
    """
    together: dict[int, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.connection is not None and exchange.protocol == MULTIPLEXED:
            together[exchange.connection].append(exchange)
    waited: dict[str, float] = {}
    for connection, those in together.items():
        spans = sorted((e.first_byte, e.last_byte, e.id) for e in those if e.first_byte and e.last_byte)
        for exchange in those:
            if exchange.sent is None or exchange.first_byte is None:
                continue
            at, total = exchange.sent + trips.get(connection, 0.0), 0.0
            for begin, end, other in spans:
                if begin >= exchange.first_byte:
                    break
                if other != exchange.id and end > at:
                    end = min(end, exchange.first_byte)
                    total += max(0.0, end - max(begin, at))
                    at = max(at, end)
            waited[exchange.id] = total
    return waited
