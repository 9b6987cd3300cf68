"""Bulk transfers without a browser: server to client over the emulator, by an exact timetable.

``carry_out`` runs inside a cell and carries out several connections at once, each on a path of its
own. What the server's application does comes when so many segments have been delivered and sent, not
at a time, so that a busy machine delays a transfer but does not change it.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyroute2 import IPRoute

from wirepaint.errors import RunFailed
from wirepaint.runners.testbed import namespaces
from wirepaint.runners.testbed.process import Part

ADDRESS, PORT = "10.65.0.1", 5001
BUFFER = 128 * 2**20
"""Bytes of the socket buffers, forced beyond the system's maximum."""
WINDOW = 64 * 2**20
"""Bytes of the receive window from the start: a real receiver begins with 64 kB and lets it grow,
and a congestion window beyond that could not be seen."""
POLL_S = 0.001
_LOADING_S = 60.0
"""The verifier may take a second for each instance of a large congestion control."""
GRACE_NS = 50_000_000
"""How long a transfer goes on beyond a round trip after its last observation."""

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_TCP_REPAIR, _TCP_REPAIR_WINDOW = 19, 29
_REPAIR_ON, _REPAIR_OFF_WITHOUT_PROBE = 1, -1
_HEADERS_BYTES = 100
"""At most, of IP and TCP with all options."""
_INFINITE_SSTHRESH = 0x7FFF_FFFF
_STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")


