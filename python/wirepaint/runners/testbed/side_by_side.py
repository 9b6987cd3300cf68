"""Which runs of a machine may go side by side, and how many.

A run has the testbed for itself as a rule: browsers and fast links would slow each other. Light users on a
slow link wait for it nearly all of the time. Such runs go side by side. To each of them the others are
processes of the machine like all others, and its checks say when these were too much for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun
    from wirepaint.evaluation.network import Network
    from wirepaint.results.outcome import Outcome

PER_CORE = 4
"""Runs: each takes 0.03 s of CPU time in a second (docs/decisions/0035-side-by-side.md)."""
MOST = 16
"""Runs, as the emulators of all have one CPU."""
SLOW_BIT_S = 10e6
"""Both directions of all hops of a run that may go beside others."""
_BETWEEN_CPU_S = 4.0
"""CPU time of the machine between two beginnings: a beginning and an end take 0.5 s of it."""
_RARER, _RAREST, _NEARER = 1.5, 4.0, 0.95
"""How much longer beginnings keep apart after a run that others left too little CPU time, at most, and after
another run."""


def limit() -> int:
    """Runs that may go side by side on this machine."""
    return min(PER_CORE * (os.cpu_count() or 1), MOST)


def between_s() -> float:
    """Least time between the beginnings of two runs side by side."""
    return _BETWEEN_CPU_S / (os.cpu_count() or 1)


def next_between_s(between: float, end: Outcome) -> float:
    """The time between beginnings after a run that ended so: longer where others took too much CPU time.

    On a slow machine the beginnings and ends of the other runs are much of that.
    """
    if any(reason["check"] == "foreign_cpu" for reason in end.reasons):
        return min(between * _RARER, between_s() * _RAREST)
    return max(between * _NEARER, between_s())


def may(run: ResolvedRun) -> bool:
    """Whether the run may go beside others: no Chromium, no iperf3, slow hops."""
    if any(not user.is_light for user in run.users) or any(flow.tool == "iperf3" for flow in run.flows):
        return False
    rates = [network.rate(side) for network in _networks(run) for side in ("down", "up")]
    return all(rates) and sum(rate for rate in rates if rate) <= SLOW_BIT_S


def _networks(run: ResolvedRun) -> Iterator[Network]:
    yield run.network
    for part in run.proxy.parts:
        if part.network is not None:
            yield part.network
