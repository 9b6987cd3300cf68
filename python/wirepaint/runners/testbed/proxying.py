"""The proxies of a run: starts them, and reads or makes records of their connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirepaint.errors import Refused
from wirepaint.runners.testbed import chain, namespaces, process, sockets, squid
from wirepaint.runners.testbed.route import Route, squid_of

AUTHORITY = "authority.pem"
"""File of the servers' certificate authority, with its key, if a proxy ends TLS (crates/replay-server)."""
Start = Callable[..., process.Part]


@dataclass(frozen=True)
class Ends:
    """Records of a proxy's connections, as the replay server has them of its own."""

    accepted: list[dict[str, Any]]
    opened: list[dict[str, Any]]


@dataclass(frozen=True)
class Told:
    """What is known of the proxies at the end of a run."""

    ends: Mapping[str, Ends]
    """By host."""
    log: list[squid.Served] = field(default_factory=list)
    """What squid served."""
    answers: list[dict[str, Any]] = field(default_factory=list)
    """What the remote side of a PEP answered."""
    lost: list[str] = field(default_factory=list)
    """Why connections between the sides of a PEP ended before the run did."""


class Proxies:
    """The proxies of a run."""

    def __init__(
        self, run: Mapping[str, Any], paths: namespaces.Namespaces, work: Path, start: Start
    ) -> None:
        """Nothing is started yet; ``start`` starts a part of the data plane in a namespace."""
        self._run, self._paths, self._work, self._start = run, paths, work, start
        self.route = Route.of(run)
        places = (*paths.near, *paths.beyond)
        self.namespaces = dict(zip(self.route.proxies, places, strict=True))
        self.squid: squid.Squid | None = None
        self.parts: dict[str, process.Part] = {}
        self._ended: squid.Told | None = None

    def stations(self) -> tuple[list[chain.Station], list[chain.Station]]:
        """The proxies before and beyond the wire, for :func:`chain.build`."""
        hosts = {host["name"]: host for host in self._run["hosts"]}
        sites = self._run["sites"].values()
        origins = tuple(dict.fromkeys(origin["address"] for site in sites for origin in site["origins"]))
        kinds = {host: proxy["kind"] for proxy in self._run["proxies"] for host in _hosts_of(proxy)}
        wires = dict(zip(self.route.behind, self._paths.wires, strict=True))

        def station(name: str) -> chain.Station:
            host = hosts[name]
            opened = host["upstream"]
            is_transparent = kinds[name] == "split" or name == "remote"
            return chain.Station(
                accepted=chain.Sending(host["congestion"], host["initial_window"]),
                opened=chain.Sending(opened["congestion"], opened["initial_window"]),
                speaks_by_route=kinds[name] == "squid",
                catches=origins if is_transparent else (),
                wire=wires.get(name),
            )

        return [station(name) for name in self.route.near], [station(name) for name in self.route.beyond]

    @property
    def is_warm(self) -> bool:
        """Whether a first visit fills squid's cache."""
        asked = squid_of(self._run)
        return asked is not None and asked["warm"]

    def wires(self) -> dict[str, int]:
        """The namespace of the emulator of each segment beside the main one."""
        return dict(zip(self.route.behind.values(), self._paths.wires, strict=True))

    def begin(self) -> None:
        """Starts the proxies that need nothing of the emulated path, from the servers on."""
        for proxy in reversed(self._run["proxies"]):
            if proxy["kind"] == "squid":
                self.squid = _squid(self._run, self._paths, self.namespaces["squid"], self._work)
            elif proxy["kind"] == "split":
                self._part("split", ["split", "--host=split"]).wait_ready()
            else:
                self._part("ground", ["pep", "--side=ground"]).wait_ready()

    def connect(self) -> None:
        """Starts the remote side of a PEP, which connects to the ground side over the emulated path."""
        if "remote" in self.namespaces:
            self._part("remote", ["pep", "--side=remote"]).wait_ready()

    def _part(self, host: str, verb: list[str]) -> process.Part:
        part = self.parts[host] = self._start(host, verb, self.namespaces[host])
        return part

    def look(self) -> None:
        """Raises ``RunFailed`` if squid has ended; reads its sockets back."""
        if self.squid is not None:
            self.squid.check()
            self.squid.look()

    def kill(self) -> None:
        """Ends squid at once; the caller ends the parts."""
        if self.squid is not None:
            self.squid.kill()

    @property
    def pids(self) -> dict[str, int]:
        """Squid's process."""
        return {"proxy": self.squid.pid} if self.squid is not None else {}

    def stop(self) -> dict[str, dict[str, Any]]:
        """Ends all, from the users on, so that no side of a PEP misses the other; the summaries by host."""
        summaries = {host: self.parts[host].stop() for host in self.route.proxies if host in self.parts}
        if self.squid is not None:
            self._ended = self.squid.stop()
        return summaries

    def told(self, windows: Mapping[sockets.Ends, int], measured_from: int) -> Told:
        """What is known once they have ended; ``windows`` as for :func:`of_squid`.

        Connections of a first visit, before ``measured_from``, are left out.
        """
        ends: dict[str, Ends] = {}
        answers: list[dict[str, Any]] = []
        lost: list[str] = []
        for host in self.parts:
            told = json.loads((self._work / f"proxy-{host}.json").read_text("utf-8"))
            # The sides of a PEP connect before the visits, but after any first one.
            counted = [one for one in told["connections"] if one["accepted"] >= measured_from]
            ends[host] = Ends(
                accepted=[one for one in counted if one["direction"] == "accepted"],
                opened=[one for one in counted if one["direction"] == "opened"],
            )
            lost += told["lost"]
            if host == "remote":
                answers = told["exchanges"]
        if self._ended is None:
            return Told(ends, answers=answers, lost=lost)
        uplink = chain.uplinks(self._paths)[self.namespaces["squid"]]
        ends["squid"] = of_squid(self._ended.connections, windows, self._run, uplink)
        return Told(ends, self._ended.served, answers, lost)


