"""Flows as any application would carry them out: the server writes, the client reads, nothing is tuned.

``carry_out`` runs inside a cell and carries out several flows at once, each on a path of its own. The
buffers grow as Linux lets them, ACKs are delayed as Linux delays them.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import threading
import time
from bisect import bisect_left
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from parts import ADDRESS, MSS, PORT, written

from wirepaint.runners.testbed import namespaces
from wirepaint.runners.testbed.process import Part

ZEROS = memoryview(bytes(2**20))
"""What the server's application offers at once; the send buffer takes what it has room for."""
QUIET_NS = 300_000_000
"""How long a transfer is watched after its last byte: the last ACKs reach the server."""
SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("qq")
APPLICATION_PRIORITY = 5
"""Of the process with both applications: they are to be woken when there is something to do, whatever
else the machine does. Less than the emulator's."""


def carry_out(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Carries out flows and returns, for each, the reports of emulator and probe, and ``delays_ns`` of
    its messages.

    ``asked``: ``folder``, ``congestion`` (a run with the instances to load, or None) and ``flows``, each
    with ``run`` (description without the parts that only the cell knows), ``congestion`` (name at the
    server, read back), ``count`` (connections), ``bytes`` of each, ``limit_s`` and ``messages`` (``bytes``,
    ``interval_ns``), or None if the server writes as much as possible.
    """
    folder = Path(asked["folder"])
    with (folder / "log.txt").open("a") as log, ExitStack() as stack:
        paths = [_Path(one, log, stack) for one in asked["flows"]]
        if asked["congestion"]:
            file = folder / "congestion.json"
            file.write_text(json.dumps(asked["congestion"]))
            loaded = Part(["cc", "load"], file, log)
            stack.callback(loaded.kill)
            loaded.wait_ready()
        poll = stack.enter_context(select.epoll())
        connections = [connection for path in paths for connection in path.connect(poll, stack)]
        actors = {connection.client.fileno(): connection for connection in connections}
        actors |= {path.listener.fileno(): path for path in paths}
        priority = os.sched_param(APPLICATION_PRIORITY)
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, priority)
        limit = time.monotonic() + max(one["limit_s"] for one in asked["flows"])
        while any(connection.missing for connection in connections):
            if time.monotonic() > limit:
                raise TimeoutError(f"{[connection.missing for connection in connections]} bytes are missing")
            for fd, _ in poll.poll(0.1):
                actors[fd].act(fd, poll, actors)
        time.sleep(QUIET_NS / 1e9)
        return [path.report() for path in paths]


class _Path:
    """Namespaces, emulator, probe, and a server that sends to every client."""

    def __init__(self, asked: dict[str, Any], log: IO[str], stack: ExitStack) -> None:
        self._asked = asked
        self._stack = stack
        self._paths = namespaces.Namespaces.create()
        stack.callback(self._paths.close)
        namespaces.build(self._paths, [ADDRESS], initial_window=10)
        file, _ = written(self._paths, asked["run"])
        self._parts = {
            "emulator": Part(["emulate"], file, log, self._paths.wire),
            "probe": Part(["probe-tcp"], file, log),
        }
        for part in self._parts.values():
            stack.callback(part.kill)

    def connect(self, poll: select.epoll, stack: ExitStack) -> list[_Client]:
        """Listens and begins to connect; what follows is for ``poll``."""
        for part in self._parts.values():
            part.wait_ready()
        with self._paths.inside(self._paths.server):
            self.listener = stack.enter_context(socket.socket())
        self.listener.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._asked["congestion"].encode()
        )
        self.listener.bind((ADDRESS, PORT))
        self.listener.listen(1000)
        self.listener.setblocking(False)
        poll.register(self.listener, select.EPOLLIN)
        clients = []
        for _ in range(self._asked["count"]):
            with self._paths.inside(self._paths.client):
                clients.append(_Client(stack.enter_context(socket.socket()), self._asked["bytes"], poll))
        self._clients = clients
        return clients

    def act(self, _: int, poll: select.epoll, actors: dict[int, Any]) -> None:
        """Accepts; reads back the congestion control."""
        accepted = self._stack.enter_context(self.listener.accept()[0])
        used = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
        assert used == self._asked["congestion"], f"{used} instead of {self._asked['congestion']}"
        if self._asked["messages"]:
            self._writer = _Writer(accepted, self._asked["bytes"], self._asked["messages"])
            return
        actors[accepted.fileno()] = server = _Server(accepted, self._asked["bytes"], poll)
        server.act(accepted.fileno(), poll, actors)

    def report(self) -> dict[str, Any]:
        """Stops the parts."""
        delays_ns = []
        if self._asked["messages"]:
            (client,) = self._clients
            size = self._asked["messages"]["bytes"]
            ends = range(size, self._asked["bytes"] + 1, size)
            received = [so_far for _, so_far in client.reads]
            reads = [client.reads[bisect_left(received, end)][0] for end in ends]
            delays_ns = [read - write for read, write in zip(reads, self._writer.times_ns, strict=True)]
        return {name: part.stop() for name, part in self._parts.items()} | {"delays_ns": delays_ns}


class _Client:
    """Reads all arriving data."""

    def __init__(self, sock: socket.socket, expected: int, poll: select.epoll) -> None:
        self.client, self.missing, self._expected = sock, expected, expected
        self.reads: list[tuple[int, int]] = []
        """When how many bytes had come to its socket: not when it awoke, which is the machine's affair."""
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        poll.register(sock, select.EPOLLIN)
        with suppress(BlockingIOError):
            sock.connect((ADDRESS, PORT))

    def act(self, _fd: int, _poll: select.epoll, _actors: dict[int, Any]) -> None:
        with suppress(BlockingIOError):
            data, stamps, _, _ = self.client.recvmsg(2**20, socket.CMSG_SPACE(TIMESPEC.size))
            self.missing -= len(data)
            for _, _, stamp in stamps:
                seconds, ns = TIMESPEC.unpack(stamp)
                came = seconds * 10**9 + ns - time.time_ns() + time.monotonic_ns()
                self.reads.append((came, self._expected - self.missing))


class _Server:
    """Writes as much as possible whenever there is room."""

    def __init__(self, sock: socket.socket, total: int, poll: select.epoll) -> None:
        self._sock, self._unsent = sock, total
        sock.setblocking(False)
        poll.register(sock, select.EPOLLOUT)

    def act(self, fd: int, poll: select.epoll, _actors: dict[int, Any]) -> None:
        with suppress(BlockingIOError):
            while self._unsent:
                self._unsent -= self._sock.send(ZEROS[: self._unsent])
                if not self._unsent:
                    # Call again once less than half of this is unsent.
                    self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 2 * MSS)
                    return
            # The simulated server closes, and Nagle's rule does not hold back a FIN's segment. This one stays
            # open: the probe's tracepoint needs an established connection.
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.unregister(fd)


class _Writer:
    """Writes messages at their times, independent of earlier ones, in a thread of its own."""

    def __init__(self, sock: socket.socket, total: int, messages: dict[str, int]) -> None:
        self._sock, self._count, self._messages = sock, total // messages["bytes"], messages
        self.times_ns: list[int] = []
        threading.Thread(target=self._write, daemon=True).start()

    def _write(self) -> None:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(APPLICATION_PRIORITY))
        due = time.monotonic_ns()
        for _ in range(self._count):
            time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
            self.times_ns.append(time.monotonic_ns())
            self._sock.sendall(ZEROS[: self._messages["bytes"]])
            due += self._messages["interval_ns"]
