"""Biswas et al. 2010: bursty flows restart after an idle or application-limited period.

The topology is the paper's Figure 2. Sender and receiver of each flow have access links of their
own. Between them is the wide path, or after the change the narrow one with the same delay::

    S1 ─ access ─┐              wide: 100 Mbit/s            ┌─ access ─ R1
    S2 ─ access ─┼─ n0 ══════════════════════════════ n3 ─┼─ access ─ R2
    …            ┘              narrow: 2 Mbit/s            └ …

Each flow writes segments at a constant rate. The paper uses ns-2, we use Linux's TCP without
timestamps, TLP and F-RTO, with SACK. Links count IP bytes: 1500 for a full segment, as in the paper.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from wirepaint.dataplane.description import (
    Congestion,
    Flow,
    Host,
    Reroute,
    Run,
    Segment,
    Transport,
)
from wirepaint.evaluation import quantities
from wirepaint.reading import Table, refused, validate
from wirepaint.results import trace
from wirepaint.studies.model import Point, Study
from wirepaint.studies.running import Measure

PERIODS = {"idle": 5, "limited": 10}
"""Monitored round trips after the event (Tables 1 and 2)."""
DECAYS = {"rto": 0, "rtt": 1}
"""Values of the parameter ``cwv_unit``."""
SYSCTLS = {
    "net.ipv4.tcp_ecn": "0",
    "net.ipv4.tcp_early_retrans": "0",
    "net.ipv4.tcp_frto": "0",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_timestamps": "0",
}
IP_AND_TCP_BYTES = 40
ACCESS_QUEUE = 1000
"""Packets; an access link that is 50 times faster than the bottleneck never drops."""
WIDE, NARROW = "wide", "narrow"


class Asked(Table):
    """A point of a sweep, as the study's file gives it."""

    flows: int = Field(ge=1, le=200)
    mix: Literal["std", "cwv", "mixed"]
    """All flows of one kind, or half of each in random order."""
    event: Literal["idle", "limited"]
    """Nothing is written for the period, or at the limited rate."""
    period: quantities.Time
    path: Literal["changes", "stays"] = "changes"
    one_way: quantities.Time | None = None
    """One-way delay of both paths; default: that of the set-up."""
    after: quantities.Time | None = None
    """Length of the run after the last restart; default: the monitored time and one round trip."""

    @model_validator(mode="after")
    def _halves(self) -> Asked:
        if self.mix == "mixed" and self.flows % 2:
            raise refused("an even number of mixed flows", str(self.flows), "flows")
        return self


@dataclass(frozen=True)
class Scene:
    """A point of a sweep in numbers. Times in ns, rates in bit/s."""

    series: tuple[str, ...]
    """Congestion control of each flow."""
    shifts: tuple[int, ...]
    """Delay of each flow's start, stop and restart after the first possible time."""
    event: str
    interrupt: int
    period: int
    change: int | None
    one_way: int
    access: int
    access_delay: int
    rate: int
    limited_rate: int
    mss: int
    after: int | None

    @property
    def rtt(self) -> int:
        """Round trip of an empty path."""
        return 2 * (self.one_way + 2 * self.access_delay)

    @property
    def monitored(self) -> int:
        """Monitored time of a flow after its restart."""
        return PERIODS[self.event] * self.rtt

    def restart(self, flow: int) -> int:
        """Time when a flow continues at its full rate."""
        return self.interrupt + self.period + self.shifts[flow]

    def rates(self, flow: int) -> list[tuple[int, int]]:
        """Times and rates of a flow."""
        start, between = self.shifts[flow], 0 if self.event == "idle" else self.limited_rate
        return [
            (start, self.rate),
            (self.interrupt + start, between),
            (self.restart(flow), self.rate),
        ]


