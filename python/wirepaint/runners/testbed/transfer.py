"""Bulk transfers without a browser: server to client over the emulator, by an exact timetable.

``carry_out`` runs inside a cell and carries out several transfers at once, each on a path of its own.
A transfer is one connection, or several that share the path, the server's network namespace and
the groups of a congestion control. The server's applications act after N delivered and sent segments,
not at a time, so a busy machine delays a transfer but does not change it.
"""

from __future__ import annotations

import ipaddress
import json
import select
import socket
import struct
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyroute2 import IPRoute

from wirepaint import dataplane
from wirepaint.dataplane.description import Congestion, Host, Interfaces, Run, Segment
from wirepaint.errors import RunFailed
from wirepaint.runners.testbed import namespaces
from wirepaint.runners.testbed.process import Part, spawn

PORT = 5001
BUFFER = 128 * 2**20
"""Bytes of the socket buffers, forced beyond the system's maximum."""
WINDOW = 64 * 2**20
"""Bytes of the receive window from the start. A real receiver begins with 64 kB and lets it grow;
that would hide a larger congestion window."""
POLL_S = 0.001
LOADING_S = 120.0
"""The verifier may take seconds for each instance of a large congestion control on a busy machine."""
GRACE_NS = 50_000_000
"""A transfer ends one round trip and this time after its last observation."""
BEFORE_OPEN = "reno"
"""Congestion control of an established connection until its act ``open``."""

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_TCP_REPAIR, _TCP_REPAIR_WINDOW = 19, 29
_REPAIR_ON, _REPAIR_OFF_WITHOUT_PROBE = 1, -1
_HEADERS_BYTES = 100
"""Upper bound for IP and TCP with all options."""
_INFINITE_SSTHRESH = 0x7FFF_FFFF
_STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")
_ROUTES = 100
"""Number of the first routing table. Each connection has a table, since a route sets the initial window."""
_GATEWAYS_V6 = ("fd00:64::2", "fd00:64::1")
"""Addresses of the client and the server on the path, for IPv6."""
_NO_DAD = 0x02


def server_network(server: int, *, ipv6: bool = False) -> str:
    """The network of a server's addresses, as groups of connections name it."""
    return str(ipaddress.ip_network(f"fd00:65:0:{server:x}::/64" if ipv6 else f"10.65.{server}.0/24"))


def server_address(place: int, *, server: int = 0, ipv6: bool = False) -> str:
    """A server's address for the connection at ``place`` of its transfer; each has its own."""
    return str(ipaddress.ip_network(server_network(server, ipv6=ipv6))[place + 1])


