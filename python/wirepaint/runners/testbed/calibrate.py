"""Compares an emulated path with what was asked, by measurement.

A calibration builds the path of a network in a cell, starts the emulator on it and sends probes:
an echo for the round trip, a flood for the rate, a burst for the depth of the queue, a
paced stream for random loss. Each quantity gets its error and a verdict. The calibration measures the
network as it is at the start of a run, without scheduled changes.
"""

from __future__ import annotations

import bisect
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from wirepaint import dataplane
from wirepaint.dataplane.description import Interfaces, Run, Segment
from wirepaint.errors import RunFailed
from wirepaint.evaluation.classes import rates
from wirepaint.evaluation.network import Network, Side
from wirepaint.results import provenance
from wirepaint.runners.testbed import namespaces
from wirepaint.runners.testbed.cells import Cells
from wirepaint.runners.testbed.process import Part

SIDES: tuple[Side, Side] = ("down", "up")

RATE_TOLERANCE = 0.001
"""Relative. The model is exact; the error is the wake-up delay of the first and the last packet."""
SHARE_TOLERANCE = 0.5
"""Of the link, in per cent: classes differ by at most a packet each, and a span has hundreds."""
FASTEST_SHARED = 100e6
"""Above it, three floods at once are more than two cores send."""
RTT_TOLERANCE_NS = 250_000
"""At the median. Four hops and two wake-ups cost 60 to 170 µs, depending on the machine."""
FULL_IP_BYTES = 1500
SMALL_IP_BYTES = 60
"""The shortest probe: its headers and four numbers."""
OPPORTUNITY_BYTES = 1504
NS = 1_000_000_000

SHORT_DRAIN_NS = 700_000_000
LONG_DRAIN_NS = 30 * NS
"""Limits of the short and the full form: a queue that takes longer to drain is not measured."""

Direction = Mapping[str, Any]
"""One direction as the data plane reads it."""
Probe = subprocess.Popen[bytes]
Verdict = Literal["ok", "off", "not compared"]


class Quantity(BaseModel):
    """One measured quantity. ``error`` is relative if ``tolerance_unit`` is "", else in that unit."""

    name: str
    unit: str
    asked: float | None = None
    measured: float | None = None
    error: float | None = None
    tolerance: float | None = None
    tolerance_unit: str = ""
    verdict: Verdict
    note: str = ""

    @classmethod
    def skipped(cls, name: str, unit: str, note: str) -> Quantity:
        """A quantity that was not measured, and why."""
        return cls(name=name, unit=unit, verdict="not compared", note=note)

    @classmethod
    def compared(
        cls,
        name: str,
        unit: str,
        asked: float,
        measured: float | None,
        tolerance: float,
        relative: bool = False,
    ) -> Quantity:
        """A quantity with its error; ``measured`` is None when nothing arrived."""
        error = None if measured is None else (measured - asked) / (asked if relative else 1)
        within = error is not None and abs(error) <= tolerance
        return cls(
            name=name,
            unit=unit,
            asked=asked,
            measured=measured,
            error=error,
            tolerance=tolerance,
            tolerance_unit="" if relative else unit,
            verdict="ok" if within else "off",
            note="nothing arrived" if measured is None else "",
        )


class Calibration(BaseModel):
    """The measured properties of a network on a machine. Lateness is in nanoseconds."""

    network: str
    machine: dict[str, Any]
    """As in the manifest."""
    short: bool
    verdict: Verdict
    quantities: list[Quantity]
    lateness_p50: int | None
    lateness_p99: int | None
    lateness_max: int
    faults: list[dict[str, Any]]
    duration_s: float


def calibrate(network: Network, *, short: bool = False, cells: Cells | None = None) -> dict[str, Any]:
    """Measures a network and returns a ``Calibration`` as JSON values.

    ``cells`` is a launcher to share; without it one is started. The short form takes at most about
    three seconds. Raises ``MachineLacks`` without root and ``RunFailed`` when the path could not be built.
    """
    argument = {"network": network.model_dump(), "short": short}
    with ExitStack() as stack:
        cells = cells or stack.enter_context(Cells())
        log = os.memfd_create("calibration log")  # gone with this process, whatever ends it
        stack.callback(os.close, log)
        path = Path(f"/proc/{os.getpid()}/fd/{log}")
        return cells.call(f"{__name__}:measure", argument, timeout_s=60 if short else 300, log=path)


