"""A page load over one bottleneck, small enough to read: traces with the right shape for the report's tests.

Not the product's simulator. Packets of 1448 bytes cross one drop-tail queue; a connection doubles its
window per round trip in slow start (``growth`` 1) or triples it (``growth`` 2), and halves it on a loss.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MSS = 1448
MS = 1_000_000
Row = dict[str, Any]


@dataclass
class Path:
    """One network: capacity in bit/s, one-way delay in ms, queue in packets."""

    rate: float
    delay_ms: float
    queue_packets: int


@dataclass
class Resource:
    """One object of a page; discovered ``after_ms`` after the last byte of the object that causes it."""

    url: str
    host: str
    type: str
    size: int
    cause: int | None
    after_ms: float


def page(name: str, objects: int, hosts: int, seed: int) -> list[Resource]:
    """A made-up page: one document, its style sheets and scripts, and the images that they cause."""
    rng = random.Random(seed)
    names = [f"www.{name}.example"] + [f"cdn{n}.{name}.example" for n in range(1, hosts)]
    resources = [Resource(f"https://{names[0]}/", names[0], "html", 38_000, None, 0.0)]
    for n in range(1, objects):
        early = n <= max(4, objects // 6)
        kind = rng.choice(["css", "js", "js", "font"] if early else ["image", "image", "image", "js", "data"])
        host = names[0] if early and rng.random() < 0.5 else rng.choice(names)
        cause = 0 if early or rng.random() < 0.6 else rng.randrange(1, max(2, objects // 6))
        size = int(min(260_000, max(400, rng.lognormvariate(9.3, 1.3))))
        suffix = {"image": "jpg", "data": "json", "font": "woff2"}.get(kind, kind)
        url = f"https://{host}/assets/{kind}/{n:03d}-{name}.{suffix}"
        resources.append(Resource(url, host, kind, size, cause, rng.uniform(2, 60)))
    return resources


@dataclass
class Connection:
    number: int
    host: str
    opened: int
    cwnd: float = 10.0
    ssthresh: float | None = None
    state: str = "Open"
    in_flight: int = 0
    recover_until: int = 0
    delivered: int = 0
    lost: int = 0
    backlog: deque[tuple[int, int]] = field(default_factory=deque)
    ready: int = 0
    first_request: int | None = None
    last_byte: int = 0
    received: int = 0
    objects: int = 0


class Load:
    """One visit. ``run()`` fills ``tables``: rows by table name, times in ns since the epoch of the run."""

    def __init__(self, resources: list[Resource], path: Path, growth: int, seed: int) -> None:
        self.resources, self.path, self.growth = resources, path, growth
        self.rng = random.Random(seed)
        self.delay = int(path.delay_ms * MS)
        self.events: list[tuple[int, int, Callable[[int], None]]] = []
        self.order = 0
        self.connections: dict[str, Connection] = {}
        self.tables: dict[str, list[Row]] = {name: [] for name in ("object", "chunk", "tcp", "link")}
        self.objects: list[Row | None] = [None] * len(resources)
        self.remaining = [r.size for r in resources]
        self.link_free = 0
        self.queue = 0
        self.offered = self.sent = self.drops = 0

    def at(self, time: float, call: Callable[[int], None]) -> None:
        self.order += 1
        heapq.heappush(self.events, (int(time), self.order, call))

    def run(self) -> Load:
        self.at(120 * MS, lambda now: self.discover(0, now))
        next_sample = 0
        while self.events:
            now, _, call = heapq.heappop(self.events)
            while next_sample <= now:
                self.sample_link(next_sample)
                next_sample += 10 * MS
            call(now)
        return self

    def sample_link(self, now: int) -> None:
        self.tables["link"].append({
            "time": now, "direction": "down", "queue_packets": self.queue, "queue_bytes": self.queue * 1500,
            "offered_packets": self.offered, "offered_bytes": self.offered * 1500,
            "delivered_packets": self.sent, "delivered_bytes": self.sent * 1500,
            "capacity_bytes": int(now * self.path.rate / 8e9),
            "queue_drops": self.drops, "random_losses": 0, "lateness_max": self.rng.randrange(2_000, 30_000),
        })  # fmt: skip

    def discover(self, index: int, now: int) -> None:
        resource = self.resources[index]
        connection = self.connections.get(resource.host)
        if connection is None:
            connection = Connection(len(self.connections) + 1, resource.host, now)
            connection.ready = now + 4 * self.delay + 3 * MS
            self.connections[resource.host] = connection
        connection.objects += 1
        sent = max(now, connection.ready) + self.rng.randrange(MS)
        connection.first_request = connection.first_request or sent
        by = resource.cause
        self.objects[index] = {
            "request": f"r{index + 1}", "url": resource.url, "host": resource.host, "type": resource.type,
            "method": "GET", "status": 200, "protocol": "h2", "connection": connection.number,
            "first_on_connection": connection.objects == 1,
            "initiator": None if by is None else self.resources[by].url,
            "initiator_type": "other" if by is None else "parser",
            "priority": "VeryHigh" if resource.type in ("html", "css") else "Low",
            "in_viewport": index < 8, "served_by": "origin", "discovered": now, "queued": now, "sent": sent,
            "encoded_bytes": resource.size, "decoded_bytes": int(resource.size * 1.9),
        }  # fmt: skip
        think = self.rng.uniform(2, 25) * MS
        self.at(sent + self.delay + think, lambda t: self.respond(index, connection, t))

    def respond(self, index: int, connection: Connection, now: int) -> None:
        left = self.resources[index].size
        while left > 0:
            connection.backlog.append((index, min(MSS, left)))
            left -= MSS
        self.send(connection, now)

    def send(self, connection: Connection, now: int) -> None:
        while connection.backlog and connection.in_flight < int(connection.cwnd):
            packet = connection.backlog.popleft()
            connection.in_flight += 1
            self.offered += 1
            if self.queue >= self.path.queue_packets:
                self.drops += 1
                self.at(now + 2.2 * self.delay, lambda t, p=packet: self.lose(connection, p, t))
                continue
            self.queue += 1
            self.link_free = max(now, self.link_free) + int(1500 * 8 / self.path.rate * 1e9)
            self.at(self.link_free, self.depart)
            self.at(self.link_free + self.delay, lambda t, p=packet: self.deliver(connection, p, t))

    def depart(self, now: int) -> None:
        self.queue -= 1
        self.sent += 1

    def deliver(self, connection: Connection, packet: tuple[int, int], now: int) -> None:
        index, size = packet
        row = self.objects[index]
        assert row is not None
        row.setdefault("first_byte", now)
        self.remaining[index] -= size
        connection.last_byte, connection.received = now, connection.received + size
        self.tables["chunk"].append(
            {"request": row["request"], "connection": connection.number, "time": now, "bytes": size}
        )
        if self.remaining[index] <= 0:
            row["last_byte"] = now
            for child, resource in enumerate(self.resources):
                if resource.cause == index:
                    self.at(now + resource.after_ms * MS, lambda t, c=child: self.discover(c, t))
        self.at(now + self.delay, lambda t: self.acknowledge(connection, t))

    def acknowledge(self, connection: Connection, now: int) -> None:
        connection.in_flight -= 1
        connection.delivered += 1
        if connection.state == "Recovery" and now >= connection.recover_until:
            connection.state = "Open"
        if connection.state == "Open":
            slow_start = connection.ssthresh is None or connection.cwnd < connection.ssthresh
            connection.cwnd += self.growth if slow_start else 1 / connection.cwnd
        self.sample_tcp(connection, now, "ack")
        self.send(connection, now)

    def lose(self, connection: Connection, packet: tuple[int, int], now: int) -> None:
        connection.in_flight -= 1
        connection.lost += 1
        if connection.state == "Open":
            connection.state, connection.recover_until = "Recovery", now + 2 * self.delay + 20 * MS
            connection.ssthresh = max(connection.cwnd * (0.7 if self.growth == 1 else 0.9), 2)
            connection.cwnd = connection.ssthresh
            self.sample_tcp(connection, now, "state")
        connection.backlog.appendleft(packet)
        self.sample_tcp(connection, now, "retransmit")
        self.send(connection, now)

    def sample_tcp(self, connection: Connection, now: int, event: str) -> None:
        self.tables["tcp"].append({
            "time": now, "connection": connection.number, "side": "server", "event": event,
            "server_address": f"10.64.1.{connection.number}", "server_port": 443,
            "client_address": "10.64.0.2", "client_port": 40_000 + connection.number,
            "cwnd": int(connection.cwnd),
            "ssthresh": None if connection.ssthresh is None else int(connection.ssthresh),
            "srtt": 2 * self.delay + int(self.queue * 1500 * 8 / self.path.rate * 1e9),
            "in_flight": connection.in_flight, "state": connection.state, "delivered": connection.delivered,
            "lost": connection.lost, "retransmitted": connection.lost, "pacing_rate": None,
        })  # fmt: skip
