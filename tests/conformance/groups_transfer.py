"""Several connections from one server to clients of different addresses, by an exact timetable.

``carry_out`` runs inside a cell. All hooks of one congestion control see the connections
together; its groups are read while they are open and after they have closed.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from parts import ADDRESS, MSS, PORT, START_NS, running
from pyroute2 import IPRoute

from wirepaint import dataplane
from wirepaint.runners.testbed import namespaces

SETTLED_S = 0.4
"""The last acknowledgements, FINs included, have passed the path."""


def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
    """Carries out the connections and returns the output of ``cc groups`` and the reports of the parts.

    ``asked``: ``run`` (description without the parts that only the cell knows), ``congestion`` (name at the
    server), ``flows`` (triples of name, client address and initial window), ``steps`` (triples of
    nanoseconds, name and segments to write, 0 to close), all in order of time.
    """
    paths = namespaces.Namespaces.create()
    # The timetable's pauses are not to be the kernel's idle periods.
    sysctls = {"net.ipv4.tcp_slow_start_after_idle": "0"}
    namespaces.build(paths, [ADDRESS], initial_window=10, sysctls=sysctls)
    _addresses(paths, asked["flows"])
    with running(paths, asked["run"]) as (epoch, parts):
        with _connections(paths, asked) as connections:
            start = max(time.monotonic_ns(), epoch + START_NS)
            observed = _timetable(connections, asked["steps"], start)
            time.sleep(SETTLED_S)
            observed |= {"open": _groups(asked)}
        time.sleep(SETTLED_S)
        observed |= {"closed": _groups(asked), "start": start - epoch}
        return observed | {name: part.stop() for name, part in parts.items()}


def _groups(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The output of ``cc groups`` for this run's instance."""
    return [group for group in dataplane.call("cc", "groups") if group["congestion"] == asked["congestion"]]


def _addresses(paths: namespaces.Namespaces, flows: list[list[Any]]) -> None:
    """Gives the client its addresses. Each segment is to be acknowledged at once (quickack)."""
    with paths.inside(paths.client), IPRoute() as ip:
        [loopback], [device] = ip.link_lookup(ifname="lo"), ip.link_lookup(ifname="c0")
        ip.route(
            "add",
            dst=f"{ADDRESS}/32",
            oif=device,
            gateway=namespaces.SERVER_ADDRESS,
            metrics={"quickack": 1},
        )
        for _, address, _ in flows:
            ip.addr("add", index=loopback, address=address, prefixlen=32)
    with paths.inside(paths.server), IPRoute() as ip:
        [device] = ip.link_lookup(ifname="s0")
        for _, address, window in flows:
            ip.route(
                "add",
                dst=f"{address}/32",
                oif=device,
                gateway=namespaces.CLIENT_ADDRESS,
                metrics={"initcwnd": window},
            )


@contextmanager
def _connections(
    paths: namespaces.Namespaces, asked: dict[str, Any]
) -> Iterator[dict[str, tuple[socket.socket, socket.socket]]]:
    """Pairs of server's and client's socket by name. They are closed at the end."""
    with ExitStack() as stack:
        with paths.inside(paths.server):
            listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, asked["congestion"].encode())
        listener.bind((ADDRESS, PORT))
        listener.listen()
        pairs = {}
        for name, address, _ in asked["flows"]:
            with paths.inside(paths.client):
                client = stack.enter_context(socket.socket())
            client.bind((address, 0))
            client.connect((ADDRESS, PORT))
            server = stack.enter_context(listener.accept()[0])
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pairs[name] = server, client
        yield pairs


def _timetable(
    connections: dict[str, tuple[socket.socket, socket.socket]], steps: list[list[Any]], start: int
) -> dict[str, Any]:
    """Returns the largest delay of a step and the bytes that each client received."""
    names = {client: name for name, (_, client) in connections.items()}
    received = dict.fromkeys(connections, 0)
    expected = dict.fromkeys(connections, 0)
    late = 0
    waiting = list(steps)
    while waiting or received != expected:
        now = time.monotonic_ns() - start
        while waiting and waiting[0][0] <= now:
            at, name, segments = waiting.pop(0)
            late = max(late, now - at)
            server, _ = connections[name]
            if segments:
                server.sendall(bytes(segments * MSS))
                expected[name] += segments * MSS
            else:
                server.close()
        limit = max(waiting[0][0] - now, 0) / 1e9 if waiting else 10.0
        readable, _, _ = select.select(names, [], [], limit)
        if not waiting and not readable:
            raise TimeoutError(f"{received} of {expected} bytes arrived, then nothing for 10 s")
        for client in readable:
            data = client.recv(4 * 2**20)
            received[names[client]] += len(data)
            if not data:
                client.close()
                del names[client]
    return {"late": late, "received": received}
