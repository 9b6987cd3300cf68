"""The simulator: page visits under a virtual clock, many at once, without root or browser.

One process of the data plane carries out all runs on all cores. It reads paths of run
descriptions and prints a line when a run is over. This module makes an ``Outcome`` from the line. The
description stays in the run's folder as ``run.json``, so that ``wirepaint-dataplane simulate run.json``
repeats it. Where nobody keeps traces (``Collected``), no run has a file of its own.

If the process dies, the runs that it had are started again one at a time, and the rest in a new process.
Only a run that kills its own process fails.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from wirepaint import __version__
from wirepaint.dataplane import simulate
from wirepaint.dataplane.description import Congestion, Direction, Flow, Host, Run, Segment, Transport, Visit
from wirepaint.dataplane.simulate import Named
from wirepaint.errors import PageTimeout, Refused, RunFailed
from wirepaint.evaluation.congestion import NATIVE
from wirepaint.results import durable, trace
from wirepaint.results.outcome import Outcome
from wirepaint.results.store import DISK_ERRORS
from wirepaint.runners import refusals
from wirepaint.runners.description import (
    BASELINE_SYSCTLS,
    CLIENT_CONGESTION,
    begun,
    browser_of,
    client_congestion,
    controls,
    flows,
    identity,
    modelled,
    placed,
    transport,
    unfinished,
    visit_of,
)
from wirepaint.runners.graphs import load_graphs

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun
    from wirepaint.runners.collected import Collected
    from wirepaint.runners.contract import Interruptible, Job
    from wirepaint.runners.graphs import Load

    End = tuple[ResolvedRun, Outcome | RunFailed]
    Lost = tuple[Job, RunFailed]

HOST_DELAY_NS = (20_000, 75_000)
"""Delay that hosts and emulator add to one direction of a path with visits; measured: 40 to 150 us per round
trip."""
HOST_JITTER = {"kind": "uniform", "range_ns": 20_000, "reorder": False}
"""Jitter of that delay, packet by packet; measured: p10 and p95 of a direction are 23 to 50 us apart."""
FLOWS_DELAY_NS = ((19_000, 22_000), (25_000, 29_000))
"""Delay of hosts that have flows only, down and up, without its jitter; measured: 5th to 10th percentile of
the time from a packet to its answer (docs/decisions/0018)."""
FLOWS_RATE, FLOWS_JITTER_NS = 100e6, (10_000, 14_000, 2_900)
"""Mean of their jitter: the least, that on a link of this rate in bit/s, and what each halving of it adds."""
FLOW_OPENS_NS = (28_000, 60_000)
"""Time from one flow to the next of those that begin at once, run by run; measured: 28 to 60 us."""
PEP_OPENS_NS = 5_000_000_000
"""Time before the visits in which a PEP opens the connections between its sides."""
TICKS_NS = 32_000_000
"""A visit starts at a random time below this: timers beyond a quarter of a second go off every 32 ms."""

_OF_VISIT = frozenset({"key", "seed", "visit", "warmup", "attempt"})
"""Fields in which runs of one condition differ."""
_CONDITIONS = 256
"""Conditions that are known at a time."""
_DESCRIBED_AT_ONCE = 32
"""Runs without files of their own whose descriptions are made one after the other; each takes some 50 kB."""


class Session:
    """The simulator at work (:class:`wirepaint.runners.contract.Session`)."""

    calibrate = None
    """A simulated path gives what was asked."""
    team = None

    def __init__(
        self,
        interruptible: Interruptible,
        load: Load | None = None,
        cores: int | None = None,
        collected: Collected | None = None,
    ) -> None:
        """``load`` gives load graphs where the pages are elsewhere; ``cores`` are all if none is given.

        With ``collected``, which takes one core, no run has a trace of its own.
        """
        self._interruptible, self._cores = interruptible, cores
        self._collected = collected
        self._describer = Describer(load, share_files=collected is not None)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def carry_out(self, jobs: Iterator[Job]) -> Generator[End, None, None]:
        """Carries out runs side by side, and gives them in the order of their ends.

        Also the ends of those that kill the process.
        """
        refused: list[End] = []
        described = self._described(jobs, refused)
        while lost := (yield from self._in_one_process(described, refused)):
            for job, _ in lost:
                # Any of them may be the cause. A run that ends the process when it is alone is the cause.
                alone = self._described(iter([job]), refused)
                for deadly, failure in (yield from self._in_one_process(alone, refused)):
                    yield deadly.run, failure

    def _described(self, jobs: Iterator[Job], refused: list[End]) -> Iterator[tuple[Job, Path | Named]]:
        """Runs with their descriptions; those that have none are added to ``refused``."""
        # By turns with the simulator, a description would take twice the time: nothing is in the cache.
        at_once = 1 if self._collected is None else _DESCRIBED_AT_ONCE
        while some := list(itertools.islice(jobs, at_once)):
            found: list[tuple[Job, Path | Named]] = []
            for job in some:
                try:
                    if self._collected is None:
                        found.append((job, self._describer.describe(job.run, job.folder.absolute()).write()))
                    else:
                        found.append((job, self._describer.named(job.run, job.folder)))
                except RunFailed as failure:
                    refused.append((job.run, failure))
            yield from found

    def _in_one_process(
        self, described: Iterator[tuple[Job, Path | Named]], refused: list[End]
    ) -> Generator[End, None, list[Lost]]:
        """Yields the ends of runs, also those ``refused``, until there are no more or the process dies.

        Returns the runs that the process had when it died, each with the failure.
        """
        lost: list[Lost] = []
        collect = None if self._collected is None else self._collected.begin()
        try:
            for job, said in simulate.ends(described, self._interruptible, self._cores, collect):
                yield job.run, self._end(job, said)
                while refused:
                    yield refused.pop()
        except simulate.Died as died:
            lost = [(job, RunFailed(str(died))) for job in died.jobs]
        while refused:
            yield refused.pop()
        return lost

    def _end(self, job: Job, said: dict[str, Any]) -> Outcome | RunFailed:
        """The outcome or failure of a run. Its table ``run`` is kept, unless nothing of it is needed."""
        if self._collected is not None and "error" not in said:
            self._collected.add(job.run.key, said)
        end = _outcome(job.run, said)
        if isinstance(end, RunFailed):
            return end
        if self._collected is None:
            if end.reasons:
                _say_reasons(job.folder, end)
        elif ahead := said.get("ahead"):  # of the table, metrics read what was sent ahead only
            row = {"ahead_bytes": ahead["bytes"], "ahead_unused_bytes": ahead["unused_bytes"]}
            self._collected.put(job.run.key, trace.table("run", [row]))
        return end


@dataclass(frozen=True)
class _Common:
    """What the descriptions of all visits of a condition have in common."""

    place: dict[str, Any]
    """Hosts, proxies and path."""
    segments: list[Segment]
    instances: list[Congestion]
    transport: Transport
    browsers: dict[str, dict[str, Any]]
    graphs: dict[str, dict[str, Any]]
    visits: list[Visit]
    flows: list[Flow]
    lead_ns: int
    until_ns: int

    @property
    def has_files(self) -> bool:
        """Whether a congestion control is a copy of a C file."""
        return any(Path(control.algorithm).is_absolute() for control in self.instances)

    @classmethod
    def of(cls, run: ResolvedRun, folder: Path, load: Load | None) -> _Common:
        used = controls(run, folder, lambda asked, number: f"{asked.name}-{number}")
        graphs, of_visits = load_graphs(run, load)
        lead_ns = PEP_OPENS_NS if run.proxy.has_pep else 0
        place = placed(run, used)
        return cls(
            segments=place.pop("segments"),
            place=place,
            instances=used.instances,
            transport=transport(run),
            browsers=modelled(run.users),
            graphs=graphs,
            visits=[
                visit_of(
                    run,
                    asked,
                    later_ns=lead_ns if asked.after is None else 0,
                    page=page.name,
                    browser=browser_of(run.users[asked.user]),
                )
                for asked, page in zip(run.visits, of_visits, strict=True)
            ],
            flows=[_later(flow, lead_ns) for flow in flows(run, used)],
            lead_ns=lead_ns,
            until_ns=round(run.longest_s * 1e9) + lead_ns + TICKS_NS * len(run.visits),
        )


@dataclass(frozen=True)
class _Drawn:
    """What is drawn from a run's seed, in ns."""

    hosts: Sequence[tuple[int, int]]
    """Delay of the hosts of each segment, down and up."""
    starts: Sequence[int]
    """By how much each visit starts later."""
    opens: int
    """Time from one flow to the next."""

    @classmethod
    def of(cls, seed: int, *, visits: int, segments: int) -> _Drawn:
        # Windows depend on the phase of TCP's clocks and on whether a round trip takes 30.97 or 31.02 ms.
        drawn = random.Random(seed)
        of_hosts = (HOST_DELAY_NS, HOST_DELAY_NS) if visits else FLOWS_DELAY_NS

        def of_segment() -> tuple[int, int]:
            down, up = of_hosts
            return drawn.randint(*down), drawn.randint(*up)

        main = of_segment()
        starts = [drawn.randrange(TICKS_NS) for _ in range(visits)]
        # Last, so that a run with proxies draws what one without does.
        others = [of_segment() for _ in range(1, segments)]
        return cls([main, *others], starts, drawn.randint(*FLOW_OPENS_NS))