def carry_out(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Carries out connections at once and returns what was observed of each.

    ``asked``: ``folder``, ``congestion`` (instances to load) and ``connections``, each with ``name``,
    ``network`` (of the run description), ``rtt_ns``, ``congestion`` (the name that the server's socket
    uses), ``initial_window``, ``mss``, ``sysctls``, ``acts``, ``until`` (``delivered`` and ``sent`` at
    its end), ``limit_s`` and, where the path has random elements, ``seed``. An act is a write of
    ``segments`` or a switch to ``name``, due when ``delivered`` segments have been delivered and
    ``sent`` sent, and ``after_us`` later.

    Returned for each: ``samples`` (the sender when polled, as rows that differ),
    ``before_acts`` (which of them was the last before each act), ``arrivals`` (ns since
    the first act, bytes so far), ``congestion`` (names read back: at first and after each switch),
    ``late_ns`` (worst delay of an act), ``start_ns`` (the first act, from the run's epoch),
    ``timed_out``, ``hooks`` (what the instances' hooks cost, see ``cc load``), and the summaries of
    ``emulator`` and ``probe``. Tables are in ``folder/name``.
    """
    folder = Path(asked["folder"])
    with (folder / "log.txt").open("a") as log, ExitStack() as stack:
        transfers = [_Transfer(one, folder / one["name"], log, stack) for one in asked["connections"]]
        loaded = None
        if asked["congestion"]:
            loaded = Part(["cc", "load"], _run_file(folder, {"congestion": asked["congestion"]}), log)
            stack.callback(loaded.kill)
            loaded.wait_ready(_LOADING_S)
        for transfer in transfers:
            transfer.wait_ready()
        for transfer in transfers:
            transfer.connect(stack)
        _carry_out_all(transfers)
        observed = [transfer.observed() for transfer in transfers]
        hooks = loaded.stop()["hooks"] if loaded else []
        return [one | {"hooks": hooks} for one in observed]


def _run_file(folder: Path, part: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    run = {"format": 1, "id": "transfer", "seed": 1, "trace_dir": str(folder), "work_dir": str(folder)}
    path = folder / "run.json"
    path.write_text(json.dumps(run | part))
    return path


def _carry_out_all(transfers: list[_Transfer]) -> None:
    while going := [transfer for transfer in transfers if not transfer.over]:
        select.select([transfer.client for transfer in going], [], [], POLL_S)
        for transfer in going:
            transfer.step(time.monotonic_ns())
        time.sleep(POLL_S / 2)


@dataclass(frozen=True)
class _Info:
    """What ``struct tcp_info`` says of a sender; segments."""

    cwnd: int
    ssthresh: int | None
    state: str
    flight: int
    delivered: int
    sent: int
    retransmitted: int
    bytes_sent: int

    @classmethod
    def of(cls, sock: socket.socket) -> _Info:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 216)
        unacked, sacked, lost, retrans = struct.unpack_from("=4I", raw, 24)
        ssthresh, cwnd = struct.unpack_from("=2I", raw, 76)
        return cls(
            cwnd=cwnd,
            ssthresh=ssthresh if ssthresh < _INFINITE_SSTHRESH else None,
            state=_STATES[raw[1]],
            flight=unacked - sacked - lost + retrans,
            # The SYN's own acknowledgement counts as one delivery.
            delivered=struct.unpack_from("=I", raw, 192)[0] - 1,
            sent=struct.unpack_from("=I", raw, 156)[0],
            retransmitted=struct.unpack_from("=I", raw, 100)[0],
            bytes_sent=struct.unpack_from("=Q", raw, 200)[0],
        )


class _Transfer:
    """One connection on a path of its own."""

    def __init__(self, asked: dict[str, Any], folder: Path, log: IO[str], stack: ExitStack) -> None:
        self._asked = asked
        self._paths = namespaces.Namespaces.create()
        stack.callback(self._paths.close)
        namespaces.build(
            self._paths, [ADDRESS], initial_window=asked["initial_window"], sysctls=asked["sysctls"]
        )
        _shape(self._paths, asked["mss"])
        self._epoch = time.monotonic_ns()
        run_file = _run_file(
            folder,
            {
                "epoch_ns": self._epoch,
                "seed": asked.get("seed", 1),
                "network": asked["network"] | {"mtu": max(namespaces.MTU, asked["mss"] + _HEADERS_BYTES)},
                "probe": {"namespace_inode": namespaces.inode(self._paths.server)},
            },
        )
        self._parts = {
            "emulator": Part(["emulate"], run_file, log, self._paths.wire),
            "probe": Part(["probe-tcp"], run_file, log),
        }
        for part in self._parts.values():
            stack.callback(part.kill)
        self._acts = deque(asked["acts"])
        self._due: int | None = None
        self._waiting = 0
        self._received = 0
        self._started = 0
        self._end: int | None = None
        self._seen: _Info | None = None
        self.over = False
        self.server: Any = None
        self._found: dict[str, Any] = {
            "samples": [],
            "before_acts": [],
            "arrivals": [],
            "late_ns": 0,
            "timed_out": False,
        }

    def wait_ready(self) -> None:
        """Waits for the parts of the path."""
        for part in self._parts.values():
            part.wait_ready()

    def connect(self, stack: ExitStack) -> None:
        """Begins to connect; each connection does its first act as soon as it is established."""
        with self._paths.inside(self._paths.server):
            self._listener = stack.enter_context(socket.socket())
        with self._paths.inside(self._paths.client):
            self.client = stack.enter_context(socket.socket())
        for sock in (self._listener, self.client):
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER)
            sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, BUFFER)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, self._asked["mss"])
            sock.setblocking(False)
        self._listener.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._asked["congestion"].encode()
        )
        self._listener.bind((ADDRESS, PORT))
        self._listener.listen()
        self.client.connect_ex((ADDRESS, PORT))
        self._stack = stack
        self._started = time.monotonic_ns()

    def _accept(self, now: int) -> bool:
        """Time counts from here: some congestion controls measure from the start."""
        try:
            self.server = self._stack.enter_context(self._listener.accept()[0])
        except BlockingIOError:
            return False
        for sock, send, receive in ((self.server, True, False), (self.client, False, True)):
            _open_window(sock, send=send, receive=receive)
        self.server.setblocking(False)
        self._found["congestion"] = [_congestion(self.server)]
        self._started = now
        return True

    def step(self, now: int) -> None:
        """Reads, looks at the sender, and does what is due."""
        if self.server is None and not self._accept(now):
            if now - self._started > self._asked["limit_s"] * 1e9:
                raise RunFailed("the connection was not established")
            return
        with suppress(BlockingIOError):
            while data := self.client.recv(4 * 2**20):
                self._received += len(data)
                self._found["arrivals"].append((now - self._started, self._received))
        self._act(now)
        self._flush()
        self._maybe_end(now)

    def _look(self, now: int) -> _Info:
        info = _Info.of(self.server)
        if info != self._seen:
            self._seen = info
            self._found["samples"].append(vars(info) | {"time": now - self._started})
        return info

    def _act(self, now: int) -> None:
        info = self._look(now)
        while self._acts and not self._waiting:
            act = self._acts[0]
            due = self._due
            if due is None:
                if info.delivered < act["delivered"] or info.sent < act["sent"]:
                    return
                due = self._due = now + act["after_us"] * 1000
            if now < due:
                return
            self._acts.popleft()
            self._found["before_acts"].append(len(self._found["samples"]) - 1)
            self._found["late_ns"] = max(self._found["late_ns"], now - due)
            self._due = None
            if act["kind"] == "write":
                self._waiting += act["segments"] * self._asked["mss"]
                self._flush()
            else:
                self.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, act["name"].encode())
                self._found["congestion"].append(_congestion(self.server))
            info = self._look(now)

    def _flush(self) -> None:
        with suppress(BlockingIOError):
            while self._waiting:
                self._waiting -= self.server.send(bytes(min(self._waiting, 4 * 2**20)))

    def _maybe_end(self, now: int) -> None:
        until, info = self._asked["until"], self._look(now)
        reached = info.delivered >= until["delivered"] and info.sent >= until["sent"]
        if self._end is None and not self._acts and reached:
            self._end = now + self._asked["rtt_ns"] + GRACE_NS
        if now - self._started > self._asked["limit_s"] * 1e9:
            self._found["timed_out"] = True
            self._end = now
        self.over = self._end is not None and now >= self._end

    def observed(self) -> dict[str, Any]:
        """Stops the parts and returns what ``carry_out`` says."""
        reports = {name: part.stop() for name, part in self._parts.items()}
        return self._found | reports | {"start_ns": self._started - self._epoch}


def _shape(paths: namespaces.Namespaces, mss: int) -> None:
    """Packets of one segment each, an acknowledgement for each, and room for them in the frames."""
    mtu = max(namespaces.MTU, mss + _HEADERS_BYTES)
    for fd, names in ((paths.wire, ("c1", "s1")), (paths.client, ("c0",)), (paths.server, ("s0",))):
        with paths.inside(fd), IPRoute() as ip:
            for name in names:
                [index] = ip.link_lookup(ifname=name)
                ip.link("set", index=index, mtu=mtu, gso_max_segs=1)
    with paths.inside(paths.client), IPRoute() as ip:
        [index] = ip.link_lookup(ifname="c0")
        ip.route(
            "replace", dst="default", gateway=namespaces.SERVER_ADDRESS, oif=index, metrics={"quickack": 1}
        )


def _open_window(sock: socket.socket, *, send: bool, receive: bool) -> None:
    """Opens the window of an idle connection in one direction, as if it had grown (TCP_REPAIR_WINDOW)."""
    sock.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, _REPAIR_ON)
    form = struct.Struct("=5I")
    raw = sock.getsockopt(socket.IPPROTO_TCP, _TCP_REPAIR_WINDOW, form.size)
    snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup = form.unpack(raw)
    if send:
        snd_wnd = max_window = WINDOW
    if receive:
        rcv_wnd = WINDOW
    window = form.pack(snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup)
    sock.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR_WINDOW, window)
    sock.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, _REPAIR_OFF_WITHOUT_PROBE)


def _congestion(sock: socket.socket) -> str:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