def scene(study: Study, parameters: Mapping[str, str], point: Point, seed: int) -> Scene:
    """The point in numbers; the shifts depend only on the seed, not on the congestion control."""
    asked = validate(Asked, point, "sweeps")
    given = {name: entry.value for name, entry in study.setup.items()}
    chance = random.Random(seed)
    spread = quantities.time(parameters["cwvx_spread"])
    shifts = sorted(chance.randint(0, spread) for _ in range(asked.flows))
    series = [asked.mix] * asked.flows
    if asked.mix == "mixed":
        series = ["std", "cwv"] * (asked.flows // 2)
        chance.shuffle(series)
    interrupt = quantities.time(given["interrupt"])
    change = None
    if asked.path == "changes":
        # Half-way between the stop of the last flow and the restart of the first.
        half_way = interrupt + (shifts[-1] + asked.period + shifts[0]) // 2
        at_end = asked.event == "limited" and parameters["cwvx_change"] == "end"
        change = interrupt + asked.period + shifts[0] if at_end else half_way
    return Scene(
        tuple(series),
        tuple(shifts),
        asked.event,
        interrupt,
        asked.period,
        change,
        quantities.time(given["one_way"]) if asked.one_way is None else asked.one_way,
        quantities.rate(given["access"]),
        quantities.time(given["access_delay"]),
        quantities.rate(given["rate"]),
        quantities.rate(given["limited_rate"]),
        quantities.size(given["mss"]),
        asked.after,
    )


def describe(study: Study, parameters: Mapping[str, str], now: Scene, folder: Path) -> Run:
    """The run of a point, with its trace in ``folder``."""
    given = {name: entry.value for name, entry in study.setup.items()}
    packet = now.mss + IP_AND_TCP_BYTES
    widths = {name: quantities.rate(given[name]) for name in (WIDE, NARROW)}
    queues = {name: _product(rate, now.rtt, packet) for name, rate in widths.items()}
    if parameters["cwvx_buffer"] == "wide":
        queues[NARROW] = queues[WIDE]
    links = {name: _link(widths[name], now.one_way, queues[name]) for name in widths}
    access = _link(now.access, now.access_delay, ACCESS_QUEUE)
    hosts, flows, reroutes = [], [], []
    for flow, series in enumerate(now.series):
        sender, receiver = ends = f"s{flow}", f"r{flow}"
        links |= dict.fromkeys(ends, access)
        window = int(parameters["cwvx_initial_window"])
        hosts.append(Host(name=sender, role="server", congestion=series, initial_window=window))
        hosts.append(Host(name=receiver, role="client", congestion="std"))
        rates = [{"at_ns": at, "bit_per_s": rate} for at, rate in now.rates(flow)]
        flows.append(
            Flow(
                kind={"kind": "cbr", "write_bytes": now.mss, "rates": rates},
                start_ns=now.shifts[flow],
                client=receiver,
                server=sender,
                through=[sender, WIDE, receiver],
                group=str(flow),
            )
        )
        if now.change is not None:
            through = [sender, NARROW, receiver]
            reroutes.append(Reroute(at_ns=now.change, group=str(flow), through=through))
    window = 2 * quantities.size(given["receive_window"])  # Linux offers half of its buffer
    decay = DECAYS[parameters["cwvx_decay"]]
    return Run(
        id="cwv",
        trace_dir=folder,
        work_dir=folder,
        hosts=hosts,
        segments=[Segment(name=name, down=link, up=link, mtu=packet) for name, link in sorted(links.items())],
        congestion=[
            Congestion(algorithm="std", name="std", parameters={"std_rw": 1, "std_flight": 1}),
            Congestion(algorithm="cwv", name="cwv", parameters={"cwv_unit": decay}),
        ],
        transport=Transport(
            rto_min_ns=_rto_min(parameters, now.rtt),
            quickack=parameters["cwvx_acks"] == "each",
            sysctls=SYSCTLS
            | {
                "net.ipv4.tcp_recovery": "1" if parameters["cwvx_recovery"] == "rack" else "0",
                "net.ipv4.tcp_rmem": f"4096 {window} {window}",
                "net.ipv4.tcp_wmem": f"4096 {window} {window}",
            },
        ),
        flows=flows,
        reroutes=reroutes,
        until_ns=now.restart(-1) + (now.after or now.monitored + now.rtt),
    )


def _product(rate: int, rtt: int, packet: int) -> int:
    """Packets of a bandwidth-delay product."""
    return math.ceil(rate * rtt / 8e9 / packet)


def _rto_min(parameters: Mapping[str, str], rtt: int) -> int:
    """Linux's minimum of the RTO. DEVIATION for the floor: Linux adds its minimum to the smoothed RTT. So the
    RTO is the floor on an empty path, and longer by the queueing delay on a full one."""
    minimum = quantities.time(parameters["cwvx_rto_min"])
    return max(minimum - rtt, 0) if parameters["cwvx_rto"] == "floor" else minimum


def _link(rate: int, delay: int, queue: int) -> dict[str, Any]:
    return {
        "capacity": {"kind": "rate", "bit_per_s": rate},
        "delay_ns": delay,
        "queue": {"kind": "droptail", "packets": queue},
        "overhead_bytes": 0,
    }


# Measures. Connections are numbered in the order of their starts, like the flows.


def restart(now: Scene, folder: Path) -> pl.DataFrame:
    """``received_kbit_s``: rate of arriving bytes in the monitored time after each flow's own restart,
    averaged over the flows of a series. ``dropped_percent``: share of the packets offered
    at the bottleneck that it drops, from the first restart to the end of the last monitored time."""
    packets = _data_packets(now, folder)
    flow, offered = packets["connection"].to_numpy(), packets["time_in"].to_numpy()
    arrived = packets["arrived"].fill_null(-1).to_numpy()
    restarts = np.array([now.restart(number) for number in range(len(now.series))])
    in_time = (restarts[flow] <= arrived) & (arrived <= restarts[flow] + now.monitored)
    payload = packets["payload_bytes"].to_numpy()[in_time]
    received = np.bincount(flow[in_time], weights=payload, minlength=len(restarts))
    watched = (now.restart(0) <= offered) & (offered <= now.restart(-1) + now.monitored)
    dropped = 100 * np.mean(arrived[watched] < 0) if watched.any() else 0.0
    kinds = sorted(set(now.series))
    rates = [received[np.array(now.series) == kind].mean() * 8e6 / now.monitored for kind in kinds]
    return pl.DataFrame(
        {"series": kinds, "received_kbit_s": rates, "dropped_percent": [float(dropped)] * len(kinds)}
    )


def packet_delay(now: Scene, folder: Path) -> pl.DataFrame:
    """``delay_ms`` of each ``packet`` (0: the first one after the restart), from the
    application's write to the arrival in order at the receiver, averaged over the flows."""
    means = _delays(now, folder).group_by("series", "packet").agg(pl.col("delay_ms").mean())
    return means.sort("series", "packet")


def restart_delay(now: Scene, folder: Path) -> pl.DataFrame:
    """``delay_ms``: as above, averaged over the packets written in the monitored time."""
    delays = _delays(now, folder).filter(pl.col("written").is_between(0, now.monitored))
    means = delays.group_by("series").agg(pl.col("delay_ms").mean())
    return means.sort("series").with_columns(period_s=pl.lit(now.period / 1e9))


def window(now: Scene, folder: Path) -> pl.DataFrame:
    """``cwnd`` at ``time_s``: the window of the first flow at each ACK."""
    acks = _acks(folder)
    return acks.select(series=pl.lit(now.series[0]), time_s=pl.col("time") / 1e9, cwnd="cwnd")


def restart_window(now: Scene, folder: Path) -> pl.DataFrame:
    """``cwnd_before`` and ``cwnd_after``: the window of the first flow at the last ACK before the event
    and at the first ACK after the restart."""
    acks = _acks(folder)
    before = acks.filter(pl.col("time") < now.interrupt + now.shifts[0])["cwnd"][-1]
    after = acks.filter(pl.col("time") > now.restart(0))["cwnd"][0]
    return pl.DataFrame(
        {
            "series": now.series[:1],
            "period_s": [now.period / 1e9],
            "cwnd_before": [before],
            "cwnd_after": [after],
        }
    )


MEASURES = {
    "restart": Measure(("packet",), restart, (f"{NARROW}.down",)),
    "packet-delay": Measure(("packet",), packet_delay, (f"{WIDE}.down", f"{NARROW}.down")),
    "restart-delay": Measure(("packet",), restart_delay, (f"{WIDE}.down", f"{NARROW}.down")),
    "window": Measure(("tcp",), window),
    "restart-window": Measure(("tcp",), restart_window),
}


def _acks(folder: Path) -> pl.DataFrame:
    """The samples of the first flow's sender at ACKs."""
    return trace.read_table(folder, "tcp").filter(
        pl.col("connection") == 0, pl.col("side") == "server", pl.col("event") == "ack"
    )


def _data_packets(now: Scene, folder: Path) -> pl.DataFrame:
    """Packets with payload at the bottleneck; ``arrived`` is their arrival at the receiver, null if
    dropped. The access link behind the bottleneck is never busy: it adds its delay and a packet time."""
    columns = ("connection", "sequence", "payload_bytes", "wire_bytes", "time_in", "time_out")
    packets = trace.read_table(folder, "packet", columns)
    last_hop = now.access_delay + pl.col("wire_bytes") * (8 * 10**9 // now.access)
    return (
        packets.lazy()
        .filter(pl.col("payload_bytes") > 0)
        .with_columns(arrived=pl.col("time_out") + last_hop)
        .collect()
    )


def _delays(now: Scene, folder: Path) -> pl.DataFrame:
    """One row per delivered packet: ``series``, ``packet`` and ``written`` (ns) counted from the
    restart, ``delay_ms``. Every write is one segment, so its first byte gives its number."""
    packets = _data_packets(now, folder).filter(pl.col("arrived").is_not_null())
    arrived = packets["arrived"].to_numpy()
    number = (packets["sequence"].to_numpy() - 1) // now.mss
    flows = packets["connection"].to_numpy()
    frames = []
    for flow, series in enumerate(now.series):
        written = _writes(now, flow)
        first = np.full(len(written), np.inf)
        own = (flows == flow) & (number < len(written))
        np.minimum.at(first, number[own], arrived[own])
        # A packet that arrives early waits for those before it.
        in_order = np.maximum.accumulate(first)
        columns = {
            "packet": np.arange(len(written)) - np.searchsorted(written, now.restart(flow)),
            "written": written - now.restart(flow),
            "delay_ms": (in_order - written) / 1e6,
        }
        frames.append(pl.DataFrame(columns).insert_column(0, pl.Series("series", [series] * len(written))))
    return pl.concat(frames).filter(pl.col("delay_ms").is_finite())


def _writes(now: Scene, flow: int) -> np.ndarray:
    """Times of the writes of a flow's application, until the monitored time is over."""
    rates = now.rates(flow)
    ends = [at for at, _ in rates[1:]] + [now.restart(flow) + now.monitored]
    interval = 8 * 10**9 * now.mss
    parts = [
        np.arange(begin, end, interval // rate)
        for (begin, rate), end in zip(rates, ends, strict=True)
        if rate
    ]
    return np.concatenate(parts)
