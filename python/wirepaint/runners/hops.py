"""The hops of a path with proxies: its hosts, segments and proxies in the run description.

A hop goes from a host to the next one towards the servers. The main one, ``access``, has the scenario's
network, and goes from the users, or from the remote side of a PEP, to the first host beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wirepaint.dataplane.description import Host, Pep, PepClass, Proxy, Segment, Sending, Split, Squid
from wirepaint.evaluation.proxies import PepTable, SplitTable, SquidTable

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun
    from wirepaint.evaluation.network import Network
    from wirepaint.evaluation.proxies import Part

SQUID_PORT, PEP_PORT = 3128, 3129
_MOST_PER_CENT = 100.0


@dataclass(frozen=True)
class Controls:
    """Names of the congestion controls of the hops, as hosts have them."""

    near: str
    """Between users and a proxy beside them."""
    main: str
    """Of the main hop, towards the users."""
    behind: tuple[str, ...]
    """Behind each proxy, both ways."""


@dataclass(frozen=True)
class Hops:
    """What the proxies of a run add to its description; empty without any."""

    hosts: tuple[Host, ...] = ()
    """Those of proxies, from the users on."""
    servers: Sending | None = None
    """How the servers send; None as the main hop does."""
    proxies: tuple[Proxy, ...] = ()
    path: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ()
    """Those beside the main one."""


def first_beyond(run: ResolvedRun) -> str:
    """Name of the host at the far end of the main hop."""
    if run.proxy.has_pep:
        return "ground"
    return run.proxy.parts[0].settings.kind if run.proxy.parts else "server"


def hops(
    run: ResolvedRun,
    controls: Controls,
    main: Segment,
    address: str | None,
    segment: Callable[[Network, str], Segment],
) -> Hops:
    """The hops of a run; ``address`` is that of the host at the far end of the main one.

    ``segment`` makes one from a network and its name.
    """
    parts = run.proxy.parts
    if not parts:
        return Hops()
    beyond = first_beyond(run)
    of_main = Sending(congestion=controls.main, initial_window=run.initial_window)
    before = of_main if beyond == parts[0].settings.kind else Sending(congestion=controls.near)
    hosts: list[Host] = []
    path: list[str] = [main.name] if before is of_main else []
    segments: list[Segment] = []
    for part, control in zip(parts, controls.behind, strict=True):
        after = Sending(congestion=control, initial_window=part.settings.initial_window)
        kind = part.settings.kind
        if kind == "pep":
            hosts.append(_host("remote", before, of_main))
            hosts.append(_host("ground", of_main, after))
            path += ["remote", main.name, "ground"]
        else:
            hosts.append(_host(kind, before, after))
            path.append(kind)
        if part.network is not None:
            name = f"behind-{kind}"
            segments.append(segment(part.network, name))
            path.append(name)
        before = after
    placed = [replace(one, address=address) if one.name == beyond else one for one in hosts]
    proxies = tuple(_described(run, part) for part in parts)
    return Hops(tuple(placed), before, proxies, tuple(path), tuple(segments))


def _host(name: str, accepted: Sending, opened: Sending) -> Host:
    return Host(
        name=name,
        role="proxy",
        congestion=accepted.congestion,
        initial_window=accepted.initial_window,
        upstream=opened,
    )


def _described(run: ResolvedRun, part: Part) -> Proxy:
    asked = part.settings
    if isinstance(asked, SquidTable):
        return Squid(
            host="squid",
            port=SQUID_PORT,
            cache=asked.cache,
            cache_bytes=0 if asked.cache == "none" else asked.size,
            warm=asked.warm,
            tls=asked.tls,
        )
    if isinstance(asked, SplitTable):
        return Split(host="split", buffer_bytes=asked.buffer)
    assert isinstance(asked, PepTable)
    return Pep(
        remote="remote",
        ground="ground",
        port=PEP_PORT,
        connections=asked.connections,
        multiplexed=asked.multiplexed,
        compression=asked.compression,
        schedule=asked.schedule,
        ahead=asked.ahead,
        buffer_bytes=asked.buffer,
        rate_bit_per_s=asked.rate,
        classes=_classes(run),
    )


def _classes(run: ResolvedRun) -> Sequence[PepClass]:
    """A class for each code point of the users, with its share of the main link; none if all have one."""
    points = sorted({user.dscp or 0 for user in run.users})
    queue = run.network.direction("down")["queue"]
    if len(points) < 2 or queue["kind"] != "classes":
        return ()
    weights = [_weight(queue["classes"], point) for point in points]
    return [
        PepClass(dscp=point, share=_MOST_PER_CENT * weight / sum(weights))
        for point, weight in zip(points, weights, strict=True)
    ]


def _weight(classes: Sequence[dict[str, object]], point: int) -> float:
    own = next((each for each in classes if point in each.get("dscp", ())), None)  # type: ignore[operator]
    rest = next(each for each in classes if not each.get("dscp"))
    return float((own or rest).get("weight", 1))  # type: ignore[arg-type]
