"""Speed of the simulator beside ns-3, on the same dumbbell.

    .venv/bin/python benches/simulator.py [--only TEXT] [--seconds N] [--alone | --ns3 FOLDER] [--json FILE]

Flows over one bottleneck of 100 ms one way with a queue of one BDP and an access link at either end, in
our simulator (crates/simulator/examples/speed.rs, Linux's whole TCP with CUBIC) and in ns-3
(benches/ns3/dumbbell.cc, built here: TcpCubic, SACK, the same segment size and wire bytes); without
libns3-dev ours alone. Debian's ns-3 is of the profile "release" with logging compiled in; --ns3 names one
of your own, say of the profile "optimized". CPU seconds are those of the event loop. Both goodputs are
printed, because a ratio of times means something only where both carried the same. Then what an ACK costs
by the window, and loads of a large page on lte. Times depend on what else the machine does; each arm is a
process of its own, ours runs REPEATS times and the fastest counts.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REPEATS = 3
NS3_LIBRARIES = ["applications", "internet", "point-to-point", "network", "core"]
DELAY_MS = 100
WINDOWS = [100, 1_000, 5_000, 20_000]
"""Segments in flight on one path of ``WINDOW_MBIT``: the delay grows with them, the rate does not."""
WINDOW_MBIT = 100
WIRE_BITS = 1502 * 8
PAGE, NETWORK = "shop-large", "lte"


@dataclass(frozen=True)
class Case:
    """A dumbbell; ``beside`` ns-3 or alone."""

    flows: int
    mbit: int
    kind: str = "bulk"
    beside: bool = True

    def __str__(self) -> str:
        kind = "bulk" if self.kind == "bulk" else "CBR 512 kbit/s"
        return f"{self.flows} x {kind}, {self.mbit} Mbit/s"


CASES = [
    Case(1, 100),
    Case(32, 100),
    Case(1000, 100),
    Case(32, 100, "cbr"),
    Case(32, 1000),
    Case(1000, 1000, beside=False),
]


def built(*package_and_example: str) -> Path:
    """An example of a crate, as a release build."""
    package, example = package_and_example
    command = ["cargo", "build", "--release", "--quiet", "-p", package, "--example", example]
    subprocess.run(command, cwd=ROOT, check=True)
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    metadata = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    return Path(json.loads(metadata)["target_directory"]) / "release/examples" / example


def ns3_version() -> str | None:
    """Version of Debian's ns-3 if it is installed."""
    if shutil.which("dpkg-query") is None or shutil.which("g++") is None:
        return None
    command = ["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"]
    asked = subprocess.run(command, capture_output=True, text=True)
    return asked.stdout or None if asked.returncode == 0 else None


def ns3_program(folder: Path, prefix: Path | None) -> Path:
    """The ns-3 arm, with the ns-3 in ``prefix`` or Debian's.

    Its pkg-config file names libraries that do not exist, so they are named here.
    """
    program = folder / "dumbbell"
    command = ["g++", "-O2", "-std=c++17", ROOT / "benches/ns3/dumbbell.cc", "-o", program]
    if prefix is None:
        command += [f"-lns3-{name}" for name in NS3_LIBRARIES]
    else:
        lib = prefix / "lib"
        command += [f"-I{prefix / 'include'}", f"-Wl,-rpath,{lib}"]
        for name in NS3_LIBRARIES:
            found = sorted(lib.glob(f"libns3*-{name}*.so"))
            if not found:
                raise SystemExit(f"--ns3: {lib} has no libns3*-{name}*.so")
            command.append(found[0])
    subprocess.run(command, check=True)
    return program


def said(*argv: str | Path | int) -> dict[str, Any]:
    """The line of JSON that a program prints."""
    return json.loads(subprocess.run(list(map(str, argv)), check=True, stdout=subprocess.PIPE).stdout)


def dumbbells(speed: Path, ns3: Path | None, cases: list[Case], seconds: int) -> list[dict[str, Any]]:
    """One row per case."""
    rows = []
    for case in cases:
        words = ["dumbbell", case.flows, case.mbit, DELAY_MS, seconds, case.kind]
        ours = min((said(speed, *words) for _ in range(REPEATS)), key=lambda seen: seen["cpu_s"])
        peer = said(ns3, *words[1:]) if ns3 and case.beside else None
        rows.append({"case": str(case), "ours": ours, "ns3": peer})
        print_dumbbell(rows[-1])
    return rows