class _Form:
    """The JSON of what a run has of its own, with places for what its seed says.

    Only for runs that differ in nothing else: without flows, changes of the path and capacity traces.
    """

    def __init__(self, run: ResolvedRun, folder: Path, common: _Common) -> None:
        self._delays = [(of.down["delay_ns"], of.up["delay_ns"]) for of in common.segments]
        self._starts = [visit.start_ns for visit in common.visits]
        # Numbers that are nowhere else in the text mark the places.
        marks = iter(range(-(2**53), 0))
        seed = next(marks)
        delays = [(next(marks), next(marks)) for _ in self._delays]
        starts = [next(marks) for _ in self._starts]
        of_marks = _Drawn(
            [(a - down, b - up) for (a, b), (down, up) in zip(delays, self._delays, strict=True)],
            [mark - start for mark, start in zip(starts, self._starts, strict=True)],
            0,
        )
        text = _described(run.model_copy(update={"seed": seed}), folder, common, None, of_marks).own()
        self._text = text.replace("%", "%%")
        for mark in (seed, *itertools.chain.from_iterable(delays), *starts):
            assert self._text.count(str(mark)) == 1
            self._text = self._text.replace(str(mark), "%d")

    @staticmethod
    def suits(common: _Common) -> bool:
        """Whether runs of a condition can have one."""
        sides = [side for of in common.segments for side in (of.down, of.up)]
        return not common.flows and all(
            not side["changes"] and side["capacity"]["kind"] != "trace" for side in sides
        )

    def filled(self, seed: int) -> str:
        """The text for a run with this seed."""
        drawn = _Drawn.of(seed, visits=len(self._starts), segments=len(self._delays))
        values = [seed]
        for (down, up), (of_down, of_up) in zip(self._delays, drawn.hosts, strict=True):
            values += (down + of_down, up + of_up)
        values += map(int.__add__, self._starts, drawn.starts)
        return self._text % tuple(values)


