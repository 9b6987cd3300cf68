"""A transfer without a browser: server to client over the emulator, by an exact timetable.

``carry_out`` runs inside a cell. The server's application writes N segments at each time of the timetable;
the congestion control is chosen on the listener and read back on the accepted socket.
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import Any

from parts import ADDRESS, MSS, PORT, START_NS, running

from wirepaint.runners.testbed import namespaces

BUFFER = 64 * 2**20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
"""Beyond the system's maximum, for root; the module socket lacks both."""


def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
    """Carries out one transfer and returns when its bytes arrived and what each part reported.

    ``asked``: ``run`` (description without what only the cell can know), ``congestion`` (name at
    the server), ``initial_window``, ``sysctls``, ``writes`` (pairs of nanoseconds and segments) and
    ``switches`` (pairs of nanoseconds and the name to change to).
    """
    paths = namespaces.Namespaces.create()
    namespaces.build(
        paths, [ADDRESS], initial_window=asked["initial_window"], sysctls=asked.get("sysctls", {})
    )
    with running(paths, asked["run"]) as (epoch, parts):
        # Changes of the path and writes are timed from here.
        shift = time.monotonic_ns() - epoch
        assert shift < START_NS or not asked["run"]["segments"][0]["down"].get("changes"), (
            f"the parts took {shift / 1e6:.0f} ms to get ready"
        )
        start = epoch + max(shift, START_NS)
        observed = _transfer(paths, asked, start)
        return observed | {name: part.stop() for name, part in parts.items()} | {"start": start - epoch}


def _transfer(paths: namespaces.Namespaces, asked: dict[str, Any], start: int) -> dict[str, Any]:
    with paths.inside(paths.server):
        listener = socket.socket()
    with paths.inside(paths.client):
        client = socket.socket()
    with listener, client:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, asked["congestion"].encode())
        listener.bind((ADDRESS, PORT))
        listener.listen()
        client.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        client.connect((ADDRESS, PORT))
        server, _ = listener.accept()
        with server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
            before = _congestion(server)
            observed = _timetable(server, client, asked, start)
            time.sleep(0.3)  # the last ACKs reach the server
            return observed | {"congestion_before": before, "congestion_after": _congestion(server)}


def _congestion(sock: socket.socket) -> str:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def _timetable(
    server: socket.socket, client: socket.socket, asked: dict[str, Any], start: int
) -> dict[str, Any]:
    """Writes by the timetable.

    Returns the arrivals, (ns from its zero, bytes received so far), and the largest delay of a
    write: beyond its time, and within the call.
    """
    server.setblocking(False)
    client.setblocking(False)
    events = sorted(
        [(at, "write", segments) for at, segments in asked["writes"]]
        + [(at, "switch", name) for at, name in asked.get("switches", [])]
    )
    expected = MSS * sum(segments for _, segments in asked["writes"])
    received, waiting, late = 0, 0, 0
    arrivals: list[tuple[int, int]] = []
    while received < expected or events:
        now = time.monotonic_ns() - start
        while events and events[0][0] <= now:
            at, kind, value = events.pop(0)
            late = max(late, now - at)
            if kind == "write":
                waiting += MSS * value
            else:
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, value.encode())
        if waiting:
            with suppress(BlockingIOError):
                waiting -= server.send(bytes(min(waiting, 4 * 2**20)))
            late = max(late, time.monotonic_ns() - start - now)
        limit = max(events[0][0] - now, 0) / 1e9 if events else 10.0
        readable, _, _ = select.select([client], [server] if waiting else [], [], limit)
        if not events and not readable and not waiting:
            raise TimeoutError(f"{received} of {expected} bytes arrived, then nothing for 10 s")
        if readable:
            received += len(client.recv(4 * 2**20))
            arrivals.append((time.monotonic_ns() - start, received))
    return {"arrivals": arrivals, "late": late}
