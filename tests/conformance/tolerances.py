"""How near the simulator must come to Linux (docs/guide/simulator.md, "Beside Linux")."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arms import MS, Seen


@dataclass(frozen=True)
class Finding:
    """How a figure of the simulator lies beside Linux's."""

    what: str
    found: float
    """Distance, in the unit of ``limit``."""
    limit: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.found <= self.limit

    def __str__(self) -> str:
        sign = "within" if self.holds else "BEYOND"
        return f"{self.what}: {self.found:.3g}{self.unit} ({sign} {self.limit:.3g}{self.unit})"


def _gap(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """Distance between two ranges; 0 where they overlap."""
    ours, theirs = list(ours), list(theirs)
    return max(min(ours) - max(theirs), min(theirs) - max(ours), 0.0)


def compare(linux: Sequence[Seen], simulated: Sequence[Seen]) -> list[Finding]:
    """The tolerances for one flow, between the ranges of both arms."""
    flow = linux[0].flow
    times = [seen.completion_ns for seen in linux]
    usual = statistics.median(times)
    lossy = any(seen.drops for seen in (*linux, *simulated))
    share = 0.01 if not lossy else 0.02 if flow.bytes >= 5_000_000 else 0.05
    least = flow.link.packet_ns / 2 + MS
    gap = _gap((seen.completion_ns for seen in simulated), times)
    findings = [Finding("completion", 100 * gap / usual, 100 * max(share, least / usual), " %")]
    if flow.count > 1:
        return findings + _compare_crowds(linux, simulated)
    linux = [seen for seen in linux if not seen.unseen]
    return findings + (_compare_windows(linux, simulated) if linux else [])


def _compare_windows(linux: Sequence[Seen], simulated: Sequence[Seen]) -> list[Finding]:
    """The tolerances for the window of one flow."""
    flow, rtt = linux[0].flow, linux[0].flow.link.rtt * MS
    bbr = flow.sender.name == "bbr"
    findings = []

    # Slow start, at each round trip before anybody leaves it. BBR's follows its estimate of the bandwidth.
    ends = [seen.slow_start[0] for seen in (*linux, *simulated)]
    boundaries = simulated[0].delivered(range(rtt // 2, min(ends) - rtt // 2, rtt))
    pairs = [(ours.grown(boundaries), theirs.grown(boundaries)) for ours in simulated for theirs in linux]
    most = max((max(windows) for windows, _ in pairs if windows), default=0)
    apart = min(max((abs(a - b) for a, b in zip(*pair, strict=True)), default=0) for pair in pairs)
    findings.append(Finding("window in slow start", apart, max(2, 0.05 * most if bbr else 0), " segments"))

    counts = [[len(seen.episodes) for seen in arm] for arm in (simulated, linux)]
    findings.append(Finding("reductions", _gap(*counts), 1, ""))
    exits = [[seen.slow_start[1] for seen in arm if seen.slow_start[1]] for arm in (simulated, linux)]
    if not bbr and all(exits):
        left = 100 * _gap(*exits) / statistics.median(exits[1])
        findings.append(Finding("window at HyStart's exit", left, 10, " %"))
    # BBR answers a loss by its model of the path, not by a reduction.
    if not bbr and all(seen.episodes for seen in (*linux, *simulated)):
        firsts = [[seen.episodes[0] for seen in arm] for arm in (simulated, linux)]
        findings.append(Finding("first reduction", _gap(*firsts) / rtt, 1, " round trips"))
        means = [[statistics.fmean(seen.after_loss()) for seen in arm] for arm in (simulated, linux)]
        # FLD's window is what as many losses left of it: a few of 200 more or less are much of the rest.
        whole = max(max(seen.after_loss()) for seen in linux) if flow.sender.name == "fld" else 0
        apart = 100 * _gap(*means) / (whole or statistics.median(means[1]))
        findings.append(Finding("mean window after the first loss", apart, 10 if whole else 5, " %"))
    return findings


def _compare_crowds(linux: Sequence[Seen], simulated: Sequence[Seen]) -> list[Finding]:
    """The tolerances for many flows at once, over the first half of the transfer."""
    until = min(seen.completion_ns for seen in (*linux, *simulated)) // 2
    ours, theirs = ([seen.crowd(until) for seen in arm] for arm in (simulated, linux))
    findings = []
    for what, limit, relative in (
        ("goodput", 1, True),
        ("Jain's index", 0.05, False),
        ("queueing delay p50", 10, True),
        ("queueing delay p95", 10, True),
        ("loss rate", 15, True),
    ):
        gap = _gap((one[what] for one in ours), (one[what] for one in theirs))
        usual = statistics.median(one[what] for one in theirs)
        found = 100 * gap / usual if relative and usual else gap
        findings.append(Finding(what, found, limit, " %" if relative else ""))
    return findings
