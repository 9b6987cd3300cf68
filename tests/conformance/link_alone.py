"""The link and its queue alone: what arrived at the emulator, over the simulator's link.

Linux sends over the emulator; the packets that arrived there, at the times of their stamps, go through
the same link in the simulator, without TCP. Both must do the same with each packet.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import arms
import polars as pl
from arms import SENDERS, Flow, Link

from wirepaint import dataplane
from wirepaint.results.trace import read_table
from wirepaint.runners.testbed.cells import Cells

QUEUES: dict[str, dict[str, Any]] = {
    "droptail packets": {"kind": "droptail", "packets": 30},
    "droptail bytes": {"kind": "droptail", "bytes": 50_000},
    "codel": {"kind": "codel"},
    # So many buckets that no two connections share one: the arms hash different names of them.
    "fq_codel": {"kind": "fq_codel", "flows": 65_536},
    "pie": {"kind": "pie"},
}
CONNECTIONS, EACH = 8, 500_000
"""Enough that each queue drops."""
ETHERNET_BYTES = 14


@dataclass(frozen=True)
class QueuedLink(Link):
    """A path with one of ``QUEUES``."""

    queue: str = "codel"

    @property
    def name(self) -> str:
        return f"{super().name} {self.queue}"

    def directions(self, host_delay_ns: int = 0) -> dict[str, Any]:
        directions = super().directions(host_delay_ns)
        directions["down"]["queue"] = QUEUES[self.queue]
        return directions


LINKS = [
    *(QueuedLink(20, 40, queue=queue) for queue in QUEUES),
    QueuedLink(20, 40, loss=0.01, queue="droptail packets"),
]


@dataclass(frozen=True)
class Crossed:
    """Packets on the same link in both arms."""

    packets: pl.DataFrame
    """In order of arrival: ``time_in``, ``time_due``, ``time_out``, ``dropped`` of the emulator,
    ``due`` and ``lost`` of the simulator."""

    @property
    def drops(self) -> int:
        """Packets that the emulator dropped."""
        return self.packets["dropped"].count()

    @property
    def otherwise_dropped(self) -> int:
        """Packets with another fate in the simulator: dropped in one arm alone, or for another cause."""
        return self.packets.filter(pl.col("dropped").ne_missing(pl.col("lost"))).height

    @property
    def otherwise_due(self) -> int:
        """Packets that are due at another nanosecond in the simulator."""
        return self.packets.filter(pl.col("time_due").ne_missing(pl.col("due"))).height

    @property
    def late_p99_ns(self) -> float:
        """p99 of departure in fact, from the emulator, minus departure in the simulator."""
        return float((self.packets["time_out"] - self.packets["due"]).drop_nulls().quantile(0.99) or 0)


def cross(cells: Cells, link: Link, folder: Path) -> Crossed:
    """Linux sends over a path; its packets go over the same link in the simulator."""
    flow = Flow(link, SENDERS["cubic"], EACH, count=CONNECTIONS)
    arms.at_once(cells, [flow], folder)
    place = folder / "0"
    packets = read_table(place, "packet").filter(pl.col("direction") == "down")
    # Of two that arrived at the same nanosecond, a full queue drops the later.
    packets = packets.sort("time_in", pl.col("dropped").is_not_null(), "time_due")
    flows = {
        port: number for number, port in enumerate(packets["destination_port"].unique(maintain_order=True))
    }
    lines = [
        json.dumps({"at_ns": at, "ip_bytes": size - ETHERNET_BYTES, "flow": flows[port]})
        for at, size, port in packets.select("time_in", "wire_bytes", "destination_port").iter_rows()
    ]
    argv = [dataplane.program(), "cross", str(place / "run.json")]
    done = subprocess.run(argv, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = pl.DataFrame(
        [json.loads(line) for line in done.stdout.splitlines()],
        schema={"packet": pl.Int64, "due_ns": pl.Int64, "dropped": pl.String},
    ).sort("packet")
    assert said["packet"].to_list() == list(range(packets.height)), "not every packet has one fate"
    return Crossed(packets.with_columns(due=said["due_ns"], lost=said["dropped"]))
