"""Checks path and parts against what was asked, from the records of the run itself.

A calibration measures the path before the run; these checks show what it was during the run.
"""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wirepaint.runners.testbed.join import Joined
from wirepaint.runners.testbed.reason import RARE_SHARE, Reason, disturbance
from wirepaint.runners.testbed.route import Route, emulators
from wirepaint.runners.testbed.wiring import ETHERNET_BYTES, Counts

EMULATOR_PAUSE_NS = 5_000_000
"""Longest pause of the emulator. It is the allowance for a late packet, so no late packet is missed."""
SERVER_PAUSE_NS = 50_000_000
"""Longest pause of the server's event loop during the load. A TLS handshake takes some ms, and a browser
on both cores makes the server wait a few ms more."""
THINK_NS = SERVER_PAUSE_NS
"""Allowed error of a single think time; the median of a visit is allowed ``THINK_MEDIAN_NS``. In 3 of 200
calm visits one response was 14 to 37 ms late."""
THINK_MEDIAN_NS = 1_000_000
FEW_ANSWERS = 4
"""Fewer answers have no median: a visit with a warm cache may ask for its document alone."""
RATE_ERROR = 0.02
TRACE_RATE_ERROR = 0.05
"""For a capacity trace: packets that are not full leave opportunities partly unused."""
FULL_BYTES = 1514
RATE_BYTES = 75_000
"""Fifty full packets: fewer do not give a rate to 2 %."""
RTT_BELOW_NS = 200_000
RTT_ABOVE_NS = 2_000_000
"""Allowance for the smallest round trip of all connections. It is that of a handshake on an idle path, where
no program takes part. A calm machine adds 0.1 to 0.4 ms."""
RTT_BUSY_NS = 5_000_000
"""Allowance for any connection, beyond the longest queue."""
SMALL_BYTES = 100
"""A packet of a handshake."""
LOSS_DEVIATIONS = 5
"""Allowance for a binomial count, in standard deviations: one run in a million exceeds it."""
IP_AND_TCP_BYTES = 40
TIMESTAMP_BYTES = 12
LIMITED_SHARE = 0.05
"""Share of the load time: a note is made if the client's receive window blocks data for longer."""
NS = 1_000_000_000


@dataclass(frozen=True)
class Wires:
    """The path at the beginning and at the end of a run."""

    before: Mapping[str, str]
    """Settings once the path was built."""
    after: Mapping[str, str]
    ends: Mapping[str, Counts]
    """Counts of "client" and "server", just before the emulator ended."""
    last: Mapping[str, Counts] = field(default_factory=dict)
    """The same counts just after."""


def prove(
    joined: Joined,
    run: Mapping[str, Any],
    summaries: Mapping[str, Mapping[str, Any]],
    wires: Wires,
    link: pl.DataFrame,
) -> Iterator[Reason]:
    """All reasons against path and parts; ``link`` is the trace's table."""
    yield from _settings(wires)
    yield from _packets(wires, summaries.get("emulator", {}), run["segments"][0])
    yield from _connections(wires, joined, Route.of(run))
    for segment in run["segments"]:
        of_segment = link.filter(pl.col("segment") == segment["name"])
        yield from _rates(of_segment, segment)
        yield from _losses(of_segment, segment)
    main = run["segments"][0]
    yield from _round_trips(joined, link.filter(pl.col("segment") == main["name"]), main)
    yield from _segment_size(joined, run)
    yield from _receive_window(joined)
    for name in emulators(summaries):
        for severity, found in _pauses(summaries.get(name, {}), EMULATOR_PAUSE_NS, joined):
            yield Reason("emulator_pause", severity, found, f"at most {EMULATOR_PAUSE_NS / 1e6:g} ms")
    for severity, found in _pauses(summaries.get("server", {}), SERVER_PAUSE_NS, joined):
        yield Reason("server_pause", severity, found, f"at most {SERVER_PAUSE_NS / 1e6:g} ms")
    yield from _think_times(joined, run)


def _settings(wires: Wires) -> Iterator[Reason]:
    for name in sorted({*wires.before, *wires.after}):
        before, after = wires.before.get(name), wires.after.get(name)
        if before != after:
            yield Reason("path", "invalid", f"{name}: {after} at the end", f"{before}, as at the beginning")