class Describer:
    """Describes runs of page visits, or of flows alone.

    What those of a condition have in common is made once.
    """

    def __init__(self, load: Load | None = None, *, share_files: bool = False) -> None:
        """``load`` gives load graphs where the pages are elsewhere.

        With ``share_files``, runs use the copies of C files in the folder of the first one.
        """
        self._load, self._share_files = load, share_files
        self._known: dict[tuple[int, ...], tuple[ResolvedRun, _Common]] = {}
        self._forms: dict[tuple[int, ...], tuple[ResolvedRun, Run, _Form]] = {}

    def named(self, run: ResolvedRun, folder: Path) -> Named:
        """The description of a run without files of its own (``share_files``)."""
        alike = _alike(run)
        if alike in self._forms:
            _, like, form = self._forms[alike]
            return Named(run.key, like, form.filled(run.seed))
        described = self.describe(run, folder.absolute())
        _, common = self._known[alike]
        if _Form.suits(common):
            if len(self._forms) == _CONDITIONS:
                self._forms.clear()
            self._forms[alike] = run, described, _Form(run, folder.absolute(), common)
        return Named(run.key, described)

    def describe(self, run: ResolvedRun, folder: Path) -> Run:
        """The description of a run whose files are in ``folder``."""
        alike = _alike(run)
        row = None if self._share_files else _asked(run)  # without files of its own it has no tables either
        if alike in self._known:
            return _described(run, folder, self._known[alike][1], row)
        common = _Common.of(run, folder, self._load)
        if self._share_files or not common.has_files:
            if len(self._known) == _CONDITIONS:
                self._known.clear()
            # The run stays, so that nothing else gets the ids of its parts.
            self._known[alike] = run, common
        return _described(run, folder, common, row)


