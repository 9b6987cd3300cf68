"""The path of a run: network namespaces and the links between them.

```
client ── c0 ═══ c1 ── wire (emulator) ── s1 ═══ s0 ── server
```
Proxies have namespaces of their own, on both sides of the wire (see ``chain``).
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
from itertools import islice
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from wirepaint import linux
from wirepaint.runners import description
from wirepaint.runners.testbed import receive

CLIENT_ADDRESS = description.CLIENT_ADDRESS
SERVER_ADDRESS = "10.64.0.1"
EDGE_ADDRESS = "10.62.0.1"
CLIENTS = "10.64.0.0/16"
"""The network of all clients."""
CLOSE_ADDRESS = "10.62.1.1"
"""At the near end of the wire, of a proxy that stands there."""
MTU = 1500
_SYSCTLS = Path("/proc/sys")
_MAC = {
    "c0": "02:77:70:00:00:c0",
    "c1": "02:77:70:00:00:c1",
    "s0": "02:77:70:00:00:50",
    "s1": "02:77:70:00:00:51",
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
NO_IPV6 = {key: value for key, value in BASELINE_SYSCTLS.items() if "ipv6" in key}
"""Of a wire's namespace."""
_END_SOON = {"net.ipv4.tcp_orphan_retries": "1"}
"""After a kill, the browser's closed connections must not hold its namespace for minutes."""


@dataclass(frozen=True)
class Namespaces:
    """Descriptors of the namespaces of one path."""

    home: int
    client: int
    """The one client, or the edge."""
    wire: int
    server: int
    users: tuple[int, ...] = ()
    """Behind the edge; empty without one."""
    near: tuple[int, ...] = ()
    """Proxies between the clients and the wire."""
    beyond: tuple[int, ...] = ()
    """Proxies between the wire and the servers."""
    wires: tuple[int, ...] = ()
    """Of other emulated hops."""

    @classmethod
    def create(cls, users: int = 0, *, near: int = 0, beyond: int = 0, wires: int = 0) -> Namespaces:
        """Makes empty namespaces, with ``users`` behind an edge; the caller stays in its own."""
        home = _current()
        made = []
        try:
            for _ in range(3 + users + near + beyond + wires):
                linux.unshare(linux.CLONE_NEWNET)
                made.append(_current())
        finally:
            linux.setns(home)
        client, wire, server, *others = made
        rest = iter(others)
        return cls(
            home, client, wire, server, *(tuple(islice(rest, n)) for n in (users, near, beyond, wires))
        )

    @property
    def far(self) -> int:
        """At the far end of the wire: a proxy, else the server."""
        return self.beyond[0] if self.beyond else self.server

    @property
    def near_end(self) -> int:
        """At the near end of the wire: a proxy, else the client or the edge."""
        return self.near[-1] if self.near else self.client

    @property
    def proxy(self) -> int:
        """The proxy at the far end of the wire."""
        return self.beyond[0]

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
        others = *self.users, *self.near, *self.beyond, *self.wires
        for fd in (self.home, self.client, self.wire, self.server, *others):
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
        set_sysctls(NO_IPV6)
        if emulated:
            veth(ip, "c1", "c0", namespaces.near_end)
            veth(ip, "s1", "s0", namespaces.far)
            wire_up(ip, ("c1", "s1"))
    if not emulated:
        with namespaces.inside(namespaces.near_end), IPRoute() as ip:
            veth(ip, "c0", "s0", namespaces.far)
    with namespaces.inside(namespaces.near_end), IPRoute() as ip:
        in_force = set_sysctls(wanted)
        set_sysctls(_END_SOON)
        nearest = nearest_address(namespaces)
        index = end_up(ip, "c0", nearest)
        receive.on_other_cpus("c0")
        leads_to(ip, index, SERVER_ADDRESS, _MAC["s0"])
    if namespaces.near:
        with namespaces.inside(namespaces.client):
            set_sysctls(wanted)
            set_sysctls(_END_SOON)
    if users:
        _behind_the_edge(namespaces, users, wanted)
    with namespaces.inside(namespaces.far), IPRoute() as ip:
        in_force = set_sysctls(wanted)
        index = end_up(ip, "s0", SERVER_ADDRESS)
        # In interrupts of other tasks some kernels run no BPF program (docs/guide/congestion.md,
        # "Unseen ACKs").
        _offload("s0", "gro", on=emulated)
        if not (emulated and receive.on_a_thread("s0")):
            _offload("s0", "gro", on=False)
            receive.on_other_cpus("s0")
        loopback = index_of(ip, "lo")
        for address in server_addresses:
            ip.addr("add", index=loopback, address=address, prefixlen=32)
        ip.neigh("replace", dst=nearest, lladdr=_MAC["c0"], ifindex=index, state="permanent")
        to_clients(ip, namespaces, index, {"initcwnd": initial_window})
    return in_force


