"""Reads a path's settings (twice in a run) and packet counts from the kernel.

Settings are flat, a name and a value each, so that two readings can be compared line by line.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import socket
import struct
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyroute2 import IPRoute

from wirepaint.runners.testbed import sockets
from wirepaint.runners.testbed.namespaces import SIOCETHTOOL, Namespaces

IFF_UP = 1
_NET = Path("/proc/thread-self/net")
"""Of the thread's namespace; /proc/net shows the process's."""
_SYSCTLS = Path("/proc/sys/net/ipv4")
_MOVING = {"tcp_available_congestion_control", "tcp_allowed_congestion_control", "tcp_fastopen_key"}
"""Settings that are not compared: those of the whole host, which may change, and a secret."""
_END = {"client": "c0", "server": "s0"}
"""The devices at the ends of the emulated link."""
ETHERNET_BYTES = 14
_RECEIVED, _RECEIVE_DROPS, _SENT, _SEND_DROPS = 1, 3, 9, 11
"""Place of the packets sent in a line of /proc/net/dev."""
LONGEST_S = 5.0
"""Longest wait for the packets under way at the end of flows."""
_READINGS = 20
"""At most, of counters that do not stand still."""
_OFFLOADS = {"tx checksum": 0x16, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}
"""The ethtool commands that read each offload (linux/ethtool.h)."""


@dataclass(frozen=True)
class Counts:
    """Packets of one end of the emulated link since it was built."""

    sent: int
    received: int
    received_bytes: int
    """IP bytes, without Ethernet headers."""
    dropped: int
    """Packets that the device dropped, in either direction."""
    segments: int
    """Segments that left TCP to the link, retransmitted ones too (tcpOutSegs, tcpRetransSegs, RFC 4022)."""
    opened: int
    """Connections that this end opened, and those that it accepted (tcpActiveOpens, tcpPassiveOpens)."""
    accepted: int
    others: int
    """UDP and ICMP packets sent."""
    resets: int = 0
    """Of a proxy: resets that TCP made (tcpOutRsts). A late segment of a closed connection is answered with
    one from the address of another machine; no route takes it, and the kernel counts it nevertheless."""

    def since(self, before: Counts) -> Counts:
        """The counts from an earlier reading on."""
        return Counts(**{name: value - getattr(before, name) for name, value in vars(self).items()})


def _places(namespaces: Namespaces) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Each namespace of the path by name, with its devices."""
    near, beyond = namespaces.near, namespaces.beyond
    places = {"client": (namespaces.client, ("c0",)), "wire": (namespaces.wire, ("c1", "s1"))}
    for number, fd in enumerate(near):
        places[f"proxy {number}"] = fd, ("n0", "c0" if number + 1 == len(near) else "p0")
    for number, fd in enumerate(beyond):
        places[f"proxy {len(near) + number}"] = fd, ("o0" if number else "s0", "p0")
    for number, fd in enumerate(namespaces.wires):
        places[f"wire {number + 1}"] = fd, ("c1", "s1")
    return places | {"server": (namespaces.server, ("o0",) if beyond else ("s0",))}


def settings(namespaces: Namespaces) -> dict[str, str]:
    """Settings of devices, routes, neighbours and addresses; at the ends also of IP and TCP."""
    found: dict[str, str] = {}
    places = _places(namespaces)
    places |= {f"user {number}": (fd, ("c0",)) for number, fd in enumerate(namespaces.users)}
    for name, (fd, devices) in places.items():
        with namespaces.inside(fd), IPRoute() as ip:
            links = {link.get_attr("IFLA_IFNAME"): link for link in ip.get_links()}
            names = {link["index"]: device for device, link in links.items()}
            for device in devices:
                found |= _device(f"{name} {device}", ip, device, links.get(device))
            found[f"{name} devices"] = ", ".join(sorted(links))
            found[f"{name} routes"] = "; ".join(sorted(_route(route, names) for route in ip.get_routes()))
            found[f"{name} neighbours"] = "; ".join(
                sorted(
                    f"{n.get_attr('NDA_DST')} {n.get_attr('NDA_LLADDR')}"
                    for n in ip.get_neighbours()
                    if names[n["ifindex"]] != "lo"
                )
            )
            found[f"{name} addresses"] = ", ".join(sorted(a.get_attr("IFA_ADDRESS") for a in ip.get_addr()))
            if not name.startswith("wire"):
                found |= {f"{name} {key}": value for key, value in _sysctls().items()}
    return found


def counts(namespaces: Namespaces, end: str) -> Counts:
    """Packet counts of one ``end`` of the emulated link: "client", or "server" for the far one.

    At an edge the counts of TCP are those of all its users. The counters are read one after the other, so
    they are read until they stand still: a packet between two of them would be in one alone.
    """
    found = _counts(namespaces, end)
    for _ in range(_READINGS):
        before, found = found, _counts(namespaces, end)
        if before == found:
            break
    return found