def carry_out(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Carries out transfers in parallel and returns the observations of each.

    ``asked``: ``folder``, ``congestion`` (instances to load) and ``transfers``, each with ``name``,
    ``path`` (``down`` and ``up`` of a segment), ``rtt_ns``, ``connections``, ``sysctls``, ``acts``, ``until``
    (``reached`` at its end), ``limit_s`` and, where the path has random elements, ``seed``. A connection
    has ``congestion`` (the name that the server's socket uses), ``initial_window``, ``mss`` and, where
    its client's address matters, ``to``, and the number of its ``server`` where that is not 0.

    An act has a ``kind`` and, except a ``look`` at the groups, a ``connection`` by its place. Kinds: a
    ``write`` of ``segments``, a ``switch`` to ``name``, a ``close``, an ``open``. A connection without an
    ``open`` has its congestion control from the start. Acts come in order, each ``after_us`` after every
    connection has ``reached`` its numbers of segments delivered and sent.

    Returned for each: ``connections`` with ``samples`` (polled states of the sender, without repetitions),
    ``before_acts`` (index of the last sample before each write and switch), ``arrivals`` (ns since
    the first act, bytes so far) and ``congestion`` (names read back: at first and after each switch);
    ``looks`` (the groups in the server's namespace, as ``cc groups`` prints them), ``late_ns`` (worst
    delay of an act), ``start_ns`` (the first act, from the run's epoch), ``timed_out``, ``hooks`` (cost of
    the instances' hooks, see ``cc load``), and the summaries of ``emulator`` and ``probe``. Tables
    are in ``folder/name``.
    """
    folder = Path(asked["folder"])
    with (folder / "log.txt").open("a") as log, ExitStack() as stack:
        groups = _Groups(log, stack) if _any_act(asked["transfers"], "look") else None
        transfers = [_Transfer(one, folder / one["name"], log, stack, groups) for one in asked["transfers"]]
        loaded = None
        if asked["congestion"]:
            instances = [Congestion(**one) for one in asked["congestion"]]
            run = Run(id="transfer", trace_dir=folder, work_dir=folder, congestion=instances)
            loaded = Part(["cc", "load"], run.write(), log)
            stack.callback(loaded.kill)
            loaded.wait_ready(LOADING_S)
        for transfer in transfers:
            transfer.wait_ready()
        for transfer in transfers:
            transfer.connect()
        _carry_out_all(transfers)
        observed = [transfer.observed() for transfer in transfers]
        hooks = loaded.stop()["hooks"] if loaded else []
        return [one | {"hooks": hooks} for one in observed]


def _any_act(transfers: Sequence[dict[str, Any]], kind: str) -> bool:
    return any(act["kind"] == kind for transfer in transfers for act in transfer["acts"])


def _carry_out_all(transfers: list[_Transfer]) -> None:
    while going := [transfer for transfer in transfers if not transfer.over]:
        clients = [client for transfer in going for client in transfer.clients()]
        select.select(clients, [], [], POLL_S)
        for transfer in going:
            transfer.step(time.monotonic_ns())
        time.sleep(POLL_S / 2)


class _Groups:
    """Reads the groups of connections on this host."""

    def __init__(self, log: IO[str], stack: ExitStack) -> None:
        argv = [dataplane.program(), "cc", "groups", "--each-line"]
        pipe = subprocess.PIPE
        self._process = stack.enter_context(spawn(argv, stdin=pipe, stdout=pipe, stderr=log))
        stack.callback(self._process.kill)

    def now(self, namespace: int) -> list[dict[str, Any]]:
        """The groups of senders in a network namespace, given by its inode."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RunFailed("cc groups ended; see the log")
        return [group for group in json.loads(line) if group["namespace"] == namespace]


@dataclass(frozen=True)
class _Info:
    """State of a sender from ``struct tcp_info``; in segments."""

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


class _Connection:
    """One connection of a transfer, with its observations."""

    def __init__(self, asked: dict[str, Any], place: int) -> None:
        self.asked = asked
        self.to = ipaddress.ip_address(asked.get("to", namespaces.CLIENT_ADDRESS))
        mapped = self.to.ipv4_mapped if isinstance(self.to, ipaddress.IPv6Address) else None
        self.client_address = mapped or self.to
        self.ipv6 = self.client_address.version == 6
        self.server_address = server_address(place, server=asked.get("server", 0), ipv6=self.ipv6)
        self.server: Any = None
        self.waiting = 0
        self._received = 0
        self._seen: _Info | None = None
        self.closed = False
        self.found: dict[str, Any] = {"samples": [], "before_acts": [], "arrivals": [], "congestion": []}

    def connect(self, paths: namespaces.Namespaces, opens_later: bool, stack: ExitStack) -> None:
        """Begins to connect."""
        listening = socket.AF_INET6 if self.to.version == 6 else socket.AF_INET
        family = socket.AF_INET6 if self.ipv6 else socket.AF_INET
        with paths.inside(paths.server):
            self._listener = stack.enter_context(socket.socket(listening))
        with paths.inside(paths.client):
            self.client = stack.enter_context(socket.socket(family))
        for sock in (self._listener, self.client):
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER)
            sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, BUFFER)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, self.asked["mss"])
            sock.setblocking(False)
        _choose(self._listener, BEFORE_OPEN if opens_later else self.asked["congestion"])
        mapped = listening == socket.AF_INET6 and not self.ipv6
        self._listener.bind((f"::ffff:{self.server_address}" if mapped else self.server_address, PORT))
        self._listener.listen()
        self.client.bind((str(self.client_address), 0))
        self.client.connect_ex((self.server_address, PORT))
        self._stack = stack

    def established(self, leaves: bool) -> bool:
        """True once the server has accepted. If the server ``leaves``, it must also have an unread byte,
        so that closing ends the connection at once."""
        if self.server is None:
            with suppress(BlockingIOError):
                self.server = self._stack.enter_context(self._listener.accept()[0])
                for sock, send, receive in ((self.server, True, False), (self.client, False, True)):
                    _open_window(sock, send=send, receive=receive)
                self.server.setblocking(False)
                self.found["congestion"].append(_congestion(self.server))
                if leaves:
                    self.client.send(b"x")
        if self.server is None or not leaves:
            return self.server is not None
        return bool(select.select([self.server], [], [], 0)[0])

    def read(self, now: int) -> None:
        """Reads what has arrived; ``now`` counts from the first act."""
        with suppress(BlockingIOError, ConnectionResetError):
            while data := self.client.recv(4 * 2**20):
                self._received += len(data)
                self.found["arrivals"].append((now, self._received))

    def look(self, now: int) -> _Info:
        """The sender's state now, or its last one if closed."""
        if self.closed:
            assert self._seen is not None
            return self._seen
        info = _Info.of(self.server)
        if info != self._seen:
            self._seen = info
            self.found["samples"].append(vars(info) | {"time": now})
        return info

    def do(self, act: dict[str, Any]) -> None:
        """Carries out an act of this connection."""
        if act["kind"] == "close":
            self.server.close()
            self.closed = True
            self.waiting = 0
        elif act["kind"] == "open":
            _choose(self.server, self.asked["congestion"])
            self.found["congestion"] = [_congestion(self.server)]
        else:
            self.found["before_acts"].append(len(self.found["samples"]) - 1)
            if act["kind"] == "write":
                self.waiting += act["segments"] * self.asked["mss"]
                self.flush()
            else:
                _choose(self.server, act["name"])
                self.found["congestion"].append(_congestion(self.server))

    def flush(self) -> None:
        """Hands TCP as many of the written bytes as it takes."""
        with suppress(BlockingIOError):
            while self.waiting:
                self.waiting -= self.server.send(bytes(min(self.waiting, 4 * 2**20)))