def _packets(wires: Wires, emulator: Mapping[str, Any], network: Mapping[str, Any]) -> Iterator[Reason]:
    """A host's TCP segments, and nothing else, left its device and reached the emulator, and back.

    Bytes are compared too: the emulator counts the asked overhead of each packet, the device does not.
    """
    for end, counts in wires.ends.items():
        if counts.others:
            found = f"{counts.others} packets of UDP or ICMP from the {end}"
            yield Reason("foreign_packets", "invalid", found, "TCP alone")
        lost = counts.segments + counts.others - counts.sent
        if lost and not 0 < lost <= counts.resets:
            what = (
                f"{lost} segments that no device sent" if lost > 0 else f"{-lost} packets that are not TCP's"
            )
            yield Reason("packets", "invalid", f"{what}, at the {end}", "none")
        if counts.dropped:
            yield Reason(
                "packets", "invalid", f"{counts.dropped} packets dropped by the {end}'s device", "none"
            )
    if not emulator:
        return
    for end, sending, receiving in (("server", "down", "up"), ("client", "up", "down")):
        first, last = wires.ends.get(end), wires.last.get(end)
        if first is None or last is None:
            continue
        took = emulator[sending]["received_packets"]
        if not first.sent <= took <= last.sent:
            found = f"{took} packets that entered the emulator"
            yield Reason("packets", "invalid", found, f"{first.sent} to {last.sent}, as the {end} sent")
        gave = emulator[receiving]["delivered_packets"]
        if not first.received <= gave <= last.received:
            found = f"{gave} packets that left the emulator"
            yield Reason(
                "packets", "invalid", found, f"{first.received} to {last.received}, as the {end} received"
            )
        overhead = network[receiving].get("overhead_bytes", ETHERNET_BYTES)
        carried = emulator[receiving]["delivered_bytes"] - overhead * gave
        if not first.received_bytes <= carried <= last.received_bytes:
            found = f"{carried} bytes that left the emulator beside {overhead} of overhead for each packet"
            accepted = f"{first.received_bytes} to {last.received_bytes}, as the {end} received"
            yield Reason("packets", "invalid", found, accepted)


def _connections(wires: Wires, joined: Joined, route: Route) -> Iterator[Reason]:
    """Nobody but browser, proxy and server opened a TCP connection at an end of the wire."""
    of_flows = sum(record["server"]["congestion"] is not None for record in joined.of_flows)
    of_users = len(joined.served) + len(joined.strangers)
    opened = 0
    if route.beyond:
        # Squid's connections that end soon may not be read back, but who accepts them knows them.
        _, *after = route.beyond
        opened = len(joined.proxies[after[0]].accepted if after else joined.beyond)
    accepted = (len(joined.hops) if route.near else of_users) + of_flows + joined.control[0]
    at_near_end = len(joined.proxies[route.near[-1]].accepted) if route.near else 0
    given_up = 0
    if joined.log and not route.near:
        # A proxy's connection that ends soon may not be read back, but the browser knows it; one that the
        # browser gave up may have been accepted.
        rows = [row for row in joined.tables["connection"] if row.get("visit") is not None]
        unread = [row["connected"] is None for row in rows if row["connection"] not in joined.served]
        given_up = sum(unread)
        accepted += len(unread) - given_up
    # The kernel may have accepted flows that were cut off before their program saw it.
    most = accepted + given_up + len(joined.of_flows) - of_flows + joined.control[1] - joined.control[0]
    for end, counts in wires.last.items():
        took = counts.accepted
        if end == "server" and "client" in wires.last and not route.near:
            # The kernel may count an accept twice: two CPUs that handle the handshake's last segment and the
            # first data each make a socket, and one is dropped (tcp_check_req). Connects are counted once.
            took = min(took, wires.last["client"].opened)
        passive = min(max(took, accepted), most)
        own, passive = (opened, passive) if end == "server" else (counts.opened, at_near_end)
        if (counts.opened, took) != (own, passive):
            found = f"{counts.opened} connections opened and {took} accepted at the {end}"
            yield Reason("foreign_packets", "invalid", found, f"{own} and {passive}")