def _alike(run: ResolvedRun) -> tuple[int, ...]:
    """A key that runs of one condition have in common."""
    return tuple([id(value) for name, value in vars(run).items() if name not in _OF_VISIT])


def describe(run: ResolvedRun, folder: Path, load: Load | None = None) -> Run:
    """The description of one run; ``load`` gives load graphs where the pages are elsewhere."""
    return _described(run, folder, _Common.of(run, folder, load), _asked(run))


def _described(
    run: ResolvedRun,
    folder: Path,
    common: _Common,
    row: Mapping[str, Any] | None,
    drawn: _Drawn | None = None,
) -> Run:
    drawn = drawn or _Drawn.of(run.seed, visits=len(common.visits), segments=len(common.segments))
    jitter = HOST_JITTER if run.visits else flows_jitter(run.network.rate("down"))
    visits = [
        replace(visit, start_ns=visit.start_ns + later)
        for visit, later in zip(common.visits, drawn.starts, strict=True)
    ]
    # Changes of the path count from the beginning of the flows, else of the first visit.
    began = [visit.start_ns for visit in visits if visit.after is None]
    origin_ns = common.lead_ns if run.flows else min(began)
    segments = [
        replace(
            segment,
            **{
                side: _slower(
                    begun(getattr(segment, side), run.seed), delay, jitter, origin_ns, common.lead_ns
                )
                for side, delay in zip(("down", "up"), of_hosts, strict=True)
            },
        )
        for segment, of_hosts in zip(common.segments, drawn.hosts, strict=True)
    ]
    return Run(
        id="sim",
        seed=run.seed,
        trace_dir=folder,
        work_dir=folder,
        segments=segments,
        **common.place,
        congestion=common.instances,
        transport=common.transport,
        browsers=common.browsers,
        pages=common.graphs,
        visits=visits,
        flows=_one_by_one(common.flows, drawn.opens),
        until_ns=common.until_ns,
        row=row,
        alike=common,
    )


def _later(flow: Flow, later_ns: int) -> Flow:
    """The flow, begun later; times of one that waits for another one count from that one's end."""
    if flow.after is not None:
        return flow
    stop_ns = None if flow.stop_ns is None else flow.stop_ns + later_ns
    return replace(flow, start_ns=flow.start_ns + later_ns, stop_ns=stop_ns)


def _one_by_one(flows: list[Flow], opens_ns: int) -> list[Flow]:
    """The flows as a host begins them that shall begin at once: each ``opens_ns`` after the one before."""
    begun: Counter[int] = Counter()
    said = []
    for flow in flows:
        if flow.after is None:
            begun[flow.start_ns] += 1
            flow = replace(flow, start_ns=flow.start_ns + (begun[flow.start_ns] - 1) * opens_ns)
        said.append(flow)
    return said


def flows_jitter(rate: float | None) -> Direction:
    """Jitter of hosts that have flows only, on a link of so many bit/s.

    The longer a host waits for a packet, the deeper it sleeps. Measured at 5 to 200 Mbit/s, with 3 and 30
    flows (docs/decisions/0018).
    """
    least_ns, usual_ns, more_ns = FLOWS_JITTER_NS
    halvings = math.log2(FLOWS_RATE / rate) if rate else 0.0
    mean_ns = max(least_ns, round(usual_ns + more_ns * halvings))
    return {"kind": "exponential", "mean_ns": mean_ns, "reorder": False}


