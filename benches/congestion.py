"""What each congestion control costs per ACK: natively, and in the kernel.

    sudo .venv/bin/python benches/congestion.py [--json]

Natively: the hooks of an ACK in the kernel's order (crates/congestion-native/examples/cost.rs). In
the kernel: BPF's own run-time statistics over a bulk transfer on a path without a bottleneck, one
ACK per segment; they include about 20 ns of measuring per hook. Goodput is that of the same transfer
beside the kernel's reno, whose hooks are C functions.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wirepaint.evaluation import congestion
from wirepaint.runners.testbed.cells import Cells

ROOT = Path(__file__).parents[1]
MSS = 1448
SEGMENTS = 60_000
REPEATS = 3
PEER = "reno"
DIRECTION = {"capacity": {"kind": "unlimited"}, "delay_ns": 1_000_000, "queue": {"kind": "droptail"}}

_SYS_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_BPF_ENABLE_STATS = 32


@contextmanager
def statistics_of_bpf() -> Iterator[None]:
    """BPF run-time statistics, for as long as the descriptor is open."""
    attributes = (ctypes.c_uint32 * 4)()
    libc = ctypes.CDLL(None, use_errno=True)
    size = ctypes.sizeof(attributes)
    descriptor = libc.syscall(_SYS_BPF[os.uname().machine], _BPF_ENABLE_STATS, attributes, size)
    if descriptor < 0:
        raise SystemExit(f"BPF statistics: {os.strerror(ctypes.get_errno())} (needs root)")
    try:
        yield
    finally:
        os.close(descriptor)


def natively() -> dict[str, float]:
    """Nanoseconds per ACK by algorithm."""
    command = ["cargo", "run", "--release", "-q", "-p", "wirepaint-congestion-native", "--example", "cost"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def transfer(cells: Cells, name: str, folder: Path) -> dict[str, float]:
    """One transfer under an algorithm: goodput in bit/s, nanoseconds and hook calls per ACK.

    Where the CPU is busy Linux merges ACKs that wait for the socket, so ACKs are counted by the hook
    that ran most often of those that run once per ACK.
    """
    folder.mkdir()
    own = name in congestion.ours()
    registered = f"{name}_bench" if own else name
    asked = {
        "folder": str(folder),
        "congestion": [{"algorithm": name, "name": registered}] if own else [],
        "transfers": [
            {
                "name": "one",
                "connections": [{"congestion": registered, "initial_window": 10, "mss": MSS}],
                "path": {"down": DIRECTION, "up": DIRECTION},
                "rtt_ns": 2 * DIRECTION["delay_ns"],
                "sysctls": {},
                "acts": [
                    {
                        "kind": "write",
                        "connection": 0,
                        "segments": SEGMENTS,
                        "reached": [[0, 0]],
                        "after_us": 0,
                    }
                ],
                "until": {"reached": [[SEGMENTS, 0]]},
                "limit_s": 60,
            }
        ],
    }
    call = "wirepaint.runners.testbed.transfer:carry_out"
    [seen] = cells.call(call, asked, timeout_s=90, log=folder / "log.txt")
    last, received = seen["connections"][0]["arrivals"][-1]
    runs = [hook["runs"] for hook in seen["hooks"] if not hook["hook"].endswith("min_tso_segs")]
    acks = max(runs, default=SEGMENTS)
    return {
        "goodput": received * 8e9 / last,
        "ns": sum(hook["ns"] for hook in seen["hooks"]) / acks,
        "calls": sum(hook["runs"] for hook in seen["hooks"]) / acks,
    }


def in_kernel(names: list[str]) -> dict[str, dict[str, float]]:
    """Medians by algorithm; the transfers of different algorithms take turns."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as scratch, Cells() as cells, statistics_of_bpf():
        for repeat in range(REPEATS):
            for name in names:
                found[name].append(transfer(cells, name, Path(scratch) / f"{name}-{repeat}"))
    return {
        name: {key: statistics.median(one[key] for one in seen) for key in seen[0]}
        for name, seen in found.items()
    }


def rows() -> list[dict[str, Any]]:
    """One row per algorithm of ours."""
    native = natively()
    kernel = in_kernel([PEER, *native])
    return [
        {
            "algorithm": name,
            "native_ns": native[name],
            "kernel_ns": kernel[name]["ns"],
            "calls": kernel[name]["calls"],
            "goodput": kernel[name]["goodput"] / kernel[PEER]["goodput"],
        }
        for name in native
    ]


def main() -> None:
    """Prints one line per algorithm."""
    parser = argparse.ArgumentParser(description="What each congestion control costs per ACK")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = rows()
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"cost per ACK; goodput without a bottleneck, as a share of the kernel's {PEER}")
    print(f"{'algorithm':12}{'native':>10}{'kernel':>10}{'hook calls':>12}{'goodput':>9}")
    for row in found:
        print(
            f"{row['algorithm']:12}{row['native_ns']:>7.1f} ns{row['kernel_ns']:>7.0f} ns"
            f"{row['calls']:>12.2f}{row['goodput']:>9.2f}"
        )


if __name__ == "__main__":
    main()