def print_dumbbell(row: dict[str, Any]) -> None:
    ours, peer = row["ours"], row["ns3"]
    line = f"{row['case']:32}{ours['cpu_s']:>9.3f} s"
    line += f"{ours['packet_hops'] / ours['cpu_s'] / 1e6:>9.2f} M{ours['peak_mb']:>8.0f} MB"
    line += f"{ours['goodput_mbit']:>9.1f}"
    if peer:
        line += f"   {peer['cpu_s']:>9.2f} s{peer['peak_mb']:>8.0f} MB{peer['goodput_mbit']:>9.1f}"
        line += f"{peer['cpu_s'] / ours['cpu_s']:>9.0f} x"
    print(line, flush=True)


def windows(speed: Path) -> list[dict[str, float]]:
    """Cost of a packet-hop of one flow by its window, with the losses after slow start."""
    rows = []
    for window in WINDOWS:
        rtt_ms = window * WIRE_BITS // (WINDOW_MBIT * 1000)
        words = ["dumbbell", 1, WINDOW_MBIT, rtt_ms // 2, 20 + rtt_ms // 20, "bulk"]
        seen = min((said(speed, *words) for _ in range(REPEATS)), key=lambda seen: seen["cpu_s"])
        rows.append({"segments": window, "ns_per_hop": seen["cpu_s"] / seen["packet_hops"] * 1e9})
    return rows


def loads(speed: Path, folder: Path) -> dict[str, Any]:
    """Visits of a page per second and core."""
    evaluation = folder / "load.toml"
    evaluation.write_text(
        f'title = "{PAGE} on {NETWORK}"\n\n'
        f'[scenarios]\nnetwork = ["{NETWORK}"]\ncongestion = ["cubic9438"]\n\n'
        f'[[user_agents]]\nname = "browser"\npages = ["{PAGE}"]\nvisits = 1\n'
    )
    program = ROOT / ".venv/bin/wirepaint"
    argv = [program, "run", evaluation, "--backend", "simulator", "-o", folder / "results"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run = next((folder / "results").glob("**/run.json"))
    return max((said(speed, "loads", run) for _ in range(REPEATS)), key=lambda seen: seen["loads_per_s"])


def main() -> None:
    """Prints one line per case."""
    parser = argparse.ArgumentParser(description="Speed of the simulator beside ns-3")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has the text")
    parser.add_argument("--seconds", type=int, default=40, help="simulated time of a dumbbell")
    parser.add_argument("--alone", action="store_true", help="without ns-3")
    parser.add_argument("--ns3", type=Path, metavar="FOLDER", help="include/ and lib/ of an ns-3 of your own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in str(case)]
    speed = built("wirepaint-simulator", "speed")
    version = None if options.alone else options.ns3 or ns3_version()
    with tempfile.TemporaryDirectory() as scratch:
        ns3 = ns3_program(Path(scratch), options.ns3) if version else None
        peer = "nothing (ns-3: libns3-dev)"
        if version:
            peer = (
                f"ns-3 in {version}"
                if options.ns3
                else f"ns-3 {version}, Debian's build (release, with logging)"
            )
        print(f"dumbbell, {DELAY_MS} ms one way, {options.seconds} s simulated; beside: {peer}")
        print(
            f"{'':32}{'CPU':>11}{'hops/s':>11}{'memory':>11}{'Mbit/s':>9}"
            f"   {'ns-3: CPU':>11}{'memory':>11}{'Mbit/s':>9}{'ratio':>11}"
        )
        found: dict[str, Any] = {
            "ns3": version and str(version),
            "dumbbells": dumbbells(speed, ns3, cases, options.seconds),
        }
        if not options.only:
            cost = subprocess.run([built("wirepaint-tcp-model", "cost")], check=True, capture_output=True)
            found["cost"] = cost.stdout.decode()
            print("\n" + found["cost"])
            found["windows"] = windows(speed)
            print("one flow, ns per packet-hop by the path's segments in flight: ", end="")
            print(", ".join(f"{row['segments']}: {row['ns_per_hop']:.0f}" for row in found["windows"]) + "\n")
            found["loads"] = loads(speed, Path(scratch))
            seen = found["loads"]
            print(f"{PAGE} ({seen['requests']} requests) on {NETWORK}: ", end="")
            print(f"{seen['loads_per_s']:.0f} loads per second and core, {seen['peak_mb']:.0f} MB")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
