"""The hops of a path with proxies, beside the one over the wire.

```
client ── c0 ═══ n0 ── proxy ── p0 ═══ n0 ── proxy ── c0 ═══ c1 ── wire ...
... wire ── s1 ═══ s0 ── proxy ── p0 ═══ o0 ── proxy ── p0 ═══ o0 ── server
```
An emulated hop has a wire of its own between its ends. Call :func:`build` after that of ``namespaces``.

Initial windows are those of routes. A program such as squid cannot choose the congestion control of its
sockets, so its routes do (``congctl``), and the kernel must have it already. Others set their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyroute2 import IPRoute

from wirepaint.runners.description import FLOW_SERVER_ADDRESS
from wirepaint.runners.testbed import receive
from wirepaint.runners.testbed.namespaces import (
    BASELINE_SYSCTLS,
    CLIENT_ADDRESS,
    CLIENTS,
    EDGE_ADDRESS,
    NO_IPV6,
    SERVER_ADDRESS,
    Namespaces,
    end_up,
    index_of,
    leads_to,
    set_sysctls,
    to_clients,
    veth,
    wire_up,
)

_OF_FLOWS, _CAUGHT = 100, 101
"""Routing tables: of flows that end beside a proxy, and of packets that a transparent proxy takes."""
_BEYOND = 128
"""Number of the first hop beyond the wire; those before it count from 0."""


@dataclass(frozen=True)
class Sending:
    """How sockets send."""

    congestion: str
    """As the kernel knows it."""
    initial_window: int
    """Segments."""


@dataclass(frozen=True)
class Station:
    """A proxy on the path."""

    accepted: Sending
    """Connections from the users' side."""
    opened: Sending
    """Connections towards the servers."""
    speaks_by_route: bool = False
    """Its routes choose its congestion controls."""
    catches: tuple[str, ...] = ()
    """Addresses of servers in whose place it accepts connections."""
    wire: int | None = None
    """Namespace of the emulator of the hop behind it."""

    def metrics(self, sending: Sending) -> dict[str, Any]:
        """Those of a route for its sockets."""
        window = {"initcwnd": sending.initial_window}
        return window | ({"cc_algo": sending.congestion} if self.speaks_by_route else {})


def first_address(*, near: bool) -> str:
    """Where the first proxy listens for clients; ``near``: it stands before the wire."""
    return _address(0, "right") if near else SERVER_ADDRESS


def uplinks(namespaces: Namespaces) -> dict[int, str]:
    """The address from which each proxy's namespace connects towards the servers."""
    before = {fd: _address(number + 1, "left") for number, fd in enumerate(namespaces.near[:-1])}
    beyond = {fd: _address(_BEYOND + number, "left") for number, fd in enumerate(namespaces.beyond)}
    return before | beyond


def _address(hop: int, side: str) -> str:
    return f"10.61.{hop}.{1 if side == 'left' else 2}"


def build(
    namespaces: Namespaces,
    near: Sequence[Station],
    beyond: Sequence[Station],
    server: Sending,
    server_addresses: Iterable[str],
    *,
    sysctls: Mapping[str, str] | None = None,
    has_flows: bool = False,
) -> None:
    """Links clients, proxies and servers, and sets how each of them sends.

    Raises ``OSError`` when the kernel refuses a setting.
    """
    wanted = {**BASELINE_SYSCTLS, **(sysctls or {})}
    for number, (fd, station) in enumerate(zip(namespaces.near, near, strict=True)):
        before = near[number - 1] if number else None
        left = namespaces.near[number - 1] if number else namespaces.client
        _near_hop(namespaces, number, left, before, fd, station, wanted)
    for number, (fd, station) in enumerate(zip(namespaces.beyond, beyond, strict=True)):
        if number == 0:
            with namespaces.inside(fd), IPRoute() as ip:
                [index] = ip.link_lookup(ifname="s0")
                to_clients(ip, namespaces, index, station.metrics(station.accepted))
                if has_flows and station.speaks_by_route:
                    window: dict[str, Any] = {"initcwnd": station.accepted.initial_window}
                    to_clients(ip, namespaces, index, window, table=_OF_FLOWS)
                    ip.rule("add", src=FLOW_SERVER_ADDRESS, src_len=32, table=_OF_FLOWS)
                _catch(ip, "s0", station)
        following = beyond[number + 1] if number + 1 < len(beyond) else None
        right = namespaces.beyond[number + 1] if following else namespaces.server
        _hop(namespaces, _BEYOND + number, (fd, "p0"), (right, "o0"), station.wire, wanted)
        with namespaces.inside(fd), IPRoute() as ip:
            _towards_servers(ip, "p0", _BEYOND + number, station.metrics(station.opened))
        with namespaces.inside(right), IPRoute() as ip:
            window = {"initcwnd": server.initial_window}
            metrics = following.metrics(following.accepted) if following else window
            _towards_users(ip, "o0", _BEYOND + number, metrics)
            if following:
                _catch(ip, "o0", following)
    if beyond:
        with namespaces.inside(namespaces.server), IPRoute() as ip:
            for address in server_addresses:
                ip.addr("add", index=index_of(ip, "lo"), address=address, prefixlen=32)


