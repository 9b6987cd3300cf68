"""One body, two arms: the same flows on the same path in Linux over the emulator and in the simulator.

A ``Flow`` is described once. Both arms write the same tables, and the same code computes the compared
values from them. Time counts from the arrival of the first data segment at the bottleneck,
so that the wake-up of the server's process does not matter.

The result of each arm is a distribution. A host takes some tens of microseconds for a packet, TCP's clocks
tick in milliseconds (timestamps, and with them the receiver's round-trip time) and in jiffies, and the flow
begins at a random phase between two ticks. One segment more or less in the first round trips has large
effects later. bbr draws the phase in which it begins to probe. So the simulator runs a flow with several
phases of the clocks, delays of the hosts and random numbers (``MEMBERS``), and Linux runs it several times.
Random loss depends on the flow's seed: all members, in both arms, lose the same packets.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from parts import PORT

from wirepaint.dataplane import simulate as dataplane_simulate
from wirepaint.dataplane.description import Congestion, Host, Interfaces, Run, Segment, Transport
from wirepaint.dataplane.description import Flow as Transfer
from wirepaint.evaluation.congestion import NATIVE
from wirepaint.results.trace import read_table
from wirepaint.runners.description import BASELINE_SYSCTLS
from wirepaint.runners.testbed.cells import Cells

FRAME = 1514
"""Bytes of a full segment at the bottleneck."""
MS = 1_000_000
PHASES_NS = (0, 9_300_000, 22_600_000)
"""Where between two ticks the simulated flow begins: of 1 ms, of a jiffy of 4 ms, and of the 32 ms in which
timers beyond a quarter of a second go off."""
HOST_DELAYS_NS = (10_000, 60_000, 120_000)
"""Delay that two hosts and the emulator add to one direction; measured: 40 to 150 us per round trip."""
WAKES_NS = (0, 250_000, 700_000)
"""How long after the handshake the server's application writes; measured: 0.2 to 1 ms."""
MEMBERS = [
    (phase, delay, WAKES_NS[(i + j) % len(WAKES_NS)])
    for i, phase in enumerate(PHASES_NS)
    for j, delay in enumerate(HOST_DELAYS_NS)
]
CONNECT_NS = 100_000
"""Time of a client for one of many connections; measured: 3.2 ms for 32."""
LATE_NS = 200_000
"""p99 lateness of the emulator beyond which a transfer is repeated once, or a 500th of the round trip."""
ATTEMPTS = 4


@dataclass(frozen=True)
class Link:
    """A path: Mbit/s, round-trip time in ms, queue in BDP (drop-tail) or None for CoDel, random loss."""

    rate: float
    rtt: int
    buffer: float | None = 1.0
    loss: float = 0.0

    @property
    def name(self) -> str:
        queue = "codel" if self.buffer is None else f"{self.buffer:g}bdp"
        return f"{self.rate:g}M-{self.rtt}ms-{queue}" + (f"-{100 * self.loss:g}%" if self.loss else "")

    @property
    def packet_ns(self) -> float:
        """Transmission time of a full frame."""
        return FRAME * 8e3 / self.rate

    def directions(self, host_delay_ns: int = 0) -> dict[str, Any]:
        """Both directions as a run description has them; only data meets the bottleneck."""
        queue: dict[str, Any] = {"kind": "codel"}
        if self.buffer is not None:
            bdp = self.rtt * MS / self.packet_ns
            queue = {"kind": "droptail", "packets": max(round(self.buffer * bdp), 4)}
        delay = self.rtt * MS // 2 + host_delay_ns
        rate = {"kind": "rate", "bit_per_s": round(self.rate * 1e6)}
        down = {"capacity": rate, "delay_ns": delay, "queue": queue}
        if self.loss:
            down["loss"] = {"kind": "independent", "probability": self.loss}
        up = {"capacity": {"kind": "unlimited"}, "delay_ns": delay, "queue": {"kind": "droptail"}}
        return {"down": down, "up": up}


