"""The path of a run: network namespaces and the links between them.

```
client ── c0 ═══ c1 ── wire (emulator) ── s1 ═══ s0 ── server
client ── c0 ═══ c1 ── wire (emulator) ── s1 ═══ s0 ── proxy ── p0 ═══ o0 ── server
```
Several users are behind an edge, which only forwards. It is then at the client's end of the path:
```
user ──── c0 ═══ e0 ── edge ── c0 ═══ c1 ── wire ...
user ──── c0 ═══ e1 ──┤
light ─── c0 ═══ e2 ──┘
users
```
Light users share a namespace, with an address each.
The namespaces have no names: they live as descriptors of the process that made them and end
with it. Neighbours are static and IPv6 is off, so the path carries only packets of the run.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyroute2 import IPRoute

from wirepaint import linux
from wirepaint.runners import description
from wirepaint.runners.testbed import receive

CLIENT_ADDRESS = description.CLIENT_ADDRESS
SERVER_ADDRESS = "10.64.0.1"
EDGE_ADDRESS = "10.62.0.1"
CLIENTS = "10.64.0.0/16"
"""The network of all clients."""
UPLINK_ADDRESS, BEHIND_ADDRESS = "10.66.0.1", "10.66.0.2"
"""Of a proxy towards the servers, and of their end."""
MTU = 1500
_PROXIED = 100
"""Routing table of a proxy's connections with clients; those of flows in its namespace use the main one."""
_SYSCTLS = Path("/proc/sys")
_MAC = {
    "c0": "02:77:70:00:00:c0",
    "c1": "02:77:70:00:00:c1",
    "s0": "02:77:70:00:00:50",
    "s1": "02:77:70:00:00:51",
    "p0": "02:77:70:00:00:b0",
    "o0": "02:77:70:00:00:0b",
}

BASELINE_SYSCTLS: Mapping[str, str] = description.BASELINE_SYSCTLS | {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.tcp_congestion_control": "reno",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_no_ssthresh_metrics_save": "1",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_dsack": "1",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_ecn": "0",
    "net.ipv4.tcp_autocorking": "0",
    "net.ipv4.tcp_mtu_probing": "0",
    "net.ipv4.tcp_max_syn_backlog": "4096",
    "net.core.somaxconn": "4096",
}
"""Set and read back in the namespaces of hosts before anything else."""
_END_SOON = {"net.ipv4.tcp_orphan_retries": "1"}
"""After a kill, the browser's closed connections must not hold its namespace for minutes."""


@dataclass(frozen=True)
class Namespaces:
    """Descriptors of the namespaces of one path."""

    home: int
    client: int
    """At the client's end of the path: the one client, or the edge."""
    wire: int
    server: int
    users: tuple[int, ...] = ()
    """Behind the edge; empty without one."""
    proxy: int | None = None

    @classmethod
    def create(cls, users: int = 0, *, proxy: bool = False) -> Namespaces:
        """Makes empty namespaces, with ``users`` behind an edge; the caller stays in its own."""
        home = _current()
        made = []
        try:
            for _ in range(3 + users + proxy):
                linux.unshare(linux.CLONE_NEWNET)
                made.append(_current())
        finally:
            linux.setns(home)
        client, wire, server, *behind = made
        return cls(home, client, wire, server, tuple(behind[:users]), behind[users] if proxy else None)

    @property
    def far(self) -> int:
        """The namespace at the far end of the emulated link: the proxy's, else the server's."""
        return self.server if self.proxy is None else self.proxy

    @property
    def clients(self) -> tuple[int, ...]:
        """Where clients are."""
        return self.users or (self.client,)

    @contextmanager
    def inside(self, fd: int) -> Iterator[None]:
        """Runs the body inside a namespace. The calling thread must be the only one."""
        linux.setns(fd)
        try:
            yield
        finally:
            linux.setns(self.home)

    def close(self) -> None:
        """Closes the descriptors; the namespaces end with their last process."""
        proxy = () if self.proxy is None else (self.proxy,)
        for fd in (self.home, self.client, self.wire, self.server, *self.users, *proxy):
            os.close(fd)


def inode(fd: int) -> int:
    """Inode of a namespace: its identity on this host."""
    return os.fstat(fd).st_ino


