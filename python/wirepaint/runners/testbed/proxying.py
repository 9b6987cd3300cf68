"""The proxy of a run: starts it, and makes records of its connections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wirepaint.errors import Refused
from wirepaint.runners.testbed import namespaces, sockets, squid

AUTHORITY = "authority.pem"
"""File of the servers' certificate authority, with its key, if a proxy ends TLS (crates/replay-server)."""


def start(run: Mapping[str, Any], paths: namespaces.Namespaces, work: Path) -> squid.Squid:
    """Starts the proxy of a run; ``work`` has the parts' files, the servers' authority among them."""
    asked = run["proxy"]
    options = squid.Options(
        address=namespaces.SERVER_ADDRESS,
        port=asked["port"],
        hosts=_hosts(run),
        cache=asked["cache"],
        cache_bytes=asked["cache_bytes"],
        authority=work / AUTHORITY if asked["tls"] == "terminate" else None,
        tls=run["transport"]["tls"],
    )
    assert paths.proxy is not None
    with paths.inside(paths.proxy):
        kernel = sockets.Sockets()
    return squid.Squid(options, work / "squid", paths.proxy, kernel)


def _hosts(run: Mapping[str, Any]) -> dict[str, str]:
    """The address of each host; ``Refused`` if one of two pages has two: a proxy goes by names."""
    hosts: dict[str, str] = {}
    for name, site in run["sites"].items():
        for origin in site["origins"]:
            if hosts.setdefault(origin["host"], origin["address"]) != origin["address"]:
                found = f"page {name}: {origin['host']} is a host of another page of the run, too"
                raise Refused(f"{found}; accepted with a proxy: pages of a run with hosts of their own")
    return hosts


def records(
    connections: Iterable[squid.Seen], tcp: Mapping[sockets.Ends, int], run: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The proxy's connections with clients, and those with servers, as the replay server records its own.

    ``tcp`` holds the first sample of the congestion window of each, in segments.
    """
    of_clients: list[dict[str, Any]] = []
    of_servers: list[dict[str, Any]] = []
    for seen in connections:
        ends, last = seen.last.ends, seen.last
        served = (ends.local_address, ends.local_port) == (namespaces.SERVER_ADDRESS, run["proxy"]["port"])
        if not served and ends.local_address != namespaces.UPLINK_ADDRESS:
            continue  # a flow's
        record = {
            "client_address": ends.remote_address,
            "client_port": ends.remote_port,
            "server_address": ends.local_address,
            "server_port": ends.local_port,
            "where": None if served else f"the proxy's connection with {ends.remote_address}",
            "accepted": seen.first_ns - run["epoch_ns"],
            "congestion": seen.congestion[0],
            "congestion_end": seen.congestion[-1],
            "initial_window": tcp.get(ends),
            "handshake_retrans": last.retransmitted,
            "tcp": {
                "total_retrans": last.retransmitted,
                "min_rtt_us": last.min_rtt_us,
                "snd_mss": last.mss,
            },
        }
        (of_clients if served else of_servers).append(record)
    return of_clients, of_servers
