"""Parts of a run description that both back ends use: path, settings, its row of the table ``run``."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from wirepaint.dataplane.description import Direction, Host, Segment, Transport
from wirepaint.evaluation.axes import levels

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun

BUFFER_MAX = 256 * 2**20
"""Largest socket buffer in bytes: more than four times 1 Gbit/s x 300 ms."""

BASELINE_SYSCTLS = {
    "net.ipv4.tcp_rmem": f"4096 131072 {BUFFER_MAX}",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_wmem": f"4096 16384 {BUFFER_MAX}",
}
"""TCP settings of every run that differ, or may differ, from Linux's defaults."""

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


def hosts(run: ResolvedRun, *, client: str, server: str) -> list[Host]:
    """Client and server, with the names of their congestion controls in the description."""
    return [
        Host(name="client", role="client", congestion=client),
        Host(name="server", role="server", congestion=server, initial_window=run.initial_window),
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