def _current() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def build(
    namespaces: Namespaces,
    server_addresses: Iterable[str],
    *,
    initial_window: int,
    sysctls: Mapping[str, str] | None = None,
    emulated: bool = True,
    users: Sequence[Sequence[str]] = (),
) -> dict[str, str]:
    """Links the namespaces and returns the sysctls in force in the server's namespace.

    ``initial_window`` (segments) goes on the server's route to the clients. ``users`` are the
    addresses in each of ``namespaces.users``, behind the edge. ``sysctls`` extend and
    override the baseline. Without ``emulated``, client and server are the two ends of one bare veth
    pair, for benchmarks to compare with. Raises ``OSError`` when the kernel refuses a setting or takes
    another value than asked.
    """
    wanted = {**BASELINE_SYSCTLS, **(sysctls or {})}
    with namespaces.inside(namespaces.wire), IPRoute() as ip:
        _set_sysctls({key: value for key, value in BASELINE_SYSCTLS.items() if "ipv6" in key})
        if emulated:
            _veth(ip, "c1", "c0", namespaces.client)
            _veth(ip, "s1", "s0", namespaces.far)
            for name in ("c1", "s1"):
                _offloads_off(name)
                ip.link("set", index=_index(ip, name), state="up")
    if not emulated:
        with namespaces.inside(namespaces.client), IPRoute() as ip:
            _veth(ip, "c0", "s0", namespaces.far)
    with namespaces.inside(namespaces.client), IPRoute() as ip:
        in_force = _set_sysctls(wanted)
        _set_sysctls(_END_SOON)
        nearest = EDGE_ADDRESS if users else CLIENT_ADDRESS
        index = _end_up(ip, "c0", nearest)
        receive.on_other_cpus("c0")
        _leads_to(ip, index, SERVER_ADDRESS, _MAC["s0"])
    if users:
        _behind_the_edge(namespaces, users, wanted)
    with namespaces.inside(namespaces.far), IPRoute() as ip:
        in_force = _set_sysctls(wanted)
        index = _end_up(ip, "s0", SERVER_ADDRESS)
        # In interrupts of other tasks some kernels run no BPF program (docs/guide/congestion.md,
        # "Unseen ACKs").
        _offload("s0", "gro", on=emulated)
        if not (emulated and receive.on_a_thread("s0")):
            _offload("s0", "gro", on=False)
            receive.on_other_cpus("s0")
        loopback = _index(ip, "lo")
        for address in server_addresses:
            ip.addr("add", index=loopback, address=address, prefixlen=32)
        ip.neigh("replace", dst=nearest, lladdr=_MAC["c0"], ifindex=index, state="permanent")
        metrics = {"initcwnd": initial_window}
        if users:
            ip.route("add", dst=f"{nearest}/32", oif=index, scope="link")
            ip.route("add", dst=CLIENTS, gateway=nearest, oif=index, metrics=metrics)
        else:
            ip.route("add", dst=f"{nearest}/32", oif=index, scope="link", metrics=metrics)
    return in_force


def _behind_the_edge(
    namespaces: Namespaces, users: Sequence[Sequence[str]], wanted: Mapping[str, str]
) -> None:
    """Links the users' namespaces with the edge, which forwards between them and the path."""
    with namespaces.inside(namespaces.client), IPRoute() as ip:
        _set_sysctls({"net.ipv4.ip_forward": "1"})
        for number, (addresses, fd) in enumerate(zip(users, namespaces.users, strict=True)):
            near, place = f"e{number}", f"{number >> 8:02x}:{number & 255:02x}"
            mac, their_mac = f"02:77:70:01:{place}", f"02:77:70:02:{place}"
            _veth(ip, near, "c0", fd, mac, their_mac)
            _offloads_off(near)
            index = _index(ip, near)
            ip.link("set", index=index, state="up")
            for address in addresses:
                ip.neigh("replace", dst=address, lladdr=their_mac, ifindex=index, state="permanent")
                ip.route("add", dst=f"{address}/32", oif=index, scope="link")
            with namespaces.inside(fd), IPRoute() as theirs:
                _set_sysctls(wanted)
                _set_sysctls(_END_SOON)
                first, *others = addresses
                theirs_index = _end_up(theirs, "c0", first)
                for address in others:
                    theirs.addr("add", index=theirs_index, address=address, prefixlen=32)
                _leads_to(theirs, theirs_index, EDGE_ADDRESS, mac)
            linux.setns(namespaces.client)


def _leads_to(ip: IPRoute, index: int, gateway: str, mac: str) -> None:
    """Routes everything over a device to its neighbour."""
    ip.neigh("replace", dst=gateway, lladdr=mac, ifindex=index, state="permanent")
    ip.route("add", dst=f"{gateway}/32", oif=index, scope="link")
    ip.route("add", dst="default", gateway=gateway, oif=index)


def speak(namespaces: Namespaces, client: int, congestion: str) -> None:
    """Gives a client's connections a congestion control that the kernel knows by now.

    By its route: the kernel lets no network namespace but its first have any congestion control as default.
    """
    with namespaces.inside(client), IPRoute() as ip:
        gateway = EDGE_ADDRESS if namespaces.users else SERVER_ADDRESS
        metrics = {"cc_algo": congestion}
        ip.route("replace", dst="default", gateway=gateway, oif=_index(ip, "c0"), metrics=metrics)


@dataclass(frozen=True)
class Sending:
    """How the sockets of one side of a proxy send."""

    congestion: str
    """As the kernel knows it."""
    initial_window: int
    """Segments."""