def command(network: Network, as_json: bool) -> None:
    """The verb ``network calibrate``: prints the calibration; raises ``RunFailed`` when it is off."""
    calibration = calibrate(network)
    print(json.dumps(calibration, indent=1) if as_json else table(Calibration(**calibration)))
    if calibration["verdict"] == "off":
        off = ", ".join(q["name"] for q in calibration["quantities"] if q["verdict"] == "off")
        faults = ", ".join(fault["check"] for fault in calibration["faults"])
        raise RunFailed(f"network {network.name}: not what was asked: {off or faults}")


def table(calibration: Calibration) -> str:
    """The calibration as text, one quantity a line."""
    rows = [("quantity", "asked", "measured", "error", "allowed", "verdict")]
    for q in calibration.quantities:
        error, allowed = (
            ("", "")
            if q.error is None or q.tolerance is None
            else (f"{100 * q.error:+.4f} %", f"{100 * q.tolerance:.4f} %")
            if q.tolerance_unit == ""
            else (f"{q.error:+.4g} {q.unit}", f"{q.tolerance:.4g} {q.unit}")
        )
        asked, measured = ("" if v is None else f"{v:.10g} {q.unit}" for v in (q.asked, q.measured))
        rows.append(
            (q.name, asked, measured, error, allowed, f"{q.verdict} {f'({q.note})' if q.note else ''}")
        )
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = [
        "  ".join([cell.ljust(w) for cell, w in zip(row, widths, strict=False)] + [row[5]]) for row in rows
    ]
    late = [
        "-" if v is None else f"{v / 1000:.1f}"
        for v in (calibration.lateness_p50, calibration.lateness_p99, calibration.lateness_max)
    ]
    lines.append(f"lateness of the emulator: p50 {late[0]} µs, p99 {late[1]} µs, max {late[2]} µs")
    lines += [
        f"fault: {fault['check']} {fault['direction']}: {fault['packets']}" for fault in calibration.faults
    ]
    return "\n".join([*lines, f"network {calibration.network}: {calibration.verdict}"])


def measure(argument: Mapping[str, Any]) -> dict[str, Any]:
    """Inside a cell: the calibration of ``{"network", "short"}``."""
    began = time.monotonic()
    network, short = Network(**argument["network"]), bool(argument["short"])
    quantities: list[Quantity] = []
    summaries: list[dict[str, Any]] = []
    with probed_path() as ends:
        # A capacity trace adds a wait of its own to each packet: the delay is measured without it.
        with ends.emulating(**_directions(network, capacity=not _has_trace(network)), summaries=summaries):
            quantities.append(_round_trip(ends, network, short))
            quantities += _losses(ends, network, short)
        if any(network.rate(side) for side in SIDES):
            with ends.emulating(**_directions(network, capacity=True), summaries=summaries):
                quantities += _queues(ends, network, short)
                # Last, because they leave the queues full.
                quantities += _rates(ends, network, short)
                quantities += _shares(ends, network, short)
    faults = [fault for summary in summaries for fault in summary["faults"]]
    off = faults or any(q.verdict == "off" for q in quantities)
    lateness = max((s["lateness"] for s in summaries), key=lambda late: late["p99"] or 0)
    return Calibration(
        network=network.name,
        machine=provenance.machine(),
        short=short,
        verdict="off" if off else "ok",
        quantities=sorted(quantities, key=lambda q: q.name),
        lateness_p50=lateness["p50"],
        lateness_p99=lateness["p99"],
        lateness_max=lateness["max"],
        faults=faults,
        duration_s=round(time.monotonic() - began, 3),
    ).model_dump()


