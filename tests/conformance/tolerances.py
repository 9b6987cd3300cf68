"""How near the simulator must come to Linux (docs/guide/simulator-beside-linux.md)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arms import MS, Seen


@dataclass(frozen=True)
class Finding:
    """How a figure of the simulator lies beside Linux's, each arm having run several times."""

    what: str
    linux: tuple[float, ...]
    simulated: tuple[float, ...]
    limit: float
    """Largest distance, in ``unit``."""
    unit: str = ""
    share: bool = False
    """The distance is counted in per cent of Linux's median."""

    @classmethod
    def of(
        cls,
        what: str,
        arms: Iterable[Iterable[float]],
        limit: float,
        unit: str = "",
        *,
        share: bool = False,
    ) -> Finding:
        """``arms``: what Linux showed, what the simulator showed."""
        linux, simulated = (tuple(map(float, arm)) for arm in arms)
        return cls(what, linux, simulated, limit, unit, share)

    def _counted(self, distance: float) -> float:
        usual = abs(statistics.median(self.linux))
        return 100 * distance / usual if self.share and usual else distance

    @property
    def error(self) -> float:
        """Of the simulator's median, with its sign."""
        return self._counted(statistics.median(self.simulated) - statistics.median(self.linux))

    @property
    def gap(self) -> float:
        """Between the two ranges; 0 where they overlap."""
        apart = (min(self.simulated) - max(self.linux), min(self.linux) - max(self.simulated))
        return self._counted(max(*apart, 0.0))

    @property
    def by_medians(self) -> bool:
        """The medians are near enough."""
        return abs(self.error) <= self.limit

    @property
    def scattered(self) -> bool:
        """The runs of one arm are further apart than the arms may be: its median says little."""
        return any(self._counted(max(arm) - min(arm)) > self.limit for arm in (self.linux, self.simulated))

    @property
    def holds(self) -> bool:
        """The medians are near enough or, of scattered runs, the ranges."""
        return self.by_medians or (self.scattered and self.gap <= self.limit)

    def __str__(self) -> str:
        verdict = "within" if self.by_medians else "within by ranges" if self.holds else "BEYOND"
        return f"{self.what}: {self.error:+.3g}{self.unit} ({verdict} {self.limit:.3g}{self.unit})"


def compare(linux: Sequence[Seen], simulated: Sequence[Seen]) -> list[Finding]:
    """The tolerances for what both arms carried out."""
    flow, both = linux[0].flow, (linux, simulated)
    if flow.messages:
        return _compare_messages(linux, simulated)
    usual = statistics.median(seen.completion_ns for seen in linux)
    lossy = any(seen.drops for arm in both for seen in arm)
    least = flow.link.packet_ns / 2 + MS
    allowed = 0.01 if not lossy else 0.02 if flow.bytes >= 5_000_000 else 0.05
    times = [[seen.completion_ns for seen in arm] for arm in both]
    findings = [Finding.of("completion", times, 100 * max(allowed, least / usual), " %", share=True)]
    if flow.count > 1:
        return findings + _compare_crowds(linux, simulated)
    linux = [seen for seen in linux if seen.sampled]
    simulated = [seen for seen in simulated if seen.sampled]
    return findings + (_compare_windows(linux, simulated) if linux and simulated else [])


def _compare_windows(linux: Sequence[Seen], simulated: Sequence[Seen]) -> list[Finding]:
    """The tolerances for the window of one flow."""
    flow, both = linux[0].flow, (linux, simulated)
    rtt = flow.link.rtt * MS
    findings = _slow_start(linux, simulated)
    findings.append(Finding.of("reductions", [[len(seen.episodes) for seen in arm] for arm in both], 1))
    if flow.sender.name == "bbr":
        # It answers a loss by its model of the path, not by a reduction.
        return findings
    exits = [[seen.slow_start[1] for seen in arm if seen.slow_start[1]] for arm in both]
    if all(exits):
        findings.append(Finding.of("window at HyStart's exit", exits, 10, " %", share=True))
    if all(seen.episodes for arm in both for seen in arm):
        firsts = [[seen.episodes[0] / rtt for seen in arm] for arm in both]
        findings.append(Finding.of("first reduction", firsts, 1, " round trips"))
        what = "mean window after the first loss"
        means = [[statistics.fmean(seen.after_loss()) for seen in arm] for arm in both]
        if flow.sender.name == "fld":
            # Its window is small after so many losses: a few of 200 more or less change it much.
            whole = max(max(seen.after_loss()) for seen in linux)
            means = [[100 * mean / whole for mean in arm] for arm in means]
            findings.append(Finding.of(what, means, 10, " %"))
        else:
            findings.append(Finding.of(what, means, 5, " %", share=True))
    return findings


def _slow_start(linux: Sequence[Seen], simulated: Sequence[Seen]) -> list[Finding]:
    """The window at each round trip before anybody leaves slow start, where the arms are furthest apart;
    nothing where somebody leaves within the first one."""
    flow = linux[0].flow
    rtt = flow.link.rtt * MS
    ends = [seen.slow_start[0] for seen in (*linux, *simulated)]
    boundaries = simulated[0].delivered(range(rtt // 2, min(ends) - rtt // 2, rtt))
    theirs, ours = ([seen.grown(boundaries) for seen in arm] for arm in (linux, simulated))
    most = max((window for windows in theirs for window in windows), default=0)
    # BBR's follows its estimate of the bandwidth.
    limit = max(2, 0.05 * most if flow.sender.name == "bbr" else 0)
    at_each = [
        Finding.of("window in slow start", arms, limit, " segments")
        for arms in zip(zip(*theirs, strict=True), zip(*ours, strict=True), strict=True)
    ]
    return sorted(at_each, key=lambda finding: (finding.holds, -abs(finding.error)))[:1]


def _compare_messages(linux: Sequence[Seen], simulated: Sequence[Seen]) -> list[Finding]:
    """The tolerances for messages at a constant rate."""
    p50, p99 = (
        [[seen.delay_ms(share) for seen in arm] for arm in (linux, simulated)] for share in (0.5, 0.99)
    )
    return [
        Finding.of("message delay p50", p50, 0.2, " ms"),
        Finding.of("message delay p99", p99, 5, " %", share=True),
    ]


def _compare_crowds(linux: Sequence[Seen], simulated: Sequence[Seen]) -> list[Finding]:
    """The tolerances for many flows at once, over the first half of the transfer."""
    until = min(seen.completion_ns for seen in (*linux, *simulated)) // 2
    crowds = [[seen.crowd(until) for seen in arm] for arm in (linux, simulated)]
    return [
        Finding.of(what, [[one[what] for one in arm] for arm in crowds], limit, unit, share=bool(unit))
        for what, limit, unit in (
            ("goodput", 1, " %"),
            ("Jain's index", 0.05, ""),
            ("queueing delay p50", 10, " %"),
            ("queueing delay p95", 10, " %"),
            ("loss rate", 15, " %"),
        )
    ]
