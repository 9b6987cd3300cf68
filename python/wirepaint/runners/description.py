"""Parts of a run description that both back ends use: path, settings, its row of the table ``run``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepaint import browsers
from wirepaint.dataplane.description import (
    Capture,
    Congestion,
    Direction,
    Flow,
    Host,
    Segment,
    Sending,
    Transport,
    Visit,
)
from wirepaint.evaluation.axes import levels
from wirepaint.evaluation.congestion import NATIVE
from wirepaint.runners import hops

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun
    from wirepaint.evaluation.congestion import Congestion as Asked
    from wirepaint.evaluation.network import Network
    from wirepaint.evaluation.users import PlannedUser, PlannedVisit

BUFFER_MAX = 256 * 2**20
"""Largest socket buffer in bytes: more than four times 1 Gbit/s x 300 ms."""

BASELINE_SYSCTLS = {
    "net.ipv4.tcp_rmem": f"4096 131072 {BUFFER_MAX}",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_wmem": f"4096 16384 {BUFFER_MAX}",
}
"""TCP settings of every run that differ, or may differ, from Linux's defaults."""

CLIENT_ADDRESS = "10.64.0.2"
"""Of the first client."""
_CLIENTS_OF_NETWORK = 250
"""Addresses of clients in a network /24, from its first on."""
FLOW_SERVER_ADDRESS = "10.63.0.1"
"""Of the servers of flows: a network /24 of their own, apart from those of pages."""
CLIENT_CONGESTION = "reno"
"""Congestion control of the browser's side. It sends little, but each request is a segment, and ten of them
do not fit the first window beside the end of the handshake."""


MAIN = "access"
"""Name of the segment with the scenario's network."""


def _segment(run: ResolvedRun, network: Network, name: str) -> Segment:
    """A stretch of the path of a run."""
    return Segment(
        name=name,
        down=begun(network.direction("down"), run.seed),
        up=begun(network.direction("up"), run.seed),
        packet_trace=run.packet_trace,
    )


def captured(run: ResolvedRun) -> Capture | None:
    """What is to be captured."""
    return run.capture and Capture(size_limit=run.capture.size_limit, snap_length=run.capture.snap_length)


def has_changes(path: Segment) -> bool:
    """Whether a link changes during the run."""
    return any(direction["changes"] for direction in (path.down, path.up))


@dataclass(frozen=True)
class Controls:
    """The congestion controls of a run: their instances, and their names for hosts and flows."""

    of_users: tuple[str, ...]
    """For each user that of its uplink."""
    of_hops: hops.Controls
    of_flows: tuple[str | None, ...]
    """For each flow its own; None for that of its host."""
    instances: list[Congestion]


def controls(run: ResolvedRun, folder: Path, name: Callable[[Asked, int], str]) -> Controls:
    """All congestion controls of a run.

    ``name`` makes the name of an instance from what was asked for and its number in the run; names that are
    equal must mean the same. Those that the kernel has keep theirs.
    """
    native, of_client = NATIVE[CLIENT_CONGESTION]
    instances = {
        CLIENT_CONGESTION: Congestion(
            algorithm=native, name=CLIENT_CONGESTION, parameters=of_client, of_kernel=True
        )
    }
    known: list[Asked] = []

    def named(asked: Asked) -> str:
        if asked not in known:
            known.append(asked)
        label = name(asked, known.index(asked)) if asked.own else asked.name
        if label not in instances:
            algorithm, parameters = asked.native(folder)
            instances[label] = Congestion(
                algorithm=algorithm, name=label, parameters=parameters, of_kernel=not asked.own
            )
        return label

    main = named(run.congestion)
    behind = tuple(named(part.congestion) for part in run.proxy.parts)
    of_flows = tuple(flow.congestion and named(flow.congestion) for flow in run.flows)
    of_users = tuple(named(user.congestion) if user.congestion else CLIENT_CONGESTION for user in run.users)
    of_hops = hops.Controls(near=CLIENT_CONGESTION, main=main, behind=behind)
    return Controls(of_users, of_hops, of_flows, list(instances.values()))


def client_address(number: int) -> str:
    """Address of a client, as the simulator numbers them (``crates/simulator``, ``client_address``)."""
    network, place = divmod(number + 1, _CLIENTS_OF_NETWORK)
    return f"10.64.{network}.{place + 1}"


def client_of(run: ResolvedRun, user: int) -> str:
    """Name of the host of a user."""
    return run.users[user].name if _are_apart(run) else "client"


def _are_apart(run: ResolvedRun) -> bool:
    """Whether users have hosts of their own: several do, and so does one beside flows."""
    return len(run.users) > 1 or bool(run.users and run.flows)


def placed(run: ResolvedRun, used: Controls) -> dict[str, Any]:
    """Hosts, segments, proxies and path of a run, as arguments of :class:`Run`.

    Flows beside users with hosts of their own have one too, the last client. They end at the far end of the
    main segment.
    """
    clients = [
        Host(
            name=client_of(run, number),
            role="client",
            address=client_address(number),
            congestion=control,
            dscp=user.dscp,
        )
        for number, (user, control) in enumerate(zip(run.users, used.of_users, strict=True))
    ]
    if not clients or (run.flows and _are_apart(run)):
        address = client_address(len(clients))
        clients.append(Host(name="client", role="client", address=address, congestion=CLIENT_CONGESTION))
    address = FLOW_SERVER_ADDRESS if run.flows else None
    main = _segment(run, run.network, MAIN)
    behind = hops.hops(run, used.of_hops, main, address, partial(_segment, run))
    sends = behind.servers or Sending(congestion=used.of_hops.main, initial_window=run.initial_window)
    server = Host(
        name="server",
        role="server",
        address=None if behind.hosts else address,
        congestion=sends.congestion,
        initial_window=sends.initial_window,
    )
    return {
        "hosts": [*clients, *behind.hosts, server],
        "segments": [main, *behind.segments],
        "proxies": behind.proxies,
        "path": behind.path,
    }


