"""A probe that is attached to an existing connection counts the packets that it missed."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path
from typing import Any

import parts

from wirepaint.runners.testbed import namespaces
from wirepaint.runners.testbed.process import Part

SEGS_IN = 140
"""Offset of tcpi_segs_in in struct tcp_info (linux/tcp.h)."""


def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
    """Sends before and after the probe is attached, then closes.

    ``asked``: ``run``. Returns the segments that the server had received when the probe was attached
    and before the connection was closed, and the probe's summary.
    """
    paths = namespaces.Namespaces.create()
    namespaces.build(paths, [parts.ADDRESS], initial_window=10, emulated=False)
    folder = Path(asked["run"]["trace_dir"])
    run_file, _ = parts.written(paths, asked["run"])
    with paths.inside(paths.server):
        listener = socket.create_server((parts.ADDRESS, parts.PORT))
    with paths.inside(paths.client):
        client = socket.create_connection((parts.ADDRESS, parts.PORT))
    server, _ = listener.accept()
    with listener, client, server, (folder / "log.txt").open("a") as log:
        _exchange(server, client)
        before = _received(server)
        part = Part(["probe-tcp"], run_file, log)
        try:
            part.wait_ready()
            _exchange(server, client)
            after = _received(server)
            client.close()
            assert server.recv(1) == b""
            return {"before": before, "after": after, "probe": part.stop()}
        finally:
            part.kill()


def _received(sock: socket.socket) -> int:
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SEGS_IN + 4)
    return struct.unpack_from("I", info, SEGS_IN)[0]


def _exchange(server: socket.socket, client: socket.socket) -> None:
    """Data both ways, all of it acknowledged at the end."""
    for sender, receiver in ((server, client), (client, server)):
        sender.sendall(bytes(50_000))
        assert len(receiver.recv(50_000, socket.MSG_WAITALL)) == 50_000
    time.sleep(0.1)  # the last, delayed ACK
