"""Our congestion controls against those built into Linux, on the same emulated paths.

    sudo .venv/bin/python benches/oracle.py [--pair NAME] [--path NAME] [--json]

``std`` with Linux's choices beside reno, ``cubic9438`` beside cubic, ``bbr1`` beside bbr: one bulk
flow each, at the same time on twelve pairs of equal paths. The completion time of the whole flow is
compared, and the goodput over its second half, where the window has left slow start. To reach: within 5 %.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirepaint.evaluation.congestion import NATIVE
from wirepaint.runners.testbed.cells import Cells

MSS = 1448
WIRE_BYTES = 1514
SECONDS = 6
"""Length of a transfer at the full rate."""
WITHIN = 0.05
LOSSY_REPEATS = 9
"""Random loss makes a single transfer a matter of chance: two senders soon meet different losses."""


@dataclass(frozen=True)
class Pair:
    """One of ours with the parameters that make it what Linux has built in, and its peer."""

    ours: str
    parameters: dict[str, int]
    peer: str


PAIRS = {peer: Pair(*ours, peer) for peer, ours in NATIVE.items()}


@dataclass(frozen=True)
class Path12:
    """A path: rate in Mbit/s, round-trip time in ms, queue in BDP (drop-tail) or CoDel, random loss."""

    rate: int
    rtt: int
    buffer: float | None
    loss: float = 0.0

    @property
    def name(self) -> str:
        queue = "codel" if self.buffer is None else f"{self.buffer:g}bdp"
        return f"{self.rate}M-{self.rtt}ms-{queue}" + (f"-{100 * self.loss:g}%" if self.loss else "")

    def directions(self) -> dict[str, Any]:
        """Both directions as a run description has them; only data meets the bottleneck."""
        bdp = self.rate * 1e6 * self.rtt / 1e3 / 8 / WIRE_BYTES
        queue: dict[str, Any] = {"kind": "codel"}
        if self.buffer is not None:
            queue = {"kind": "droptail", "packets": max(round(self.buffer * bdp), 4)}
        delay = self.rtt * 500_000
        down = {
            "capacity": {"kind": "rate", "bit_per_s": self.rate * 1_000_000},
            "delay_ns": delay,
            "queue": queue,
        }
        if self.loss:
            down["loss"] = {"kind": "independent", "probability": self.loss}
        up = {"capacity": {"kind": "unlimited"}, "delay_ns": delay, "queue": {"kind": "droptail"}}
        return {"down": down, "up": up}


PATHS = [
    *(Path12(2, 100, 1), Path12(5, 40, 1), Path12(10, 20, 1), Path12(10, 50, 0.5)),
    *(Path12(10, 100, 2), Path12(20, 60, 1), Path12(20, 150, 1), Path12(50, 30, 1)),
    *(Path12(50, 100, 0.5), Path12(100, 20, 1), Path12(20, 60, None), Path12(20, 60, 1, 0.005)),
]


def compare(cells: Cells, pair: Pair, path: Path12, folder: Path, seed: int) -> dict[str, float]:
    """Ratios, ours to Linux's, of completion time and of goodput in the second half."""
    seconds = SECONDS / 3 if path.loss else SECONDS
    segments = round(path.rate * 1e6 / 8 / WIRE_BYTES * seconds)
    one = {
        "path": path.directions(),
        "rtt_ns": path.rtt * 1_000_000,
        "sysctls": {},
        "acts": [
            {"kind": "write", "connection": 0, "segments": segments, "reached": [[0, 0]], "after_us": 0}
        ],
        "until": {"reached": [[segments, 0]]},
        "limit_s": 20 * SECONDS,
        "seed": seed,
    }
    own = f"{pair.ours}_bench"[:15]
    asked = {
        "folder": str(folder),
        "congestion": [{"algorithm": pair.ours, "name": own, "parameters": pair.parameters}],
        "transfers": [
            one | {"name": name, "connections": [{"congestion": used, "initial_window": 10, "mss": MSS}]}
            for name, used in (("ours", own), ("linux", pair.peer))
        ],
    }
    call = "wirepaint.runners.testbed.transfer:carry_out"
    seen = cells.call(call, asked, timeout_s=30 * SECONDS, log=folder / "log.txt")
    ours, peer = (_times(transfer["connections"][0]["arrivals"], segments * MSS) for transfer in seen)
    return {
        "ours_s": ours[0],
        "linux_s": peer[0],
        "time": ours[0] / peer[0],
        "goodput": peer[1] / ours[1],
    }


def _times(arrivals: list[list[int]], total: int) -> tuple[float, float]:
    """Seconds until all has arrived, and from half to all."""
    if not arrivals or arrivals[-1][1] < total:
        raise SystemExit(f"a transfer of {total} bytes did not end: {arrivals[-1:]}")
    half = next(time for time, received in arrivals if received >= total / 2)
    return arrivals[-1][0] / 1e9, (arrivals[-1][0] - half) / 1e9


def rows(pairs: list[str], paths: list[Path12], repeats: int) -> Iterator[dict[str, Any]]:
    """One row per pair and path: geometric means over the repeats, each with a seed of its own.

    ``error`` is the standard error of the completion times' ratio.
    """
    with tempfile.TemporaryDirectory() as scratch, Cells() as cells:
        for name in pairs:
            for path in paths:
                found = []
                for seed in range(1, (LOSSY_REPEATS if path.loss else repeats) + 1):
                    folder = Path(scratch) / f"{name}-{path.name}-{seed}"
                    folder.mkdir()
                    found.append(compare(cells, PAIRS[name], path, folder, seed))
                logs = [math.log(one["time"]) for one in found]
                yield {
                    "pair": name,
                    "path": path.name,
                    "error": statistics.stdev(logs) / len(logs) ** 0.5 if len(logs) > 1 else 0.0,
                    **{key: statistics.geometric_mean(one[key] for one in found) for key in found[0]},
                }


def main() -> None:
    """Prints one line per pair and path."""
    parser = argparse.ArgumentParser(description="Our congestion controls against those built into Linux")
    parser.add_argument("--pair", choices=PAIRS, help="only this pair")
    parser.add_argument("--path", choices=[path.name for path in PATHS], help="only this path")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pairs = [options.pair] if options.pair else list(PAIRS)
    paths = [path for path in PATHS if options.path in (None, path.name)]
    found = []
    if not options.json:
        print("completion of one bulk flow, ours beside Linux's; goodput over its second half")
        print(f"{'pair':22}{'path':22}{'ours':>9}{'Linux':>9}{'time':>8}{'goodput':>9}")
    for row in rows(pairs, paths, options.repeats):
        found.append(row)
        if not options.json:
            pair = PAIRS[row["pair"]]
            off = max(abs(row["time"] - 1), abs(row["goodput"] - 1)) > WITHIN + 2 * row["error"]
            print(
                f"{pair.ours + ' / ' + pair.peer:22}{row['path']:22}{row['ours_s']:>7.2f} s"
                f"{row['linux_s']:>7.2f} s{row['time']:>8.3f}{row['goodput']:>9.3f}"
                f"{' ± ' + format(row['error'], '.3f') if row['error'] else ''}"
                f"{'  beyond 5 %' if off else ''}",
                flush=True,
            )
    if options.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