def browser_of(user: PlannedUser) -> str:
    """Name of a user's browser in the run description."""
    asked = user.browser
    if not user.is_light:
        return browsers.USUAL
    whose = "" if asked.model == browsers.USUAL else f"-{asked.model}"
    return f"light{whose}-{asked.connections}-{asked.pipelining}"


def modelled(users: Iterable[PlannedUser]) -> dict[str, dict[str, Any]]:
    """The numbers of the users' browsers, by name."""
    return {
        browser_of(user): browsers.light(
            user.browser.model, user.browser.connections, user.browser.pipelining
        )
        if user.is_light
        else browsers.numbers(browsers.USUAL)
        for user in users
    }


def visit_of(run: ResolvedRun, asked: PlannedVisit, *, later_ns: int = 0, **more: Any) -> Visit:
    """A visit of a run, begun ``later_ns`` later than planned; ``more`` is what only one back end has."""
    return Visit(
        user_agent=run.users[asked.user].name,
        name=asked.page_name,
        client=client_of(run, asked.user),
        after=asked.after,
        cache=asked.cache,
        timeout_ns=round(run.timeout_s * 1e9),
        start_ns=asked.start_ns + later_ns,
        **more,
    )


@dataclass(frozen=True)
class Visited:
    """A page of a run, as some of its visits load it."""

    name: str
    """Unique in the run."""
    page: Path
    """Folder of the archive."""
    viewport: tuple[int, int]


def visited(run: ResolvedRun) -> tuple[list[Visited], list[Visited]]:
    """The pages of a run, each once, and for each of its visits the page."""
    known: dict[tuple[Path, tuple[int, int]], Visited] = {}
    names: list[str] = []
    for visit in run.visits:
        key = visit.page, visit.viewport
        if key not in known:
            number = names.count(visit.page_name)
            names.append(visit.page_name)
            known[key] = Visited(f"{visit.page_name}~{number + 1}" if number else visit.page_name, *key)
    return list(known.values()), [known[visit.page, visit.viewport] for visit in run.visits]


def flows(run: ResolvedRun, used: Controls) -> list[Flow]:
    """The flows, to the far end of the main segment; background where a visit is what is measured."""
    return [
        Flow(
            name=flow.name,
            kind=flow.kind,
            start_ns=flow.start_ns,
            stop_ns=flow.stop_ns,
            sender=flow.sender,
            after=flow.after,
            background=flow.background or bool(run.visits),
            nodelay=not flow.nagle,
            congestion=control,
            dscp=flow.dscp,
            tool=flow.tool,
            server=hops.first_beyond(run),
        )
        for flow, control in zip(run.flows, used.of_flows, strict=True)
    ]


def unfinished(run: ResolvedRun, flows: list[str]) -> list[dict[str, str]]:
    """A note for flows alone that did not reach their end; ``flows`` are those that did not."""
    late = {flow.name for flow in run.flows if not (flow.endless or flow.background)} & set(flows)
    if run.visits or not late:
        return []
    some = ", ".join(sorted(late)[:3]) + (f" and {len(late) - 3} more" if len(late) > 3 else "")
    found = f"not ended after {run.timeout_s:g} s: {some}"
    return [
        {"severity": "note", "check": "flows", "found": found, "expected": "all flows with an end reach it"}
    ]


def transport(run: ResolvedRun) -> Transport:
    """HTTP, TLS and TCP of all connections."""
    sysctls = {name: str(value) for name, value in (BASELINE_SYSCTLS | run.sysctls).items()}
    return Transport(http=run.http, tls=run.tls, sysctls=sysctls)


def begun(direction: Direction, seed: int) -> Direction:
    """Starts a capacity trace at an offset drawn from the visit's seed: the same for all compared runs."""
    capacity = direction["capacity"]
    if capacity["kind"] != "trace":
        return direction
    last = capacity["opportunities_ms"][-1]
    # A fraction, so that two directions that were recorded together stay aligned.
    offset = int(random.Random(f"wirepaint trace offset {seed}").random() * last)
    return {**direction, "capacity": capacity | {"offset_ms": offset}}


def identity(run: ResolvedRun) -> dict[str, Any]:
    """The columns of the table ``run`` that identify the run and what was asked for."""
    return {
        "run_key": run.key,
        "backend": run.backend,
        "seed": run.seed,
        "scenario": run.scenario,
        **levels(run),
        "user_agent": run.user_agent,
        "page": run.page_name,
        "visit": run.visit,
        "warmup": run.warmup,
        "attempt": run.attempt,
    }


def client_congestion(run: ResolvedRun) -> str:
    """Names of the congestion controls of the clients."""
    asked = [user.congestion.name if user.congestion else CLIENT_CONGESTION for user in run.users]
    return ", ".join(sorted(set(asked or [CLIENT_CONGESTION])))