def _round_trip(ends: ProbedPath, network: Network, short: bool) -> Quantity:
    """Median round trip of small packets on the idle path."""
    asked = network.rtt_ns + sum(_transmission_ns(network, side, SMALL_IP_BYTES) for side in SIDES)
    spread = math.hypot(*(_jitter_deviation_ns(network, side) for side in SIDES))
    budget = 400_000_000 if short else 2 * NS
    # Far enough apart that no packet queues behind another, even with jitter.
    interval = round(
        max(2_000_000, 8 * spread, *(2 * _transmission_ns(network, side, SMALL_IP_BYTES) for side in SIDES))
    )
    packets = max(budget // interval, 9)
    result = ends.probe("up", "echo", packets=packets, interval_ns=interval, linger_ns=_linger(network))
    median = result["rtt"]["p50"]
    # The standard error of a median is 1.25 deviations over the root of the number.
    tolerance = RTT_TOLERANCE_NS + 4 * 1.25 * spread / math.sqrt(packets)
    measured = None if median is None else median / 1e6
    quantity = Quantity.compared("round trip, median", "ms", asked / 1e6, measured, tolerance / 1e6)
    if _has_trace(network):
        quantity.note = "without the capacity"
    return quantity


def _losses(ends: ProbedPath, network: Network, short: bool) -> Iterator[Quantity]:
    """Share of packets lost outside the queue; the probes are sent at half the rate."""
    running = {}
    for side in SIDES:
        # At half the rate that such packets get.
        slower = (network.rate(side) or 1) / (_rate_of_rest(network, side) or 1)
        interval = max(100_000, round(2 * slower * _transmission_ns(network, side, SMALL_IP_BYTES)))
        asked, _ = _loss(network, side)
        budget = (NS if asked > 0 else NS // 4) * (1 if short else 5)
        running[side] = ends.start(
            side,
            "stream",
            packets=max(budget // interval, 9),
            interval_ns=interval,
            linger_ns=_linger(network),
        )
    for side in SIDES:
        result = ends.result(running[side])
        asked, correlation = _loss(network, side)
        measured = 1 - result["received"] / result["sent"]
        variance = asked * (1 - asked) / result["sent"] * (1 + correlation) / (1 - correlation)
        yield Quantity.compared(f"loss {side}", "", asked, measured, 4 * math.sqrt(variance))


def _rates(ends: ProbedPath, network: Network, short: bool) -> Iterator[Quantity]:
    """Rate of each direction while its queue never empties, both at once."""
    running: dict[Side, Probe] = {}
    budget = 800_000_000 if short else 4 * NS
    for side in SIDES:
        if rate := network.rate(side):
            ip_bytes = FULL_IP_BYTES if _is_trace(network, side) else _flood_ip_bytes(rate, budget)
            bits = 8 * (ip_bytes + network.direction(side)["overhead_bytes"])
            loss, _ = _loss(network, side)
            excess = (3 if _is_trace(network, side) else 1.25) / max(1 - loss, 0.05)
            interval = max(round(bits * NS / rate / excess), 1)
            running[side] = ends.start(
                side,
                "stream",
                packets=max(budget // interval, 20),
                ip_bytes=ip_bytes,
                interval_ns=interval,
                linger_ns=network.direction(side)["delay_ns"],
                arrivals=True,
            )
        else:
            yield Quantity.skipped(f"rate {side}", "bit/s", "no bottleneck")
    for side, probe in running.items():
        result = ends.result(probe)
        if _is_trace(network, side):
            yield _delivered_against_trace(network, side, result["arrivals"], ends.epoch_ns)
        else:
            yield _delivered_against_rate(network, side, result)


def _shares(ends: ProbedPath, network: Network, short: bool) -> Iterator[Quantity]:
    """What each service class gets while all of them have packets."""
    for side in SIDES:
        direction, rate = network.direction(side), network.rate(side)
        if direction["queue"]["kind"] != "classes" or rate is None:
            continue
        if short or _is_trace(network, side) or rate > FASTEST_SHARED:
            why = "in the long form alone" if short else "a constant rate of at most 100 Mbit/s alone"
            yield Quantity.skipped(f"shares {side}", "%", why)
            continue
        service = direction["queue"]["classes"]
        wire = FULL_IP_BYTES + direction["overhead_bytes"]
        # Every class alone would fill the link.
        interval = round(wire * 8 * NS / rate / 1.1)
        running = [
            ends.start(
                side,
                "stream",
                packets=4 * NS // interval,
                ip_bytes=FULL_IP_BYTES,
                interval_ns=interval,
                linger_ns=direction["delay_ns"],
                arrivals=True,
                dscp=next(iter(each["dscp"]), _free_code_point(service)),
            )
            for each in service
        ]
        arrivals = [ends.result(probe)["arrivals"] for probe in running]
        expected = rates(service, rate)
        # All classes have packets between the latest beginning and the first end; less a tenth at both.
        served = [times for times, asked in zip(arrivals, expected, strict=True) if asked and times]
        begin, end = max(times[0] for times in served), min(times[-1] for times in served)
        begin, end = begin + (end - begin) // 10, end - (end - begin) // 10
        for index, (times, asked) in enumerate(zip(arrivals, expected, strict=True)):
            count = bisect.bisect_right(times, end) - bisect.bisect_left(times, begin)
            measured = 100 * count * wire * 8 * NS / (end - begin) / rate
            name = f"share {side} of class {index + 1}"
            yield Quantity.compared(name, "%", 100 * asked / rate, measured, SHARE_TOLERANCE)


def _free_code_point(classes: Sequence[Mapping[str, Any]]) -> int:
    """A code point of the class that names none."""
    taken = {dscp for each in classes for dscp in each["dscp"]}
    return next(dscp for dscp in range(64) if dscp not in taken)


def _rate_of_rest(network: Network, side: Side) -> float:
    """The most that packets without a code point get in bit/s: their class may have a ceiling."""
    rate, classes = network.rate(side) or 0.0, network.direction(side)["queue"].get("classes", [])
    # The one that names code point 0, else the one that names none.
    mine = sorted(
        (each for each in classes if 0 in each["dscp"] or not each["dscp"]), key=lambda c: not c["dscp"]
    )
    ceiling = mine[0].get("ceiling_bit_per_s") if mine else None
    return min(rate, ceiling or rate)


def _delivered_against_rate(network: Network, side: Side, result: Mapping[str, Any]) -> Quantity:
    """Rate between the most punctual packets of the first and of the last tenth, so that a late
    wake-up does not distort it."""
    asked = _rate_of_rest(network, side)
    measured, tolerance = None, RATE_TOLERANCE
    arrivals: list[int] = result["arrivals"]
    if len(arrivals) > 1:
        ip_bytes = result["ip_bytes_after_first"] / (len(arrivals) - 1)
        bits = 8 * (ip_bytes + network.direction(side)["overhead_bytes"])
        tenth = max(len(arrivals) // 10, 1)

        def lateness(index: int) -> float:
            return arrivals[index] - index * bits * NS / asked

        first = min(range(tenth), key=lateness)
        last = min(range(len(arrivals) - tenth, len(arrivals)), key=lateness)
        span = arrivals[last] - arrivals[first]
        measured = (last - first) * bits * NS / span
        # Jitter moves the two arrivals that the span is between.
        tolerance += 6 * _jitter_deviation_ns(network, side) / span
    return Quantity.compared(f"rate {side}", "bit/s", asked, measured, tolerance, relative=True)


def _delivered_against_trace(network: Network, side: Side, arrivals: list[int], epoch_ns: int) -> Quantity:
    """Bytes delivered against the trace's opportunities, between the first and the last millisecond."""
    name = f"bytes {side} of the trace's opportunities"
    delay = network.direction(side)["delay_ns"]
    # A full packet takes exactly one opportunity: that of the millisecond in which it left.
    left = [(arrival - delay - epoch_ns) // 1_000_000 for arrival in arrivals]
    if not left or left[-1] - left[0] < 2:
        return Quantity.compared(name, "B", 0, None, 0)
    first, last = left[0], left[-1]
    asked = _opportunities_until(network, side, last - 1) - _opportunities_until(network, side, first)
    measured = bisect.bisect_left(left, last) - bisect.bisect_right(left, first)
    return Quantity.compared(
        name, "B", asked * OPPORTUNITY_BYTES, measured * OPPORTUNITY_BYTES, RATE_TOLERANCE, relative=True
    )


def _queues(ends: ProbedPath, network: Network, short: bool) -> Iterator[Quantity]:
    """How many packets of a burst survive a drop-tail queue."""
    running: dict[Side, tuple[Probe, float, int]] = {}
    for side in SIDES:
        direction = network.direction(side)
        queue, rate = direction["queue"], network.rate(side)
        limits = {key: queue.get(key) or math.inf for key in ("packets", "bytes")}
        # A limit in packets is reached with small packets, which drain sooner.
        ip_bytes = SMALL_IP_BYTES if limits["bytes"] == math.inf else FULL_IP_BYTES
        wire = ip_bytes + direction["overhead_bytes"]
        depth = min(limits["packets"], limits["bytes"] // wire)
        skip = ""
        if rate is None:
            skip = "no bottleneck"
        elif queue["kind"] != "droptail" or depth == math.inf:
            skip = f"{queue['kind']}: no fixed depth"
        elif (drain_s := depth * wire * 8 / rate) * NS > (SHORT_DRAIN_NS if short else LONG_DRAIN_NS):
            skip = f"takes {drain_s:.1f} s to drain"
        if skip:
            yield Quantity.skipped(f"queue {side}", "packets", skip)
            continue
        loss, _ = _loss(network, side)
        probe = ends.start(
            side,
            "stream",
            packets=math.ceil((depth * 1.5 + 50) / max(1 - loss, 0.05)),
            ip_bytes=ip_bytes,
            interval_ns=0,
            linger_ns=_linger(network),
        )
        running[side] = probe, depth, wire
    for side, (probe, depth, wire) in running.items():
        result = ends.result(probe)
        # While the burst comes in, the bottleneck takes packets out of the queue.
        begin, end = result["first_sent"], result["last_sent"]
        if _is_trace(network, side):
            first, last = ((time - ends.epoch_ns) // 1_000_000 for time in (begin, end))
            served = _opportunities_until(network, side, last) - _opportunities_until(network, side, first)
        else:
            served = 1 + (end - begin) * (network.rate(side) or 0) / 8 / NS // wire
        survivors = result["received"] - served
        yield Quantity.compared(f"queue {side}", "packets", depth, survivors, max(2, 0.02 * depth))


class ProbedPath:
    """A path between namespaces and probes through it; see ``probed_path``."""

    def __init__(self, spaces: namespaces.Namespaces) -> None:
        self._spaces = spaces
        self.epoch_ns = 0

    @contextmanager
    def emulating(
        self, *, down: Direction, up: Direction, summaries: list[dict[str, Any]] | None = None
    ) -> Iterator[None]:
        """Runs the emulator while the body measures; its summary is appended at the end."""
        with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
            self.epoch_ns = time.monotonic_ns()
            run = Run(
                id="calib",
                epoch_ns=self.epoch_ns,
                trace_dir=Path(folder),
                work_dir=Path(folder),
                segments=[Segment(down=down, up=up, interfaces=Interfaces())],
            )
            emulator = Part(["emulate"], run.write(), log, self._spaces.wire)
            try:
                emulator.wait_ready()
                yield
                summary = emulator.stop()
                if summaries is not None:
                    summaries.append(summary)
            finally:
                emulator.kill()

    def probe(self, side: Side, kind: str, **probes: Any) -> dict[str, Any]:
        """Carries out one measurement in the direction of a side."""
        return self.result(self.start(side, kind, **probes))

    def start(self, side: Side, kind: str, arrivals: bool = False, **probes: Any) -> Probe:
        """Begins a measurement with UDP probes; both directions may be measured at once."""
        measure = {"kind": kind, "probes": {"ip_bytes": SMALL_IP_BYTES, **probes}}
        return self._start(side, {**measure, "arrivals": True} if arrivals else measure)

    def tcp(self, side: Side, duration_ns: int, congestion: str) -> dict[str, Any]:
        """Bulk transfer over one TCP connection."""
        measure = {"kind": "tcp", "duration_ns": duration_ns, "congestion": congestion}
        return self.result(self._start(side, measure))

    def _start(self, side: Side, measure: Mapping[str, Any]) -> Probe:
        client = {"namespace": self._file(self._spaces.client), "address": namespaces.CLIENT_ADDRESS}
        server = {"namespace": self._file(self._spaces.server), "address": namespaces.SERVER_ADDRESS}
        source, destination = (server, client) if side == "down" else (client, server)
        request = {"source": source, "destination": destination, "measure": measure}
        return subprocess.Popen(
            [dataplane.program(), "probe", json.dumps(request)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def result(self, probe: Probe) -> dict[str, Any]:
        """Waits for a measurement; raises ``RunFailed`` when it failed."""
        output, complaint = probe.communicate()
        if probe.returncode != 0:
            raise RunFailed(f"probe: {complaint.decode('utf-8', 'replace').strip()}")
        return json.loads(output)

    @staticmethod
    def _file(namespace: int) -> str:
        return f"/proc/{os.getpid()}/fd/{namespace}"


@contextmanager
def probed_path() -> Iterator[ProbedPath]:
    """A path of its own: client, emulator and server namespaces, which end with the body."""
    spaces = namespaces.Namespaces.create()
    try:
        namespaces.build(spaces, [], initial_window=10)
        yield ProbedPath(spaces)
    finally:
        spaces.close()


def _directions(network: Network, *, capacity: bool) -> dict[str, Direction]:
    """Both directions as they are at the start of a run, with or without their capacity."""
    directions: dict[str, Direction] = {}
    for side in SIDES:
        unlimited = {} if capacity else {"capacity": {"kind": "unlimited"}}
        directions[side] = {**network.direction(side), "changes": [], **unlimited}
    return directions


def _is_trace(network: Network, side: Side) -> bool:
    return network.direction(side)["capacity"]["kind"] == "trace"


def _has_trace(network: Network) -> bool:
    return any(_is_trace(network, side) for side in SIDES)


def _transmission_ns(network: Network, side: Side, ip_bytes: int) -> int:
    """Time of one packet at a constant rate; 0 with a trace or without a bottleneck."""
    direction = network.direction(side)
    if direction["capacity"]["kind"] != "rate":
        return 0
    return round((ip_bytes + direction["overhead_bytes"]) * 8 * NS / direction["capacity"]["bit_per_s"])


def _flood_ip_bytes(rate: float, budget_ns: int) -> int:
    """Packet length at which even a slow link sends 20 packets within the budget."""
    return int(min(max(rate * budget_ns / NS / 8 / 20, SMALL_IP_BYTES), FULL_IP_BYTES))


def _jitter_deviation_ns(network: Network, side: Side) -> float:
    """Standard deviation of the delay."""
    jitter = network.direction(side)["jitter"]
    if jitter["kind"] == "uniform":
        return jitter["range_ns"] / math.sqrt(3)
    return float(jitter.get("stddev_ns", 0))


def _loss(network: Network, side: Side) -> tuple[float, float]:
    """Mean share lost, and the correlation of one packet's loss with the next one's."""
    loss = network.direction(side)["loss"]
    if loss["kind"] == "independent":
        return loss["probability"], 0.0
    if loss["kind"] == "none":
        return 0.0, 0.0
    leave, enter = loss["bad_to_good"], loss["good_to_bad"]
    if leave + enter == 0:
        return loss["loss_in_good"], 0.0
    bad = enter / (leave + enter)
    share = bad * loss["loss_in_bad"] + (1 - bad) * loss["loss_in_good"]
    return share, min(max(1 - leave - enter, 0.0), 0.999)


def _linger(network: Network) -> int:
    """A generous upper bound of a packet's transit time on the idle path."""
    jitter = sum(_jitter_deviation_ns(network, side) for side in SIDES)
    slowest = max(_transmission_ns(network, side, FULL_IP_BYTES) for side in SIDES)
    return round(network.rtt_ns + 4 * jitter + 4 * slowest) + 100_000_000


def _opportunities_until(network: Network, side: Side, until_ms: int) -> int:
    """Opportunities of the trace from its start up to and including a millisecond."""
    times = network.direction(side)["capacity"]["opportunities_ms"]
    rounds, rest = divmod(max(until_ms, 0), times[-1])
    return rounds * len(times) + bisect.bisect_right(times, rest)