@dataclass(frozen=True)
class Sender:
    """A congestion control in both arms: ours with its parameters, or what Linux has built in."""

    name: str
    algorithm: str
    parameters: dict[str, int] = field(default_factory=dict)
    built_in: str | None = None


SENDERS = {
    sender.name: sender
    for sender in (
        *(Sender(name, *NATIVE[name], built_in=name) for name in ("reno", "cubic", "bbr")),
        Sender("std", "std"),
        Sender("cwv", "cwv"),
        Sender("fld", "fld"),
    )
}


@dataclass(frozen=True)
class Messages:
    """Writes of equal size at a constant rate of payload, in Mbit/s."""

    bytes: int
    rate: float

    @property
    def interval_ns(self) -> int:
        """Between two writes."""
        return round(self.bytes * 8e3 / self.rate)


@dataclass(frozen=True)
class Flow:
    """A flow for both arms: over each of ``count`` connections the server sends N bytes, as fast
    as TCP lets it or as messages."""

    link: Link
    sender: Sender
    bytes: int
    seed: int = 1
    count: int = 1
    messages: Messages | None = None

    @property
    def name(self) -> str:
        return f"{self.link.name} {self.sender.name} {self.bytes / 1e3:g} kB"

    def run(self, folder: Path, server: str, host_delay_ns: int = 0) -> Run:
        """The run description, without what only one arm needs. ``server`` is the name of its congestion
        control."""
        folder.mkdir(parents=True, exist_ok=True)
        path = Segment(**self.link.directions(host_delay_ns), interfaces=Interfaces(), packet_trace=True)
        host = Host(name="server", role="server", congestion=server)
        return Run(
            id="arms", seed=self.seed, trace_dir=folder, work_dir=folder, segments=[path], hosts=[host]
        )

    def congestion(self, name: str) -> Congestion:
        """The instance that runs under a name."""
        return Congestion(algorithm=self.sender.algorithm, name=name, parameters=self.sender.parameters)

    def application(self, write_ns: int) -> dict[str, Any]:
        """The simulated server: its writes from a time on."""
        if self.messages is None:
            rates = [{"at_ns": write_ns, "bit_per_s": 1}, {"at_ns": write_ns + 1, "bit_per_s": 0}]
            return {"kind": "cbr", "write_bytes": self.bytes, "rates": rates}
        end = write_ns + self.bytes // self.messages.bytes * self.messages.interval_ns
        rate = round(self.messages.rate * 1e6)
        rates = [{"at_ns": write_ns, "bit_per_s": rate}, {"at_ns": end, "bit_per_s": 0}]
        return {"kind": "cbr", "write_bytes": self.messages.bytes, "rates": rates}

    def limit_s(self) -> float:
        """When a transfer is given up."""
        rate = self.messages.rate if self.messages else self.link.rate
        return 30 + 20 * self.count * self.bytes * 8 / (rate * 1e6)