def _hosts_of(proxy: Mapping[str, Any]) -> list[str]:
    return ["remote", "ground"] if proxy["kind"] == "pep" else [proxy["host"]]


def _squid(run: Mapping[str, Any], paths: namespaces.Namespaces, place: int, work: Path) -> squid.Squid:
    asked = squid_of(run)
    assert asked is not None
    options = squid.Options(
        address=chain.first_address(near=bool(paths.near)),
        port=asked["port"],
        hosts=_names(run),
        cache=asked["cache"],
        cache_bytes=asked["cache_bytes"],
        authority=work / AUTHORITY if asked["tls"] == "terminate" else None,
        tls=run["transport"]["tls"],
    )
    with paths.inside(place):
        kernel = sockets.Sockets()
    return squid.Squid(options, work / "squid", place, kernel)


def _names(run: Mapping[str, Any]) -> dict[str, str]:
    """The address of each host; ``Refused`` if one of two pages has two: squid goes by names."""
    hosts: dict[str, str] = {}
    for name, site in run["sites"].items():
        for origin in site["origins"]:
            if hosts.setdefault(origin["host"], origin["address"]) != origin["address"]:
                found = f"page {name}: {origin['host']} is a host of another page of the run, too"
                raise Refused(f"{found}; accepted with a proxy: pages of a run with hosts of their own")
    return hosts


def of_squid(
    connections: Iterable[squid.Seen],
    windows: Mapping[sockets.Ends, int],
    run: Mapping[str, Any],
    uplink: str,
) -> Ends:
    """Squid's connections with clients, and with servers from its address ``uplink``.

    ``windows`` holds the first sample of the congestion window of each, in segments.
    """
    asked = squid_of(run)
    assert asked is not None
    listens = chain.first_address(near=bool(Route.of(run).near)), asked["port"]
    found = Ends([], [])
    for seen in connections:
        ends, last = seen.last.ends, seen.last
        served = (ends.local_address, ends.local_port) == listens
        if not served and ends.local_address != uplink:
            continue  # a flow's
        here, there = (ends.local_address, ends.local_port), (ends.remote_address, ends.remote_port)
        client, server = (there, here) if served else (here, there)
        record = {
            "client_address": client[0],
            "client_port": client[1],
            "server_address": server[0],
            "server_port": server[1],
            "where": None if served else f"squid's connection with {ends.remote_address}",
            "accepted": seen.first_ns - run["epoch_ns"],
            "congestion": seen.congestion[0],
            "congestion_end": seen.congestion[-1],
            "initial_window": windows.get(ends),
            "handshake_retrans": last.retransmitted,
            "tcp": {
                "total_retrans": last.retransmitted,
                "min_rtt_us": last.min_rtt_us,
                "snd_mss": last.mss,
            },
        }
        (found.accepted if served else found.opened).append(record)
    return found
