"""Faults in every part of a run, by a shell command or another value in the run description."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BROWSER = "$(pgrep -f [h]eadless-shell)"
RENDERER = "$(pgrep -f [t]ype=renderer)"
NETWORK = "$(pgrep -f [n]etwork.mojom.NetworkService)"
HOG = f"{sys.executable} -c 'while True: pass'"
_SENDS = (
    "import socket as s; u = s.socket(s.AF_INET, s.SOCK_DGRAM); "
    '[u.sendto(bytes(1000), (\\"10.64.0.1\\", 9)) for _ in range(200)]'
)


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong. ``plant`` is what ``faults`` takes."""

    where: str
    what: str
    plant: list[dict[str, Any]]
    page: str | None = None
    """The change of the page's folder: a function of this module."""
    fails: bool = field(default=False)
    """The run ends without a result."""
    check: str | None = None
    """The check that finds it."""


def _path(place: str, what: str, command: str) -> Fault:
    return Fault("path", what, [{"at": "path", "in": place, "do": command}])


def _load(where: str, what: str, command: str, place: str = "cell", *, fails: bool = False) -> Fault:
    return Fault(where, what, [{"at": "load", "in": place, "do": command}], fails=fails)


def _told(where: str, what: str, *, fails: bool = False, **values: Any) -> Fault:
    keys = {key.replace("__", ".").replace("each", "*"): value for key, value in values.items()}
    return Fault(where, what, [{"at": "run", "set": keys}], fails=fails)


def _stop(pids: str, seconds: float, after: float = 0.25) -> str:
    return f"sleep {after}; p={pids}; kill -STOP $p; sleep {seconds}; kill -CONT $p"


def _sysctl(name: str, value: str) -> str:
    return f"echo '{value}' > /proc/sys/net/ipv4/{name}"