def put_behind_proxy(
    namespaces: Namespaces,
    server_addresses: Iterable[str],
    *,
    to_clients: Sending,
    to_servers: Sending,
    sysctls: Mapping[str, str] | None = None,
) -> None:
    """Links proxy and server, and sets how the proxy sends. Call after :func:`build`.

    A program such as squid cannot choose the congestion control of its sockets. Its routes do (``congctl``),
    so the kernel must have it already. The servers set their own; their initial window is that of
    ``to_servers``.
    Raises ``OSError`` when the kernel refuses a setting.
    """
    assert namespaces.proxy is not None
    with namespaces.inside(namespaces.proxy), IPRoute() as ip:
        _veth(ip, "p0", "o0", namespaces.server)
        index = _end_up(ip, "p0", UPLINK_ADDRESS)
        receive.on_other_cpus("p0")
        ip.neigh("replace", dst=BEHIND_ADDRESS, lladdr=_MAC["o0"], ifindex=index, state="permanent")
        ip.route("add", dst=f"{BEHIND_ADDRESS}/32", oif=index, scope="link")
        out = {"initcwnd": to_servers.initial_window, "cc_algo": to_servers.congestion}
        ip.route("add", dst="default", gateway=BEHIND_ADDRESS, oif=index, metrics=out)
        back = {"initcwnd": to_clients.initial_window, "cc_algo": to_clients.congestion}
        [towards] = ip.link_lookup(ifname="s0")
        if namespaces.users:
            ip.route("add", dst=CLIENTS, gateway=EDGE_ADDRESS, oif=towards, table=_PROXIED, metrics=back)
        else:
            ip.route(
                "add", dst=f"{CLIENT_ADDRESS}/32", oif=towards, scope="link", table=_PROXIED, metrics=back
            )
        ip.rule("add", src=SERVER_ADDRESS, src_len=32, table=_PROXIED)
    with namespaces.inside(namespaces.server), IPRoute() as ip:
        _set_sysctls({**BASELINE_SYSCTLS, **(sysctls or {})})
        index = _end_up(ip, "o0", BEHIND_ADDRESS)
        receive.on_other_cpus("o0")
        loopback = _index(ip, "lo")
        for address in server_addresses:
            ip.addr("add", index=loopback, address=address, prefixlen=32)
        ip.neigh("replace", dst=UPLINK_ADDRESS, lladdr=_MAC["p0"], ifindex=index, state="permanent")
        window = {"initcwnd": to_servers.initial_window}
        ip.route("add", dst=f"{UPLINK_ADDRESS}/32", oif=index, scope="link", metrics=window)


def _veth(
    ip: IPRoute, near: str, far: str, far_namespace: int, mac: str | None = None, far_mac: str | None = None
) -> None:
    ip.link(
        "add",
        ifname=near,
        kind="veth",
        mtu=MTU,
        address=mac or _MAC[near],
        peer={"ifname": far, "net_ns_fd": far_namespace, "mtu": MTU, "address": far_mac or _MAC[far]},
    )


def _index(ip: IPRoute, name: str) -> int:
    [index] = ip.link_lookup(ifname=name)
    return index


def _end_up(ip: IPRoute, name: str, address: str) -> int:
    ip.link("set", index=_index(ip, "lo"), state="up")
    index = _index(ip, name)
    ip.addr("add", index=index, address=address, prefixlen=32)
    _offloads_off(name)
    ip.link("set", index=index, state="up")
    return index


def _set_sysctls(wanted: Mapping[str, str]) -> dict[str, str]:
    in_force = {}
    for key, value in wanted.items():
        path = _SYSCTLS / key.replace(".", "/")
        if not path.exists():
            raise OSError(f"sysctl {key}: a network namespace of this kernel does not have it")
        path.write_text(value)
        # The kernel separates numbers by tabs, a person as they like.
        asked, in_force[key] = (" ".join(text.split()) for text in (value, path.read_text()))
        if in_force[key] != asked:
            raise OSError(f"sysctl {key}: asked for {asked}, the kernel took {in_force[key]}")
    return in_force


SIOCETHTOOL = 0x8946
_ETHTOOL_SETTERS = {
    "tx checksum": 0x0000_0017,
    "tso": 0x0000_001F,
    "gso": 0x0000_0024,
    "gro": 0x0000_002C,
}


def _offloads_off(name: str) -> None:
    """Turns every merging or deferring offload off: the emulator must see real packets."""
    for what in _ETHTOOL_SETTERS:
        _offload(name, what, on=False)


def _offload(name: str, what: str, *, on: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        value = array.array("B", struct.pack("=II", _ETHTOOL_SETTERS[what], on))
        request = struct.pack("16sP", name.encode(), value.buffer_info()[0])
        try:
            fcntl.ioctl(control, SIOCETHTOOL, request)
        except OSError as error:
            raise OSError(error.errno, f"ethtool {what} {on} on {name}: {error.strerror}") from error