def _near_hop(
    namespaces: Namespaces,
    number: int,
    left: int,
    before: Station | None,
    right: int,
    station: Station,
    wanted: Mapping[str, str],
) -> None:
    """A hop between clients, or a proxy beside them, and the next proxy."""
    last = number + 1 == len(namespaces.near)
    devices = ("p0" if before else "c0"), "n0"
    wire = before.wire if before else None
    client = EDGE_ADDRESS if namespaces.users else CLIENT_ADDRESS
    address = None if before else client
    _hop(namespaces, number, (left, devices[0]), (right, devices[1]), wire, wanted, address)
    with namespaces.inside(left), IPRoute() as ip:
        _towards_servers(ip, devices[0], number, before.metrics(before.opened) if before else {})
    with namespaces.inside(right), IPRoute() as ip:
        set_sysctls({"net.ipv4.ip_forward": "1"})
        _towards_users(ip, "n0", number, station.metrics(station.accepted), address)
        # What the proxy does not catch passes it: flows of the clients.
        gateway = address or _address(number, "left")
        if before or namespaces.users:
            metrics = station.metrics(station.accepted)
            ip.route("add", dst=CLIENTS, gateway=gateway, oif=index_of(ip, "n0"), metrics=metrics)
        _catch(ip, "n0", station)
        if last:
            # To the far end of the wire, which is the gateway of what passes.
            index, window = index_of(ip, "c0"), {"initcwnd": station.opened.initial_window}
            ip.route("replace", dst=f"{SERVER_ADDRESS}/32", oif=index, scope="link", metrics=window)
            ip.route("replace", dst="default", gateway=SERVER_ADDRESS, oif=index, metrics=window)


def _hop(
    namespaces: Namespaces,
    number: int,
    left: tuple[int, str],
    right: tuple[int, str],
    wire: int | None,
    wanted: Mapping[str, str],
    left_address: str | None = None,
) -> None:
    """A link between two hosts, with a wire between its ends if the hop is emulated."""
    (left_fd, left_device), (right_fd, right_device) = left, right
    macs = _mac(number, "left"), _mac(number, "right")
    if wire is None:
        with namespaces.inside(left_fd), IPRoute() as ip:
            veth(ip, left_device, right_device, right_fd, *macs)
    else:
        with namespaces.inside(wire), IPRoute() as ip:
            set_sysctls(NO_IPV6)
            veth(ip, "c1", left_device, left_fd, None, macs[0])
            veth(ip, "s1", right_device, right_fd, None, macs[1])
            wire_up(ip, ("c1", "s1"))
    ends = (
        (left_fd, left_device, left_address or _address(number, "left")),
        (right_fd, right_device, _address(number, "right")),
    )
    for fd, device, address in ends:
        with namespaces.inside(fd), IPRoute() as ip:
            set_sysctls(wanted)
            end_up(ip, device, address)
            receive.on_other_cpus(device)


def _mac(hop: int, side: str) -> str:
    return f"02:77:70:03:{hop:02x}:{1 if side == 'left' else 2:02x}"


def _towards_servers(ip: IPRoute, device: str, hop: int, metrics: Mapping[str, Any]) -> None:
    leads_to(ip, index_of(ip, device), _address(hop, "right"), _mac(hop, "right"), **metrics)


def _towards_users(
    ip: IPRoute, device: str, hop: int, metrics: Mapping[str, Any], address: str | None = None
) -> None:
    index, address = index_of(ip, device), address or _address(hop, "left")
    ip.neigh("replace", dst=address, lladdr=_mac(hop, "left"), ifindex=index, state="permanent")
    ip.route("add", dst=f"{address}/32", oif=index, scope="link", metrics=dict(metrics))


def _catch(ip: IPRoute, device: str, station: Station) -> None:
    """Delivers packets from a device to the proxy's own sockets, whatever server they are for.

    The table is asked for packets that come in there alone, so the proxy's own packets go on to the servers.
    """
    if not station.catches:
        return
    loopback = index_of(ip, "lo")
    for address in station.catches:
        ip.route("add", type="local", dst=f"{address}/32", oif=loopback, scope="host", table=_CAUGHT)
    ip.rule("add", iifname=device, table=_CAUGHT)