FAULTS = [
    _path(
        "server",
        "a second shaper, 2 Mbit/s, at the server",
        "tc qdisc add dev s0 root tbf rate 2mbit burst 5kb latency 500ms",
    ),
    _path(
        "client",
        "a second shaper, 500 kbit/s, at the client",
        "tc qdisc add dev c0 root tbf rate 500kbit burst 5kb latency 500ms",
    ),
    _path("server", "a queue of 20 packets at the server", "tc qdisc add dev s0 root pfifo limit 20"),
    _path("server", "MTU 1000 at the server", "ip link set s0 mtu 1000"),
    _path("client", "MTU 600 at the client", "ip link set c0 mtu 600"),
    _path("server", "the route's MTU is 800", "ip route change 10.64.0.2 dev s0 scope link mtu 800"),
    _path(
        "server",
        "an initial window of 3 on the route",
        "ip route change 10.64.0.2 dev s0 scope link initcwnd 3",
    ),
    _path(
        "server",
        "an initial window of 40 on the route",
        "ip route change 10.64.0.2 dev s0 scope link initcwnd 40",
    ),
    _path(
        "server",
        "a largest window of 4 on the route",
        "ip route change 10.64.0.2 dev s0 scope link initcwnd 10 window 6000",
    ),
    _path(
        "server",
        "quick acknowledgements on the route",
        "ip route change 10.64.0.2 dev s0 scope link initcwnd 10 quickack 1",
    ),
    _path("client", "a receive buffer of 8 KiB", _sysctl("tcp_rmem", "4096 8192 8192")),
    _path("client", "no scaling of the receive window", _sysctl("tcp_window_scaling", "0")),
    _path("client", "no tuning of the receive buffer", _sysctl("tcp_moderate_rcvbuf", "0")),
    _path("server", "a send buffer of 16 KiB", _sysctl("tcp_wmem", "4096 8192 16384")),
    _path("server", "no SACK", _sysctl("tcp_sack", "0")),
    _path("server", "no timestamps", _sysctl("tcp_timestamps", "0")),
    _path("server", "ECN asked for", _sysctl("tcp_ecn", "1")),
    _path("server", "no slow start after idle", _sysctl("tcp_slow_start_after_idle", "0")),
    _path(
        "server",
        "no RACK and no TLP",
        _sysctl("tcp_recovery", "0") + "; " + _sysctl("tcp_early_retrans", "0"),
    ),
    _path("server", "a pacing of half the rate", _sysctl("tcp_pacing_ss_ratio", "50")),
    _path("server", "at most 3 kB in the device's queue", _sysctl("tcp_limit_output_bytes", "3000")),
    _path(
        "client",
        "another congestion control at the client",
        "ip route change default via 10.64.0.1 dev c0 congctl cubic",
    ),
    _path("server", "a multicast group more", "ip maddr add 33:33:00:00:00:99 dev s0"),
    _load("path", "UDP packets through the path", f'{sys.executable} -c "{_SENDS}"', "client"),
    _load(
        "path",
        "another TCP connection through the path",
        f"{sys.executable} {HERE}/foreign_transfer.py",
        "client",
    ),
    _load(
        "path",
        "the server's device down for 100 ms",
        "sleep 0.2; ip link set s0 down; sleep 0.1; ip link set s0 up",
        "server",
    ),
    _load(
        "path",
        "a shaper that appears under way",
        "sleep 0.2; tc qdisc add dev s0 root tbf rate 5mbit burst 5kb latency 500ms",
        "server",
    ),
    _told("path", "half the rate down", segments__0__down__capacity__bit_per_s={"times": 0.5}),
    _told("path", "a tenth less rate down", segments__0__down__capacity__bit_per_s={"times": 0.9}),
    _told("path", "a tenth more rate down", segments__0__down__capacity__bit_per_s={"times": 1.1}),
    _told("path", "a hundredth of the rate up", segments__0__up__capacity__bit_per_s={"times": 0.01}),
    _told("path", "20 ms more delay down", segments__0__down__delay_ns={"plus": 20_000_000}),
    _told("path", "5 ms more delay up", segments__0__up__delay_ns={"plus": 5_000_000}),
    _told("path", "5 ms less delay up", segments__0__up__delay_ns={"plus": -5_000_000}),
    _told("path", "2 % of random loss", segments__0__down__loss={"kind": "independent", "probability": 0.02}),
    _told("path", "a queue of 5 packets", segments__0__down__queue={"kind": "droptail", "packets": 5}),
    _told("path", "a queue without limit", segments__0__down__queue={"kind": "droptail"}),
    _told(
        "path",
        "jitter of 10 ms",
        segments__0__down__jitter={"kind": "uniform", "range_ns": 10_000_000, "reorder": False},
    ),
    _told("path", "a smaller MTU in the emulator", segments__0__mtu=1000),
    _told("path", "200 bytes counted more for each packet", segments__0__down__overhead_bytes=214),
    _load("emulator", "stopped for 300 ms at the beginning", _stop("$EMULATOR", 0.3, 0)),
    _load("emulator", "stopped for 20 ms", _stop("$EMULATOR", 0.02)),
    _load("emulator", "killed", "sleep 0.2; kill -9 $EMULATOR", fails=True),
    _load("server", "stopped for 500 ms", _stop("$SERVER", 0.5)),
    _load("server", "stopped for 100 ms", _stop("$SERVER", 0.1)),
    _load("server", "killed", "sleep 0.2; kill -9 $SERVER", fails=True),
    _told("server", "200 ms more think time", sites__each__responses__each__think_ns={"plus": 200_000_000}),
    _told(
        "server",
        "200 ms more think time of one object",
        sites__each__responses__2__think_ns={"plus": 200_000_000},
    ),
    _told("server", "no think time", sites__each__responses__each__think_ns=0),
    _told("server", "TLS 1.2", transport__tls="1.2"),
    _told("server", "HTTP/1.1", transport__http="h1"),
    _told("server", "another congestion control", hosts__1__congestion="reno"),
    _told("server", "small TLS records", transport__tls_record_bytes=512),
    _told("server", "another status of one object", sites__each__responses__3__status=500),
    _told(
        "server", "an object is not there", sites__each__responses__3__url="https://material-kit.test/gone"
    ),
    _told(
        "server",
        "the body of another object",
        sites__each__responses__8__body={"as": "sites.*.responses.9.body"},
    ),
    _told(
        "server",
        "two kilobytes more of headers",
        sites__each__responses__10__headers={"plus": [["x-more", "x" * 2000]]},
    ),
    _load("browser", "all of it stopped for 300 ms", _stop(BROWSER, 0.3)),
    _load("browser", "the renderer stopped for 300 ms", _stop(RENDERER, 0.3)),
    _load("browser", "the network process stopped for 300 ms", _stop(NETWORK, 0.3)),
    _load("browser", "the renderer stopped for 60 ms", _stop(RENDERER, 0.06)),
    _load("browser", "the renderer killed", f"sleep 0.25; kill -9 {RENDERER}", fails=True),
    _load("load", "two programs that use all of the CPU", f"{HOG} & {HOG} & wait"),
    _load("load", "two programs at the highest priority", f"nice -n -20 {HOG} & nice -n -20 {HOG} & wait"),
    _load(
        "load",
        "a real-time program for 200 ms on each CPU",
        f"sleep 0.2; for i in 1 2; do timeout 0.2 chrt -f 30 {HOG} & done; wait",
    ),
    _load(
        "load",
        "the emulator without real-time priority, and a busy machine",
        f"chrt -o -p 0 $EMULATOR; {HOG} & {HOG} & {HOG} & wait",
    ),
    _load(
        "load",
        "the server at the lowest priority, and a busy machine",
        f"renice 19 $SERVER; {HOG} & {HOG} & wait",
    ),
    Fault("page", "a byte of a recorded body flipped", [], page="flip_body", fails=True),
    Fault("page", "an object left out", [], page="leave_out"),
]

_CLIENTS = "ip route change 10.64.0.2 dev s0 scope link"
_SERVERS = "ip route change default via 10.61.128.2 dev p0"
PROXY_FAULTS = {
    fault.what: fault
    for fault in (
        replace(_path("proxy", what, command), check=check)
        for what, command, check in (
            (
                "another congestion control towards clients",
                f"{_CLIENTS} congctl reno initcwnd 20",
                "congestion",
            ),
            ("the namespace's congestion control", f"{_CLIENTS} initcwnd 20", "congestion"),
            (
                "an initial window of 3 towards clients",
                f"{_CLIENTS} congctl cubic initcwnd 3",
                "initial_window",
            ),
            (
                "another congestion control towards servers",
                f"{_SERVERS} congctl reno initcwnd 10",
                "congestion",
            ),
            (
                "an initial window of 3 towards servers",
                f"{_SERVERS} congctl cubic initcwnd 3",
                "initial_window",
            ),
        )
    )
}
"""Faults of a run through squid."""