class _Transfer:
    """The connections of a transfer, on a path of their own."""

    def __init__(
        self, asked: dict[str, Any], folder: Path, log: IO[str], stack: ExitStack, groups: _Groups | None
    ) -> None:
        self._asked, self._stack, self._groups = asked, stack, groups
        self._connections = [_Connection(one, place) for place, one in enumerate(asked["connections"])]
        self._paths = namespaces.Namespaces.create()
        stack.callback(self._paths.close)
        addresses = [one.server_address for one in self._connections if not one.ipv6]
        # Each connection has a route, with its initial window.
        namespaces.build(self._paths, addresses, initial_window=10, sysctls=asked["sysctls"])
        mss = max(one["mss"] for one in asked["connections"])
        _shape(self._paths, mss)
        _route(self._paths, self._connections)
        self._epoch = time.monotonic_ns()
        folder.mkdir(exist_ok=True)
        inode = namespaces.inode(self._paths.server)
        mtu = max(namespaces.MTU, mss + _HEADERS_BYTES)
        congestion = asked["connections"][0]["congestion"]
        run_file = Run(
            id="transfer",
            seed=asked.get("seed", 1),
            epoch_ns=self._epoch,
            trace_dir=folder,
            work_dir=folder,
            hosts=[Host(name="server", role="server", congestion=congestion, namespace_inode=inode)],
            segments=[Segment(**asked["path"], interfaces=Interfaces(), mtu=mtu)],
        ).write()
        self._parts = {
            "emulator": Part(["emulate"], run_file, log, self._paths.wire),
            "probe": Part(["probe-tcp"], run_file, log),
        }
        for part in self._parts.values():
            stack.callback(part.kill)
        self._acts = deque(asked["acts"])
        self._leaves = _any_act([asked], "close")
        self._due: int | None = None
        self._started = 0
        self._established = False
        self._end: int | None = None
        self.over = False
        self._found: dict[str, Any] = {"looks": [], "late_ns": 0, "timed_out": False}

    def wait_ready(self) -> None:
        """Waits for the parts of the path."""
        for part in self._parts.values():
            part.wait_ready()

    def connect(self) -> None:
        """Begins to connect; the first act comes once all are established."""
        later = {act["connection"] for act in self._asked["acts"] if act["kind"] == "open"}
        for place, connection in enumerate(self._connections):
            connection.connect(self._paths, place in later, self._stack)
        self._started = time.monotonic_ns()

    def clients(self) -> list[socket.socket]:
        """The receiving ends that may have something to read."""
        return [connection.client for connection in self._connections if not connection.closed]

    def step(self, now: int) -> None:
        """Reads, looks at the senders, and does what is due."""
        if not self._established:
            self._establish(now)
            return
        for connection in self._connections:
            connection.read(now - self._started)
        self._act(now)
        for connection in self._connections:
            connection.flush()
        self._maybe_end(now)

    def _establish(self, now: int) -> None:
        established = [connection.established(self._leaves) for connection in self._connections]
        if all(established):
            # Time counts from here: some congestion controls measure from the start.
            self._established, self._started = True, now
            self.step(now)
        elif now - self._started > self._asked["limit_s"] * 1e9:
            missing = established.index(False)
            raise RunFailed(f"connection {missing} of {self._asked['name']} was not established")

    def _reached(self, now: int, wanted: Sequence[Sequence[int]]) -> bool:
        """Whether every open connection has reached its ``wanted`` segments (delivered, sent)."""
        looks = [(connection, connection.look(now - self._started)) for connection in self._connections]
        return all(
            connection.closed or (info.delivered >= delivered and info.sent >= sent)
            for (connection, info), (delivered, sent) in zip(looks, wanted, strict=True)
        )

    def _act(self, now: int) -> None:
        while self._acts and not any(connection.waiting for connection in self._connections):
            act = self._acts[0]
            due = self._due
            if due is None:
                if not self._reached(now, act["reached"]):
                    return
                due = self._due = now + act["after_us"] * 1000
            if now < due:
                return
            self._acts.popleft()
            self._due = None
            if act["kind"] == "look":
                assert self._groups is not None
                self._found["looks"].append(self._groups.now(namespaces.inode(self._paths.server)))
                now = time.monotonic_ns()
            else:
                self._connections[act["connection"]].do(act)
            self._found["late_ns"] = max(self._found["late_ns"], now - due)

    def _maybe_end(self, now: int) -> None:
        reached = self._reached(now, self._asked["until"]["reached"])
        if self._end is None and not self._acts and reached:
            self._end = now + self._asked["rtt_ns"] + GRACE_NS
        if now - self._started > self._asked["limit_s"] * 1e9:
            self._found["timed_out"] = True
            self._end = now
        self.over = self._end is not None and now >= self._end

    def observed(self) -> dict[str, Any]:
        """Stops the parts and returns the observations (see ``carry_out``)."""
        reports = {name: part.stop() for name, part in self._parts.items()}
        connections = [connection.found for connection in self._connections]
        start = {"start_ns": self._started - self._epoch}
        return self._found | reports | start | {"connections": connections}