def _slower(
    direction: Direction, of_hosts: int, host_jitter: Direction, origin_ns: int, lead_ns: int
) -> Direction:
    """The direction with delay and jitter of its hosts, in ns, and its changes counted from ``origin_ns``.

    A path that does not jitter has the hosts' jitter. A capacity trace is where it would be without a lead
    of ``lead_ns``.
    """
    capacity = direction["capacity"]
    if capacity["kind"] == "trace" and lead_ns:
        offset = (capacity.get("offset_ms", 0) - lead_ns // 1_000_000) % capacity["opportunities_ms"][-1]
        capacity = capacity | {"offset_ms": offset}
    changes = [
        change
        | {"at_ns": change["at_ns"] + origin_ns}
        | ({"delay_ns": change["delay_ns"] + of_hosts} if "delay_ns" in change else {})
        | ({"jitter": _jitter(change, host_jitter)} if "jitter" in change else {})
        for change in direction["changes"]
    ]
    delay_ns = direction["delay_ns"] + of_hosts
    jitter = _jitter(direction, host_jitter)
    return {**direction, "capacity": capacity, "delay_ns": delay_ns, "jitter": jitter, "changes": changes}


def _jitter(of: Direction, host_jitter: Direction) -> Direction:
    return host_jitter if of["jitter"]["kind"] == "none" else of["jitter"]


def _outcome(run: ResolvedRun, said: Mapping[str, Any]) -> Outcome | RunFailed:
    """The outcome or failure of a run, from its line.

    Raises ``Refused`` if the data plane refused a part that is not the page's, OSError for a full or failing
    disk.
    """
    if "error" in said:
        of_system = durable.of_system(said["error"])
        if of_system is not None and of_system.errno in DISK_ERRORS:
            raise of_system
        failure = RunFailed(said["error"])
        if said["exit_code"] == Refused.exit_code:
            failure = refusals.refusal(said["error"], run.key)
        if isinstance(failure, Refused):
            raise failure
        return failure
    for asked, visit in zip(run.visits, said["visits"], strict=True):
        if visit["load_event"] is None or visit["loaded"] < visit["objects"]:
            found = f"{visit['loaded']} of {visit['objects']} objects"
            what = f"{asked.page_name} of {run.users[asked.user].name}" if len(run.visits) > 1 else "the page"
            return PageTimeout(f"{what} did not load within {run.timeout_s:g} s: {found}")
    reasons = [{"severity": "invalid", **fault} for fault in said["faults"]]
    reasons += _differing(run, said["connections"])
    reasons += unfinished(run, [flow["name"] for flow in said["flows"] if flow["ended"] is None])
    verdict = "invalid" if any(reason["severity"] == "invalid" for reason in reasons) else "valid"
    return Outcome(verdict, reasons, said["duration"], trace=said["trace"])


def _asked(run: ResolvedRun) -> dict[str, Any]:
    """The row of the table ``run`` as it is before a run that ends without a fault."""
    return identity(run) | {
        "verdict": "valid",
        "reasons": "[]",
        "wirepaint": __version__,
        "sysctls": json.dumps(BASELINE_SYSCTLS | run.sysctls),
        "client_congestion": client_congestion(run),
    }


def _say_reasons(folder: Path, outcome: Outcome) -> None:
    """Puts the verdict and its reasons into the table ``run``, which the simulator writes for a valid run."""
    row = trace.read_table(folder, "run")
    verdict, reasons = pl.lit(outcome.verdict), pl.lit(json.dumps(outcome.reasons))
    trace.write_frame(folder, "run", row.with_columns(verdict=verdict, reasons=reasons))


def _differing(run: ResolvedRun, connections: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Reasons for connections with another congestion control or initial window than asked."""
    of_flows = {flow.name: flow for flow in run.flows}
    has_pep = run.proxy.has_pep
    seen = set()
    for connection in connections:
        if connection["initial_window"] is None:
            continue
        flow = of_flows.get(connection["flow"])
        own = flow.congestion if flow is not None and flow.sender == "server" else None
        asked = own or run.congestion
        expected = (asked.simulated, run.initial_window, asked.own_initial_window)
        if has_pep and flow is None and connection["protocol"] != "pep":
            # It meets the browsers before the scenario's link.
            expected = (NATIVE[CLIENT_CONGESTION][0], Host.initial_window, False)
        used = (connection["congestion"], connection["initial_window"], connection["retransmitted"])
        seen.add((*used, *expected))
    for used, window, retransmitted, congestion, asked_window, own_window in sorted(seen):
        if used != congestion:
            yield {"severity": "invalid", "check": "congestion", "found": used, "expected": congestion}
        if window == asked_window or own_window:
            continue
        # RFC 5681 section 3.1: after the loss of a SYN-ACK the initial window is one segment.
        severity = "note" if window == 1 and retransmitted else "invalid"
        found = {"found": str(window), "expected": str(asked_window)}
        yield {"severity": severity, "check": "initial_window", **found}