def _rates(link: pl.DataFrame, network: Mapping[str, Any]) -> Iterator[Reason]:
    """The rate at which packets left while the queue was never empty."""
    for side in ("down", "up"):
        asked = network[side]
        carried = _Carried(asked["capacity"])
        jitter = asked.get("jitter", {"kind": "none"})["kind"]
        if asked.get("changes") or jitter != "none" or not carried.known or _ceilings(asked):
            continue
        # The last sample is taken at the end, off the grid.
        rows = link.filter(pl.col("direction") == side).sort("time").to_dicts()[:-1]
        if len(rows) < 2:
            continue
        delay, period = asked["delay_ns"], rows[1]["time"] - rows[0]["time"]
        later = -(-delay // period)
        sent = could = 0.0
        stretches = 0
        for first, last in _busy(rows, carried, period):
            # Packets that leave the queue arrive later by the delay.
            last = min(last, len(rows) - 1 - later)
            if last > first:
                begin, end = rows[first + later], rows[last + later]
                sent += end["delivered_bytes"] - begin["delivered_bytes"]
                could += carried.between(begin["time"] - delay, end["time"] - delay)
                stretches += 1
        if could < RATE_BYTES:
            continue
        allowed = carried.error + stretches * 2 * FULL_BYTES / could
        if abs(error := sent / could - 1) > allowed:
            found = f"{100 * error:+.1f} % of the asked rate {side}, over {could:.0f} bytes"
            yield Reason("rate", "invalid", found, f"at most {100 * allowed:.1f} % off")


def _ceilings(direction: Mapping[str, Any]) -> list[int]:
    """Ceilings of its service classes in bit/s: below them packets wait beside an idle link."""
    return [
        c["ceiling_bit_per_s"] for c in direction["queue"].get("classes", ()) if c.get("ceiling_bit_per_s")
    ]


def _busy(rows: Sequence[Mapping[str, Any]], carried: _Carried, period: int) -> Iterator[tuple[int, int]]:
    """Stretches (first, last) of samples with more bytes queued than the link carries until the next one."""
    first: int | None = None
    for number, row in enumerate([*rows, None]):
        most = 0.0 if row is None else carried.between(row["time"], row["time"] + period)
        if row is not None and row["queue_bytes"] > most + 2 * FULL_BYTES:
            first = number if first is None else first
            continue
        if first is not None and number - 1 > first:
            yield first, number - 1
        first = None


def _losses(link: pl.DataFrame, network: Mapping[str, Any]) -> Iterator[Reason]:
    """Packets are lost only if the queue is full, and at random only as often as asked."""
    for side in ("down", "up"):
        asked = network[side]
        rows = link.filter(pl.col("direction") == side)
        if asked.get("changes") or rows.is_empty():
            continue
        last = rows.sort("time").row(-1, named=True)
        loss, queue = asked.get("loss", {"kind": "none"}), asked["queue"]
        if loss["kind"] == "none" and not asked.get("scripted") and last["random_losses"]:
            yield Reason(
                "losses", "invalid", f"{last['random_losses']} packets lost at random {side}", "none"
            )
        elif loss["kind"] == "independent":
            wanted = loss["probability"] * last["offered_packets"]
            if abs(last["random_losses"] - wanted) > LOSS_DEVIATIONS * max(wanted, 1) ** 0.5 + 1:
                found = f"{last['random_losses']} of {last['offered_packets']} packets lost at random {side}"
                yield Reason("losses", "invalid", found, f"about {wanted:.0f}")
        if queue["kind"] == "droptail" and last["queue_drops"]:
            longest = {unit: rows[f"queue_{unit}"].max() or 0 for unit in ("packets", "bytes")}
            limits = {unit: queue.get(unit) for unit in longest if queue.get(unit) is not None}
            # Samples every 10 ms miss the longest queue, so the check uses half of the limit.
            if limits and all(longest[unit] < limits[unit] / 2 for unit in limits):
                most = f"a queue of at most {longest['packets']} packets"
                found = f"{last['queue_drops']} packets dropped {side} by {most}"
                yield Reason("losses", "invalid", found, f"drops at {limits} only")


class _Carried:
    """How many bytes a link could carry at the asked capacity."""

    def __init__(self, capacity: Mapping[str, Any]) -> None:
        self._rate = capacity.get("bit_per_s") or 0
        self._times: list[int] = [1_000_000 * at for at in capacity.get("opportunities_ms", ())]
        self._offset: int = 1_000_000 * capacity.get("offset_ms", 0)
        self.known = bool(self._rate or self._times)
        self.error = TRACE_RATE_ERROR if self._times else RATE_ERROR

    def between(self, begin: int, end: int) -> float:
        if not self._times:
            return self._rate * (end - begin) / 8 / NS
        return 1504.0 * (self._opportunities(end) - self._opportunities(begin))

    def _opportunities(self, time: int) -> int:
        rounds, within = divmod(time + self._offset, self._times[-1])
        return rounds * len(self._times) + bisect.bisect_right(self._times, within)


def _round_trips(joined: Joined, link: pl.DataFrame, network: Mapping[str, Any]) -> Iterator[Reason]:
    """The smallest round trip is the path's; none is below it, or above it plus the longest queue."""
    least = idle = most = 0.0
    for side in ("down", "up"):
        asked = network[side]
        jitter = asked.get("jitter", {"kind": "none"})
        if asked.get("changes") or jitter["kind"] == "normal":
            return
        spread = jitter.get("range_ns", 0)
        least += max(asked["delay_ns"] - spread, 0)
        most += asked["delay_ns"] + spread
        rate = asked["capacity"].get("bit_per_s")
        if _ceilings(asked) or (asked["capacity"]["kind"] != "unlimited" and not rate):
            idle = most = float("inf")
            continue
        idle += asked["delay_ns"] + spread
        if not rate:
            continue
        idle += SMALL_BYTES * 8 * NS / rate
        queue = link.filter(pl.col("direction") == side)["queue_bytes"].max()
        waiting = queue if isinstance(queue, int) else 0
        # The packet in transmission and the probe itself add to the queue.
        most += (waiting + 2 * FULL_BYTES) * 8 * NS / rate
    known = [row for row in joined.crossing if row["min_rtt"] is not None]
    smallest = min((row["min_rtt"] for row in known), default=idle)
    if smallest > idle + RTT_ABOVE_NS:
        expected = f"{idle / 1e6:.1f} ms on the idle path"
        yield Reason("round_trip", "invalid", f"{smallest / 1e6:.1f} ms at the least", expected)
    for row in known:
        rtt = row["min_rtt"]
        if rtt < least - RTT_BELOW_NS:
            expected = f"at least {least / 1e6:.1f} ms"
            yield Reason(
                "round_trip", "invalid", f"{rtt / 1e6:.1f} ms with {row['host'] or 'a flow'}", expected
            )
        elif rtt > most + RTT_BUSY_NS:
            expected = f"at most {most / 1e6:.1f} ms with the longest queue"
            yield Reason(
                "round_trip", "invalid", f"{rtt / 1e6:.1f} ms with {row['host'] or 'a flow'}", expected
            )


def _segment_size(joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    timestamps = str(run["transport"]["sysctls"].get("net.ipv4.tcp_timestamps", "1")) != "0"
    wanted = run["segments"][0].get("mtu", 1500) - IP_AND_TCP_BYTES - TIMESTAMP_BYTES * timestamps
    for row in joined.tables["connection"]:
        if row["mss"] not in (None, wanted):
            yield Reason(
                "segment_size",
                "invalid",
                f"{row['mss']} bytes with {row['host'] or 'a flow'}",
                f"{wanted} bytes",
            )


def _receive_window(joined: Joined) -> Iterator[Reason]:
    begin, end = joined.span
    senders = [*joined.served.values(), *(record[record["sender"]] for record in joined.of_flows)]
    limited = 1000 * max(
        (sender["tcp"].get("rwnd_limited_us", 0) for sender in senders if sender.get("tcp")), default=0
    )
    if limited > LIMITED_SHARE * (end - begin):
        found = f"it kept data of a connection back for {limited / 1e6:.0f} ms"
        yield Reason("receive_window", "note", found, f"less than {100 * LIMITED_SHARE:.0f} % of the time")


def _pauses(summary: Mapping[str, Any], longest: int, joined: Joined) -> Iterator[tuple[str, str]]:
    """Pauses of a part in the time that counts: severity, and words. Before that it has nothing to serve."""
    begin, end = joined.span
    pauses = [
        pause
        for pause in summary.get("pauses", ())
        if pause["length"] > longest and begin <= pause["at"] and pause["at"] - pause["length"] <= end
    ]
    severity = disturbance([pause["length"] for pause in pauses], joined.spans)
    for pause in pauses:
        yield severity, f"paused for {pause['length'] / 1e6:.1f} ms until {pause['at'] / 1e6:.0f} ms"


def _think_times(joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """The server began each answer at the asked time; a planted fault may have told it another time."""
    excess = []
    for record in joined.requests:
        if record["response"] is None or record.get("began") is None:
            continue
        wanted = run["sites"][record["site"]]["responses"][record["response"]]["think_ns"]
        excess.append((record["began"] - record["time"] - wanted, wanted, record["url"]))
    if not excess:
        return
    middle = statistics.median(late for late, _, _ in excess)
    if len(excess) >= FEW_ANSWERS and abs(middle) > THINK_MEDIAN_NS:
        found = f"half of the answers began {middle / 1e6:.1f} ms later than asked"
        yield Reason("think_time", "invalid", found, f"at most {THINK_MEDIAN_NS / 1e6:g} ms")
    late, wanted, url = max(excess, key=lambda each: abs(each[0]))
    if abs(late) > THINK_NS:
        off = sum(abs(each) > THINK_NS for each, _, _ in excess)
        found = f"{(late + wanted) / 1e6:.1f} ms for {url}"
        yield Reason(
            "think_time",
            "suspect" if off > RARE_SHARE * len(excess) else "note",
            found,
            f"{wanted / 1e6:g} ms, at most {THINK_NS / 1e6:g} ms off",
        )
