"""Parts of a run description that both back ends use: path, settings, its row of the table ``run``."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepaint.dataplane.description import Capture, Congestion, Direction, Flow, Host, Segment, Transport
from wirepaint.evaluation.axes import levels
from wirepaint.evaluation.congestion import NATIVE

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun
    from wirepaint.evaluation.congestion import Congestion as Asked

BUFFER_MAX = 256 * 2**20
"""Largest socket buffer in bytes: more than four times 1 Gbit/s x 300 ms."""

BASELINE_SYSCTLS = {
    "net.ipv4.tcp_rmem": f"4096 131072 {BUFFER_MAX}",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_wmem": f"4096 16384 {BUFFER_MAX}",
}
"""TCP settings of every run that differ, or may differ, from Linux's defaults."""

CLIENT_ADDRESS = "10.64.0.2"
FLOW_SERVER_ADDRESS = "10.63.0.1"
"""Of the servers of flows: a network /24 of their own, apart from those of pages."""
CLIENT_CONGESTION = "reno"
"""Congestion control of the browser's side. It sends little, but each request is a segment, and ten of them
do not fit the first window beside the end of the handshake."""


def segment(run: ResolvedRun) -> Segment:
    """The path."""
    return Segment(
        down=_begun(run.network.direction("down"), run.seed),
        up=_begun(run.network.direction("up"), run.seed),
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

    client: str
    server: str
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

    server = named(run.congestion)
    of_flows = tuple(flow.congestion and named(flow.congestion) for flow in run.flows)
    return Controls(CLIENT_CONGESTION, server, of_flows, list(instances.values()))


def hosts(run: ResolvedRun, used: Controls) -> list[Host]:
    """Client and server."""
    client = Host(name="client", role="client", congestion=used.client)
    server = Host(name="server", role="server", congestion=used.server, initial_window=run.initial_window)
    if run.flows:
        client, server = replace(client, address=CLIENT_ADDRESS), replace(server, address=FLOW_SERVER_ADDRESS)
    return [client, server]


def flows(run: ResolvedRun, used: Controls) -> list[Flow]:
    """The flows; background where a visit is what is measured."""
    return [
        Flow(
            name=flow.name,
            kind=flow.kind,
            start_ns=flow.start_ns,
            stop_ns=flow.stop_ns,
            sender=flow.sender,
            after=flow.after,
            background=flow.background or run.page is not None,
            nodelay=not flow.nagle,
            congestion=control,
            dscp=flow.dscp,
        )
        for flow, control in zip(run.flows, used.of_flows, strict=True)
    ]


def unfinished(run: ResolvedRun, flows: list[str]) -> list[dict[str, str]]:
    """A note for flows alone that did not reach their end; ``flows`` are those that did not."""
    late = {flow.name for flow in run.flows if not (flow.endless or flow.background)} & set(flows)
    if run.page is not None or not late:
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


def _begun(direction: dict[str, Any], seed: int) -> Direction:
    """Starts a capacity trace at an offset drawn from the visit's seed: the same for all compared runs."""
    capacity = direction["capacity"]
    if capacity["kind"] != "trace":
        return direction
    last = capacity["opportunities_ms"][-1]
    # A fraction, so that two directions that were recorded together stay aligned.
    offset = int(random.Random(f"wirepaint trace offset {seed}").random() * last)
    return direction | {"capacity": capacity | {"offset_ms": offset}}


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