@dataclass(frozen=True)
class Seen:
    """The observations of one run of a flow. Times in ns from the arrival of the first data segment."""

    flow: Flow
    packets: pl.DataFrame
    """Data segments at the bottleneck in order of arrival; ``offset`` counts a connection's bytes."""
    tcp: pl.DataFrame
    """The senders' samples."""
    late_ns: int = 0
    """p99 lateness of the emulator."""
    unseen: int = 0
    """ACKs that the kernel processed without BPF programs (docs/guide/congestion.md)."""
    delays_ns: tuple[int, ...] = ()
    """From the server's write of each message to when its last byte has come to the client's socket."""

    @property
    def late(self) -> bool:
        """The emulator sent packets so late that the transfer is worth repeating."""
        return self.late_ns > max(LATE_NS, self.flow.link.rtt * MS // 500)

    @property
    def counts(self) -> bool:
        """Unseen ACKs change a BPF congestion control; for Linux's own ones only samples are missing."""
        return not self.unseen or self.flow.sender.built_in is not None

    @classmethod
    def of(
        cls,
        flow: Flow,
        folder: Path,
        *,
        late_ns: int = 0,
        unseen: int = 0,
        delays_ns: Iterable[int] = (),
        written_ns: int = 0,
    ) -> Seen:
        """What the tables in ``folder`` show; without ``delays_ns``, those of messages of which the first
        was written at ``written_ns`` of the run and that are read as soon as they are complete."""
        packets = read_table(folder, "packet").filter(
            (pl.col("direction") == "down") & (pl.col("source_port") == PORT)
        )
        first = packets.filter(pl.col("flags").str.contains("S")).group_by("destination_port")
        packets = packets.join(first.agg(syn=pl.col("sequence").first()), on="destination_port")
        data = (
            packets.filter(pl.col("payload_bytes") > 0)
            .with_columns(offset=(pl.col("sequence") - pl.col("syn") - 1) % 2**32)
            .sort("time_in", maintain_order=True)
        )
        begin = data["time_in"][0]
        times = pl.col("time_in", "time_due", "time_out")
        tcp = read_table(folder, "tcp").filter(pl.col("server_port") == PORT)
        tcp = tcp.with_columns(pl.col("time") - begin)
        seen = cls(flow, data.with_columns(times - begin), tcp, late_ns, unseen, tuple(delays_ns))
        if flow.messages and not seen.delays_ns:
            return replace(seen, delays_ns=seen.delays_from(written_ns - begin, flow.messages))
        return seen

    def delays_from(self, written_ns: int, messages: Messages) -> tuple[int, ...]:
        """For messages, the first written at a given time: when all bytes up to the last of each
        had reached the client."""
        ends = pl.DataFrame({"end": range(messages.bytes, self.flow.bytes + 1, messages.bytes)})
        arrived = self.arrivals.sort("offset").select(
            end=pl.col("offset") + pl.col("bytes"), read=pl.col("time").cum_max()
        )
        complete = ends.join_asof(
            arrived.with_columns(pl.col("end").cast(pl.Int64)), on="end", strategy="forward"
        )
        written = written_ns + messages.interval_ns * pl.int_range(pl.len())
        return tuple(complete.select(pl.col("read") - written)["read"].to_list())

    def keep(self, folder: Path) -> None:
        """Writes the observations into a folder of their own, atomically."""
        part = folder.with_name(folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        self.packets.write_parquet(part / "packets.parquet")
        self.tcp.write_parquet(part / "tcp.parquet")
        numbers = {"late_ns": self.late_ns, "unseen": self.unseen, "delays_ns": self.delays_ns}
        (part / "seen.json").write_text(json.dumps(numbers))
        part.rename(folder)

    @classmethod
    def kept(cls, flow: Flow, folder: Path) -> Seen:
        """Reads the observations that ``keep`` wrote."""
        packets, tcp = (pl.read_parquet(folder / f"{name}.parquet") for name in ("packets", "tcp"))
        said = json.loads((folder / "seen.json").read_text())
        return cls(flow, packets, tcp, said["late_ns"], said["unseen"], tuple(said["delays_ns"]))

    @cached_property
    def arrivals(self) -> pl.DataFrame:
        """First delivery of each segment: ``destination_port``, ``offset``, ``time``, ``bytes``."""
        delivered = self.packets.filter(pl.col("time_due").is_not_null())
        return delivered.group_by("destination_port", "offset").agg(
            time=pl.col("time_due").min(), bytes=pl.col("payload_bytes").max()
        )

    @property
    def completion_ns(self) -> int:
        """When the last byte that was missing reached the client."""
        arrived = self.arrivals["bytes"].sum()
        assert arrived >= self.flow.bytes * self.flow.count, f"{self.flow.name}: {arrived} bytes arrived"
        return int(self.arrivals["time"].max())  # pyright: ignore[reportArgumentType]

    def delay_ms(self, quantile: float) -> float:
        """Quantile of the delays of its messages."""
        return float(pl.Series(self.delays_ns).quantile(quantile) or 0) / MS

    @property
    def drops(self) -> int:
        """Data segments dropped."""
        return self.packets["dropped"].count()

    @property
    def episodes(self) -> list[int]:
        """When the sender entered Recovery, CWR or Loss."""
        states = self.tcp.filter(pl.col("event") == "state").sort("time", maintain_order=True)
        calm = ["Open", "Disorder"]
        entered = ~pl.col("state").is_in(calm) & pl.col("state").shift(1, fill_value="Open").is_in(calm)
        return states.filter(entered)["time"].to_list()

    def crowd(self, until: int) -> dict[str, float]:
        """Shares, delays and losses of all connections together up to a time."""
        arrived = self.arrivals.filter(pl.col("time") <= until)
        shares = arrived.group_by("destination_port").agg(pl.col("bytes").sum())["bytes"].to_list()
        offered = self.packets.filter(pl.col("time_in") <= until)
        waited = (offered["time_due"] - offered["time_in"]).drop_nulls()
        waited = waited - waited.min()
        return {
            "goodput": sum(shares),
            "Jain's index": sum(shares) ** 2 / (self.flow.count * sum(share**2 for share in shares)),
            "queueing delay p50": float(waited.quantile(0.5) or 0),
            "queueing delay p95": float(waited.quantile(0.95) or 0),
            "loss rate": offered["dropped"].count() / offered.height,
        }

    def after_loss(self) -> list[int]:
        """cwnd every 10 ms from the first reduction to the end."""
        return self.windows(
            range(self.episodes[0] + 1, max(self.completion_ns, self.episodes[0] + 2), 10 * MS)
        )

    @property
    def slow_start(self) -> tuple[int, int]:
        """End of the first slow start, and cwnd then if it ended without a loss, else 0."""
        end = (self.episodes or [self.completion_ns])[0]
        left = self.tcp.filter(
            (pl.col("event") == "ack") & (pl.col("time") < end) & (pl.col("ssthresh") <= pl.col("cwnd"))
        ).sort("time", maintain_order=True)
        return (left["time"][0], left["cwnd"][0]) if left.height else (end, 0)

    @cached_property
    def _acks(self) -> pl.DataFrame:
        """The sender as each ACK found it."""
        acks = self.tcp.filter(pl.col("event") == "ack").sort("time", maintain_order=True)
        return acks.select("time", "delivered", "cwnd")

    @property
    def sampled(self) -> bool:
        """The sender was seen at each ACK. (At none where all was sent, and the connection closed, before
        the first.)"""
        return not self.unseen and self._acks.height > 0

    def delivered(self, times: Iterable[int]) -> list[int]:
        """Segments that had been delivered at these times."""
        found = [self._acks.filter(pl.col("time") <= time)["delivered"] for time in times]
        return [series[-1] if len(series) else 0 for series in found]

    def grown(self, delivered: Iterable[int]) -> list[int]:
        """cwnd after N delivered segments."""
        found = [self._acks.filter(pl.col("delivered") >= count)["cwnd"] for count in delivered]
        return [series[0] if len(series) else self._acks["cwnd"][-1] for series in found]

    def windows(self, times: Sequence[int]) -> list[int]:
        """cwnd at these times."""
        rows = self._acks.select("time", "cwnd")
        grid = pl.DataFrame({"time": times}, schema={"time": pl.Int64})
        # A row shows the window as the ACK found it.
        found = grid.join_asof(rows, on="time", strategy="forward")["cwnd"]
        return found.forward_fill().fill_null(rows["cwnd"][-1]).to_list()


def simulate(flows: Iterable[Flow], folder: Path) -> list[list[Seen]]:
    """Carries each flow out in the simulator, once for each of ``MEMBERS``."""
    flows = list(flows)
    folder.mkdir(parents=True, exist_ok=True)

    def described() -> Iterator[tuple[None, Path]]:
        for number, flow in enumerate(flows):
            for member, (phase, delay, _) in enumerate(MEMBERS):
                run = flow.run(folder / f"sim{number}.{member}", "server", delay)
                run = replace(
                    run,
                    seed=flow.seed if flow.link.loss else flow.seed + member,
                    hosts=[*run.hosts, Host(name="client", role="client", congestion="server")],
                    congestion=[flow.congestion("server")],
                    transport=Transport(sysctls=BASELINE_SYSCTLS),
                    flows=[
                        Transfer(
                            kind=flow.application(_written_ns(flow, member) + later),
                            start_ns=phase + later,
                        )
                        for later in range(0, flow.count * CONNECT_NS, CONNECT_NS)
                    ],
                    until_ns=round(flow.limit_s() * 1e9),
                    tables=["packet", "tcp"],
                )
                yield None, run.write()

    for _, said in dataplane_simulate.ends(described()):
        assert not said.get("error") and not said["faults"], said
    return [
        [
            Seen.of(flow, folder / f"sim{number}.{member}", written_ns=_written_ns(flow, member))
            for member in range(len(MEMBERS))
        ]
        for number, flow in enumerate(flows)
    ]


def _written_ns(flow: Flow, member: int) -> int:
    """When the simulated server's application writes first: once the handshake is over, and it awake."""
    phase, delay, wake = MEMBERS[member]
    return phase + 3 * (flow.link.rtt * MS // 2 + delay) + wake


def in_linux(cells: Cells, flows: Iterable[Flow], folder: Path) -> list[Seen]:
    """Carries out flows in Linux, at the same time, each on a path of its own.

    Repeats transfers that say nothing about Linux: those with unseen ACKs, and once those with late
    packets; the less late one of the two counts.
    """
    found: dict[int, Seen] = {}
    flows = list(flows)
    for attempt in range(ATTEMPTS):
        due = [n for n in range(len(flows)) if n not in found or _must_repeat(found[n], attempt)]
        if not due:
            break
        place = folder / f"linux{attempt}"
        again = at_once(cells, [flows[n] for n in due], place)
        for n, seen in zip(due, again, strict=True):
            found[n] = min(found.get(n, seen), seen, key=lambda seen: (seen.unseen > 0, seen.late_ns))
    return [found[n] for n in range(len(flows))]


def worth_comparing(seen: Iterable[Seen]) -> list[Seen]:
    """The transfers without unseen ACKs and, if some remain, without late packets."""
    counted = [one for one in seen if one.counts]
    return [one for one in counted if not one.late] or counted


def _must_repeat(seen: Seen, attempt: int) -> bool:
    sampled = not seen.unseen or seen.flow.count > 1
    return not seen.counts or (attempt == 1 and (seen.late or not sampled))


def at_once(cells: Cells, flows: Sequence[Flow], folder: Path) -> list[Seen]:
    """Carries flows out once; the tables of each are in a subfolder of its number."""
    load: dict[str, Congestion] = {}
    asked = []
    for number, flow in enumerate(flows):
        name = flow.sender.built_in
        if name is None:
            own = f"{flow.sender.algorithm[:9]}.{os.getpid() % 10**5}"
            name = load.setdefault(flow.sender.name, flow.congestion(own)).name
        asked.append(
            {
                "run": flow.run(folder / str(number), name).document(),
                "congestion": name,
                "bytes": flow.bytes,
                "count": flow.count,
                "limit_s": flow.limit_s(),
                "messages": flow.messages
                and {"bytes": flow.messages.bytes, "interval_ns": flow.messages.interval_ns},
            }
        )
    instances = Run(id="arms", trace_dir=folder, work_dir=folder, congestion=list(load.values()))
    arguments = {"folder": str(folder), "congestion": instances.document() if load else None, "flows": asked}
    limit_s = max(flow.limit_s() for flow in flows) + 30
    said = cells.call("plain_flows:carry_out", arguments, timeout_s=limit_s, log=folder / "cell.txt")
    return [
        Seen.of(
            flow,
            folder / str(number),
            late_ns=one["emulator"]["lateness"]["p99"],
            unseen=sum(gap["segments"] for gap in one["probe"]["unseen"]),
            delays_ns=one["delays_ns"],
        )
        for number, (flow, one) in enumerate(zip(flows, said, strict=True))
    ]
