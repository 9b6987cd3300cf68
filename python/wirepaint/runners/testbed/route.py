"""The way of packets: the proxies on each side of the main hop, and the other emulated hops."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Hosts = Mapping[str, dict[str, Any]]


def hosts_of(run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The hosts of a run description by name."""
    return {host["name"]: host for host in run["hosts"]}


@dataclass(frozen=True)
class Route:
    """Names of hosts and segments between users and servers."""

    near: tuple[str, ...]
    """Proxies between the users and the main hop, from the users on."""
    beyond: tuple[str, ...]
    """Proxies between the main hop and the servers."""
    behind: Mapping[str, str]
    """The segment on the servers' side of a proxy, where that hop is emulated."""

    @classmethod
    def of(cls, run: Mapping[str, Any]) -> Route:
        """The route of a run description: its first segment is the main hop. Empty without segments."""
        if not run.get("segments"):
            return cls((), (), {})
        path = run.get("path") or [run["segments"][0]["name"]]
        segments = {segment["name"] for segment in run["segments"]}
        place = path.index(run["segments"][0]["name"])
        near = tuple(name for name in path[:place] if name not in segments)
        beyond = tuple(name for name in path[place + 1 :] if name not in segments)
        behind = {
            before: name
            for before, name in itertools.pairwise(path)
            if name in segments and name != path[place]
        }
        return cls(near, beyond, behind)

    @property
    def proxies(self) -> tuple[str, ...]:
        """All proxies' hosts, from the users on."""
        return *self.near, *self.beyond

    @property
    def sender(self) -> str:
        """The host that sends down the main hop."""
        return self.beyond[0] if self.beyond else "server"

    @property
    def first(self) -> str:
        """The host that accepts the users' connections."""
        return self.proxies[0] if self.proxies else "server"


OTHER_EMULATOR = "emulator of "
"""Beginning of the name of an emulator beside the main one; its segment follows."""


def emulators(summaries: Mapping[str, Any]) -> list[str]:
    """The names of the emulators of all hops, among the parts of a run."""
    return ["emulator", *(name for name in summaries if name.startswith(OTHER_EMULATOR))]


def squid_of(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """The squid of a run description."""
    return next((proxy for proxy in run.get("proxies", ()) if proxy["kind"] == "squid"), None)