def nearest_address(namespaces: Namespaces) -> str:
    """Address at the near end of the wire."""
    if namespaces.near:
        return CLOSE_ADDRESS
    return EDGE_ADDRESS if namespaces.users else CLIENT_ADDRESS


def to_clients(ip: IPRoute, namespaces: Namespaces, index: int, metrics: dict[str, Any], **how: Any) -> None:
    """Routes from the far end of the wire over a device to its near end, and to the clients behind it."""
    nearest = nearest_address(namespaces)
    ip.route("replace", dst=f"{nearest}/32", oif=index, scope="link", metrics=metrics, **how)
    if nearest != CLIENT_ADDRESS:
        ip.route("replace", dst=CLIENTS, gateway=nearest, oif=index, metrics=metrics, **how)


def _behind_the_edge(
    namespaces: Namespaces, users: Sequence[Sequence[str]], wanted: Mapping[str, str]
) -> None:
    """Links the users' namespaces with the edge, which forwards between them and the path."""
    with namespaces.inside(namespaces.client), IPRoute() as ip:
        set_sysctls({"net.ipv4.ip_forward": "1"})
        for number, (addresses, fd) in enumerate(zip(users, namespaces.users, strict=True)):
            near, place = f"e{number}", f"{number >> 8:02x}:{number & 255:02x}"
            mac, their_mac = f"02:77:70:01:{place}", f"02:77:70:02:{place}"
            veth(ip, near, "c0", fd, mac, their_mac)
            _offloads_off(near)
            index = index_of(ip, near)
            ip.link("set", index=index, state="up")
            for address in addresses:
                ip.neigh("replace", dst=address, lladdr=their_mac, ifindex=index, state="permanent")
                ip.route("add", dst=f"{address}/32", oif=index, scope="link")
            with namespaces.inside(fd), IPRoute() as theirs:
                set_sysctls(wanted)
                set_sysctls(_END_SOON)
                first, *others = addresses
                theirs_index = end_up(theirs, "c0", first)
                for address in others:
                    theirs.addr("add", index=theirs_index, address=address, prefixlen=32)
                leads_to(theirs, theirs_index, EDGE_ADDRESS, mac)
            linux.setns(namespaces.client)


def leads_to(ip: IPRoute, index: int, gateway: str, mac: str, **metrics: object) -> None:
    """Routes everything over a device to its neighbour."""
    ip.neigh("replace", dst=gateway, lladdr=mac, ifindex=index, state="permanent")
    ip.route("add", dst=f"{gateway}/32", oif=index, scope="link")
    ip.route("add", dst="default", gateway=gateway, oif=index, **({"metrics": metrics} if metrics else {}))


def speak(namespaces: Namespaces, client: int, congestion: str) -> None:
    """Gives a client's connections a congestion control that the kernel knows by now.

    By its route: the kernel lets no network namespace but its first have any congestion control as default.
    """
    with namespaces.inside(client), IPRoute() as ip:
        [default] = ip.get_default_routes(table=254)
        gateway, metrics = default.get_attr("RTA_GATEWAY"), {"cc_algo": congestion}
        ip.route("replace", dst="default", gateway=gateway, oif=index_of(ip, "c0"), metrics=metrics)


def veth(
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


def wire_up(ip: IPRoute, names: Iterable[str]) -> None:
    """Turns on the devices of a wire, from which an emulator takes packets."""
    for name in names:
        _offloads_off(name)
        ip.link("set", index=index_of(ip, name), state="up")


def index_of(ip: IPRoute, name: str) -> int:
    [index] = ip.link_lookup(ifname=name)
    return index


def end_up(ip: IPRoute, name: str, address: str) -> int:
    ip.link("set", index=index_of(ip, "lo"), state="up")
    index = index_of(ip, name)
    ip.addr("add", index=index, address=address, prefixlen=32)
    _offloads_off(name)
    ip.link("set", index=index, state="up")
    return index


def set_sysctls(wanted: Mapping[str, str]) -> dict[str, str]:
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