def _counts(namespaces: Namespaces, end: str) -> Counts:
    device = _END[end]
    place, behind = namespaces.far, ()
    is_proxy = bool(namespaces.beyond)
    if end == "client":
        place, behind = namespaces.near_end, () if namespaces.near else namespaces.users
        is_proxy = bool(namespaces.near)
    with namespaces.inside(place):
        of_devices = _of_devices()
        protocols = [] if behind else [_protocols()]
        # The kernel counts a SYN-ACK that is sent again both as sent and as retransmitted. A SYN counts once.
        twice = _protocols("netstat")["TcpExt"]["TCPSynRetrans"] if end == "server" or is_proxy else 0
        # With generic receive offload (NAPI) veth counts a packet after removing its header.
        header = 0 if _offload(device, _OFFLOADS["gro"]) else ETHERNET_BYTES
    numbers = of_devices.pop(device)
    # A proxy has a device more, passes on what it does not take, and maybe has packets over its loopback.
    elsewhere = sum(fields[_SENT] for fields in of_devices.values()) if end == "server" or is_proxy else 0
    passed = protocols[0]["Ip"]["ForwDatagrams"] if is_proxy else 0
    dropped = numbers[_RECEIVE_DROPS] + numbers[_SEND_DROPS]
    for fd in behind:
        with namespaces.inside(fd):
            protocols.append(_protocols())
            of_user = _of_devices()["c0"]
        dropped += of_user[_RECEIVE_DROPS] + of_user[_SEND_DROPS]
    if behind:
        edge = [fields for name, fields in of_devices.items() if name != "lo"]
        dropped += sum(fields[_RECEIVE_DROPS] + fields[_SEND_DROPS] for fields in edge)

    def count(protocol: str, *names: str) -> int:
        return sum(of_one[protocol][name] for of_one in protocols for name in names)

    return Counts(
        sent=numbers[_SENT],
        received=numbers[_RECEIVED],
        received_bytes=numbers[0] - header * numbers[1],
        dropped=dropped,
        segments=count("Tcp", "OutSegs", "RetransSegs") + passed - twice - elsewhere,
        opened=count("Tcp", "ActiveOpens"),
        accepted=count("Tcp", "PassiveOpens"),
        others=count("Udp", "OutDatagrams") + count("Icmp", "OutMsgs"),
        resets=count("Tcp", "OutRsts") if is_proxy else 0,
    )


def congestion_controls(namespaces: Namespaces, fd: int, remote: Container[str]) -> list[str]:
    """Congestion controls of a namespace's connected TCP sockets to those addresses, each once."""
    with namespaces.inside(fd):
        here = sockets.Sockets()
    try:
        known = here.reports(sockets.ESTABLISHED)
        return sorted(
            {one.congestion for one in known if one.congestion and one.ends.remote_address in remote}
        )
    finally:
        here.close()


def seen(device: str) -> int:
    """Packets that a capture at a device of the present namespace can hold: sent, or taken by IP.

    Packets that generic receive offload merged are one for IP and the capture, but several for the device.
    """
    of_devices = _of_devices()
    sent = of_devices.pop(device)[_SENT]
    elsewhere = sum(fields[_RECEIVED] for fields in of_devices.values())
    return sent + _protocols()["Ip"]["InReceives"] - elsewhere


def settled(namespaces: Namespaces, path_ns: int) -> dict[str, Counts]:
    """Counts of both ends once no packet is under way: flows that are cut off leave some.

    ``path_ns`` is a time in which packets cross the path both ways. After ``LONGEST_S`` the counts are taken
    as they are.
    """
    deadline = time.monotonic() + LONGEST_S
    found = {end: counts(namespaces, end) for end in ("client", "server")}
    while time.monotonic() < deadline:
        time.sleep(path_ns / 1e9)
        before, found = found, {end: counts(namespaces, end) for end in found}
        if before == found:
            break
    return found


def _of_devices() -> dict[str, list[int]]:
    """Counters of the devices of the present namespace, in the order of /proc/net/dev."""
    lines = (line.partition(":") for line in (_NET / "dev").read_text().splitlines())
    return {name.strip(): [int(field) for field in fields.split()] for name, colon, fields in lines if colon}


def _protocols(file: str = "snmp") -> dict[str, dict[str, int]]:
    """Counters of /proc/net/snmp or netstat: a line of names and a line of numbers for each protocol."""
    lines = [line.split() for line in (_NET / file).read_text().splitlines()]
    return {
        names[0].rstrip(":"): dict(zip(names[1:], map(int, numbers[1:]), strict=True))
        for names, numbers in zip(lines[::2], lines[1::2], strict=True)
    }


def _device(name: str, ip: IPRoute, device: str, link: object) -> dict[str, str]:
    if link is None:
        return {f"{name}": "gone"}
    kinds = sorted(
        {
            str(discipline.get_attr("TCA_KIND"))
            for discipline in ip.get_qdiscs()
            if discipline["index"] == link["index"]  # type: ignore[index]
        }
    )
    on = [what for what, command in _OFFLOADS.items() if _offload(device, command)]
    return {
        f"{name} MTU": str(link.get_attr("IFLA_MTU")),  # type: ignore[attr-defined]
        f"{name} state": "up" if link["flags"] & IFF_UP else "down",  # type: ignore[index]
        f"{name} queueing disciplines": ", ".join(kinds) or "none",
        f"{name} offloads": ", ".join(on) or "none",
    }


def _route(route: object, names: Mapping[int, str]) -> str:
    attribute = route.get_attr  # type: ignore[attr-defined]
    metrics = attribute("RTA_METRICS")
    shown = [] if metrics is None else [f"{key} {value}" for key, value in metrics["attrs"]]
    words = [attribute("RTA_DST") or "default", attribute("RTA_GATEWAY"), names.get(attribute("RTA_OIF"))]
    return " ".join(str(word) for word in (*words, *shown) if word)


def _sysctls() -> dict[str, str]:
    """All IPv4 and TCP settings of the present namespace, except those that change by themselves."""
    found = {}
    for file in sorted(_SYSCTLS.glob("*")):
        if file.is_file() and file.name not in _MOVING:
            with contextlib.suppress(OSError):  # some can only be written
                found[f"net.ipv4.{file.name}"] = " ".join(file.read_text().split())
    return found


def _offload(name: str, command: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        value = array.array("B", struct.pack("=II", command, 0))
        request = struct.pack("16sP", name.encode(), value.buffer_info()[0])
        fcntl.ioctl(control, SIOCETHTOOL, request)
        return bool(struct.unpack("=II", value.tobytes())[1])