def _route(paths: namespaces.Namespaces, connections: Sequence[_Connection]) -> None:
    """Gives client and server the addresses of the connections, and each connection a route."""
    if any(connection.ipv6 for connection in connections):
        _enable_ipv6(paths)
    with paths.inside(paths.client), IPRoute() as ip:
        [loopback], [device] = ip.link_lookup(ifname="lo"), ip.link_lookup(ifname="c0")
        for address in {connection.client_address for connection in connections}:
            if str(address) != namespaces.CLIENT_ADDRESS:
                length = address.max_prefixlen
                ip.addr("add", index=loopback, address=str(address), prefixlen=length)
        # An acknowledgement for each segment.
        gateways = [namespaces.SERVER_ADDRESS]
        gateways += [_GATEWAYS_V6[1]] if any(connection.ipv6 for connection in connections) else []
        for gateway in gateways:
            ip.route("replace", dst="default", gateway=gateway, oif=device, metrics={"quickack": 1})
    with paths.inside(paths.server), IPRoute() as ip:
        [loopback], [device] = ip.link_lookup(ifname="lo"), ip.link_lookup(ifname="s0")
        for place, connection in enumerate(connections):
            family = socket.AF_INET6 if connection.ipv6 else socket.AF_INET
            length = connection.client_address.max_prefixlen
            if connection.ipv6:
                ip.addr("add", index=loopback, address=connection.server_address, prefixlen=length)
            table, source = _ROUTES + place, connection.server_address
            ip.rule("add", family=family, src=source, src_len=length, table=table, priority=table)
            ip.route(
                "add",
                dst="default",
                table=table,
                gateway=_GATEWAYS_V6[0] if connection.ipv6 else namespaces.CLIENT_ADDRESS,
                oif=device,
                metrics={"initcwnd": connection.asked["initial_window"]},
            )


def _enable_ipv6(paths: namespaces.Namespaces) -> None:
    ends = ((paths.client, "c0", _GATEWAYS_V6[0]), (paths.server, "s0", _GATEWAYS_V6[1]))
    for fd, name, address in ends:
        with paths.inside(fd), IPRoute() as ip:
            settings = Path("/proc/sys/net/ipv6/conf")
            for setting in ("accept_dad", "router_solicitations", "disable_ipv6"):
                for place in ("all", "default", "lo", name):
                    (settings / place / setting).write_text("0")
            [index] = ip.link_lookup(ifname=name)
            ip.addr("add", index=index, address=address, prefixlen=64, flags=_NO_DAD)


def _shape(paths: namespaces.Namespaces, mss: int) -> None:
    """Packets of one segment each, an acknowledgement for each, and room for them in the frames."""
    mtu = max(namespaces.MTU, mss + _HEADERS_BYTES)
    for fd, names in ((paths.wire, ("c1", "s1")), (paths.client, ("c0",)), (paths.server, ("s0",))):
        with paths.inside(fd), IPRoute() as ip:
            for name in names:
                [index] = ip.link_lookup(ifname=name)
                ip.link("set", index=index, mtu=mtu, gso_max_segs=1)


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


def _choose(sock: socket.socket, congestion: str) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())


def _congestion(sock: socket.socket) -> str:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
