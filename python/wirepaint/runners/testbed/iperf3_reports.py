"""What iperf3 reports, as the records and the table of a run's flows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SEGMENT_BYTES = 1460
"""Most payload of a segment."""
_NS = 1_000_000_000


@dataclass(frozen=True)
class Interval:
    """What one end of a flow did between two of its reports."""

    end_ns: int
    """Counted from the beginning of its test."""
    bytes: int
    retransmitted: int
    """Segments; 0 at the receiver."""


@dataclass(frozen=True)
class Report:
    """What one end of a flow told."""

    error: str | None = None
    port: int | None = None
    """The client's, of the flow's own connection; None if there was none."""
    intervals: tuple[Interval, ...] = ()
    congestion: str | None = None
    """What this end read back from its socket."""

    @property
    def bytes(self) -> int:
        return sum(interval.bytes for interval in self.intervals)

    @property
    def retransmitted(self) -> int:
        return sum(interval.retransmitted for interval in self.intervals)


def read(text: str) -> Report:
    """The report of an end; without a port if it told none."""
    try:
        told = json.loads(text)
    except ValueError:
        return Report()
    start, end = told.get("start") or {}, told.get("end") or {}
    error = told.get("error")
    if not (connected := start.get("connected")):
        return Report(error=error)
    [own] = connected
    is_client = "connecting_to" in start
    streams = [interval["streams"][0] for interval in told["intervals"] if interval["streams"]]
    sends = bool(start["test_start"]["reverse"]) != is_client
    return Report(
        error=error,
        port=own["local_port" if is_client else "remote_port"],
        intervals=tuple(
            Interval(round(one["end"] * _NS), one["bytes"], one.get("retransmits", 0)) for one in streams
        ),
        congestion=end.get("sender_tcp_congestion" if sends else "receiver_tcp_congestion"),
    )


@dataclass(frozen=True)
class Exchange:
    """A flow whose connection was there, with the reports of both ends."""

    asked: Mapping[str, Any]
    """Of the run description."""
    hosts: Mapping[str, Mapping[str, Any]]
    server_port: int
    opened: int
    """ns of the run."""
    client: Report
    server: Report
    is_over: bool
    """Whether it came to its end and was not cut off."""

    @property
    def direction(self) -> str:
        return "down" if self.asked["sender"] == "server" else "up"

    @property
    def sender(self) -> Report:
        return self.server if self.direction == "down" else self.client

    @property
    def receiver(self) -> Report:
        return self.client if self.direction == "down" else self.server

    @property
    def last_byte(self) -> int:
        """ns of the run: the end of the receiver's last interval with bytes."""
        times = [one.end_ns for one in self.receiver.intervals if one.bytes]
        return self.opened + (times[-1] if times else 0)

    def record(self, connection: int) -> dict[str, Any]:
        """The record of its connection, as the data plane writes those of its own flows."""
        down, received = self.direction == "down", self.receiver.bytes
        return {
            "connection": connection,
            "tool": "iperf3",
            "flow": self.asked["name"],
            "sender": self.asked["sender"],
            "client_address": self.hosts[self.asked["client"]]["address"],
            "client_port": self.client.port,
            "server_address": self.hosts[self.asked["server"]]["address"],
            "server_port": self.server_port,
            "opened": self.opened,
            "connected": self.opened,
            "last_byte": self.last_byte if down else None,
            "bytes_received": received if down else 0,
            "bytes_sent": 0 if down else received,
            "client": _end(self.client, sends=not down),
            "server": _end(self.server, sends=down),
        }

    def rows(self, connection: int) -> list[dict[str, Any]]:
        """Its rows of the table ``flow``: the receiver's bytes, the sender's retransmissions."""
        kind, receiver = self.asked["kind"], self.receiver
        rows, resent = [], 0
        own = self.sender.intervals
        for number, interval in enumerate(receiver.intervals):
            resent += own[number].retransmitted if number < len(own) else 0
            rows.append(
                {
                    "flow": self.asked["name"],
                    "sender": self.asked["sender"],
                    "connection": connection,
                    "started": self.opened,
                    "ended": self.last_byte if self.is_over else None,
                    "rate_asked": kind["rates"][0]["bit_per_s"] if kind["kind"] == "cbr" else None,
                    "bytes": receiver.bytes,
                    "time": self.opened + interval.end_ns,
                    "received_bytes": interval.bytes,
                    "retransmitted": resent,
                }
            )
        if rows:
            rows[-1]["retransmitted"] = self.sender.retransmitted
        return rows


def _end(report: Report, *, sends: bool) -> dict[str, Any]:
    """One end of a connection. iperf3 does not tell its initial window, round trips or segment size."""
    tcp = {"total_retrans": report.retransmitted} if sends else None
    return {
        "congestion": report.congestion,
        "congestion_end": report.congestion,
        "initial_window": None,
        "handshake_retrans": None,
        "tcp": tcp,
    }


@dataclass
class Told:
    """What the flows of iperf3 tell of a run. Times are ns of the run."""

    begin: int
    end: int
    exchanges: list[Exchange] = field(default_factory=list)
    unconnected: int = 0
    """Flows that were cut off before their connection was there."""
    sent: dict[str, int] = field(default_factory=lambda: {"down": 0, "up": 0})
    """By the direction: payload that the senders wrote, and what they sent again."""
    received: dict[str, int] = field(default_factory=lambda: {"down": 0, "up": 0})
    """By the direction: payload that the receivers read."""

    def add(self, exchange: Exchange) -> None:
        """Adds a flow."""
        again = exchange.sender.retransmitted * SEGMENT_BYTES
        self.sent[exchange.direction] += exchange.sender.bytes + again
        self.received[exchange.direction] += exchange.receiver.bytes
        self.exchanges.append(exchange)

    @property
    def accepted(self) -> tuple[int, int]:
        """Fewest and most connections that servers accepted beside the flows' own: each flow has a second."""
        sure = len(self.exchanges)
        return sure, sure + 2 * self.unconnected
