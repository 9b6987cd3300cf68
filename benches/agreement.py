"""The simulator beside Linux: the same flows on the same paths, all tolerances.

    sudo .venv/bin/python benches/agreement.py [--only PART] [--link NAME] [--sender NAME] [-o FOLDER]

Each flow runs in Linux over the emulator (``--repeats`` times) and in the simulator (several phases of
the clocks and host delays; tests/conformance/arms.py says why). Prints one line per flow, then how many
flows are within each tolerance, then many flows at once and flows with random loss; with ``-o`` the
table as JSON and an overlay of the windows of each flow as SVG.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

CONFORMANCE = Path(__file__).resolve().parents[1] / "tests/conformance"
sys.path.append(str(CONFORMANCE))
# Cells find the arms where this program does.
os.environ["PYTHONPATH"] = str(CONFORMANCE)

import arms  # noqa: E402
from arms import MS, SENDERS, Flow, Link, Seen  # noqa: E402
from tolerances import compare  # noqa: E402

from wirepaint.runners.testbed.cells import Cells  # noqa: E402

LINKS = [
    *(Link(1, 50, 2), Link(1, 600, 1), Link(1.5, 300, 1), Link(2, 100, 4), Link(2, 200, 1), Link(5, 40, 4)),
    *(Link(5, 20, 1), Link(5, 150, 0.5), Link(7, 50, 1), Link(8, 600, 1), Link(10, 20, 1), Link(10, 50, 0.5)),
    *(Link(10, 100, 2), Link(20, 60, 1), Link(20, 150, 0.25), Link(25, 26, 1), Link(25, 26, 4)),
    *(Link(50, 30, 1), Link(50, 100, 0.5), Link(50, 300, 1), Link(100, 10, 2), Link(100, 20, 1)),
    *(Link(100, 100, 0.25), Link(5, 100, None), Link(20, 60, None), Link(50, 30, None)),
    *(Link(10, 40, 1, 0.01), Link(20, 100, 1, 0.01), Link(5, 200, 2, 0.01), Link(50, 20, None, 0.01)),
]
KILOBYTES = [10, 100, 1000, 5000, 20_000]
CROWDS = [(Link(20, 60, 1), 32, 1_000_000), (Link(50, 100, 0.5), 32, 2_000_000)]
"""Many flows at once: link, flows, bytes of each."""
SEEDS = 20
"""Times that a flow with random loss runs in each arm."""
LONGEST_S = 15
"""A flow that takes longer at the full rate is left out."""
TOGETHER = 6
"""Flows that run in Linux at the same time."""
WIDTH, HEIGHT = 720, 240


def flows(options: argparse.Namespace) -> Iterator[Flow]:
    """The matrix, as far as it was asked for."""
    for link in LINKS:
        for sender in ("std", "cubic", "bbr", "cwv", "fld"):
            for kilobytes in KILOBYTES:
                flow = Flow(link, SENDERS[sender], kilobytes * 1000)
                asked = (options.link in (None, link.name), options.sender in (None, sender))
                short = flow.bytes * 8 / (link.rate * 1e6) <= options.longest
                if all(asked) and short and options.kb in (None, kilobytes):
                    yield flow


def overlay(linux: Sequence[Seen], simulated: Sequence[Seen]) -> str:
    """The windows of both arms over time as SVG: Linux in black, the simulator in orange."""
    until = max(seen.completion_ns for seen in (*linux, *simulated))
    grid = range(0, until, max(until // WIDTH, MS))
    series = [
        (colour, seen.windows(grid))
        for colour, arm in (("#d95f02", simulated), ("#000", linux))
        for seen in arm
    ]
    most = max(max(windows) for _, windows in series)
    lines = []
    for colour, windows in series:
        points = " ".join(
            f"{WIDTH * time / until:.1f},{HEIGHT * (1 - window / most):.1f}"
            for time, window in zip(grid, windows, strict=True)
        )
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-opacity="0.6"/>')
    title = f"{linux[0].flow.name}: cwnd, {most} segments at most, over {until / 1e9:.3f} s"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -20 {WIDTH} {HEIGHT + 24}">'
        f'<title>{title}</title><text y="-6" font-size="12">{title}</text>{"".join(lines)}</svg>\n'
    )


def row(linux: Sequence[Seen], simulated: Sequence[Seen]) -> dict[str, Any]:
    """What the arms showed of a flow."""
    flow = linux[0].flow
    times = [statistics.median(seen.completion_ns for seen in arm) / 1e9 for arm in (linux, simulated)]
    return {
        "link": flow.link.name,
        "sender": flow.sender.name,
        "bytes": flow.bytes,
        "linux_s": times[0],
        "simulator_s": times[1],
        "error": times[1] / times[0] - 1,
        "drops": [statistics.median(seen.drops for seen in arm) for arm in (linux, simulated)],
        "late_us": max(seen.late_ns for seen in linux) / 1e3,
        "findings": [vars(finding) | {"holds": finding.holds} for finding in compare(linux, simulated)],
    }


def measure(
    cells: Cells, together: Sequence[Flow], repeats: int, folder: Path
) -> Iterator[tuple[list[Seen], list[Seen]]]:
    """Both arms of a few flows. What Linux did with ACKs that no BPF program saw is left out."""
    simulated = arms.simulate(together, folder / "simulated")
    linux = [arms.in_linux(cells, together, folder / str(repeat)) for repeat in range(repeats)]
    for number, ours in enumerate(simulated):
        yield [seen[number] for seen in linux if seen[number].counts], ours


def one_by_one(cells: Cells, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Carries the matrix out; prints a line and gives the row of each flow."""
    todo = list(flows(options))
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
    print(f"{'link':20}{'sender':8}{'kB':>6}{'Linux':>10}{'simulator':>11}{'error':>9}  drops")
    for start in range(0, len(todo), TOGETHER):
        together = todo[start : start + TOGETHER]
        with tempfile.TemporaryDirectory() as scratch:
            arms_of_each = measure(cells, together, options.repeats, Path(scratch))
            for flow, (linux, simulated) in zip(together, arms_of_each, strict=True):
                if not linux:
                    print(f"{flow.name}: ACKs went unseen each time", flush=True)
                    continue
                one = row(linux, simulated)
                beyond = [
                    f"  {found['what']} {found['found']:.3g}{found['unit']} > {found['limit']:.3g}"
                    for found in one["findings"]
                    if not found["holds"]
                ]
                print(
                    f"{one['link']:20}{one['sender']:8}{one['bytes'] // 1000:>6}{one['linux_s']:>8.3f} s"
                    f"{one['simulator_s']:>9.3f} s{100 * one['error']:>+8.2f}%"
                    f"  {one['drops'][0]:g}/{one['drops'][1]:g}{''.join(beyond)}",
                    flush=True,
                )
                if options.output:
                    name = flow.name.replace(" ", "-")
                    (options.output / f"{name}.svg").write_text(overlay(linux, simulated))
                yield one


def crowds(cells: Cells, repeats: int) -> None:
    """Prints how many flows at once lie beside each other."""
    for link, count, size in CROWDS:
        for sender in ("reno", "cubic"):
            flow = Flow(link, SENDERS[sender], size, count=count)
            with tempfile.TemporaryDirectory() as scratch:
                [(linux, simulated)] = measure(cells, [flow], repeats, Path(scratch))
                found = "; ".join(map(str, compare(linux, simulated))) if linux else "ACKs went unseen"
                print(f"{count} flows, {flow.name}: {found}", flush=True)


def chance(cells: Cells, options: argparse.Namespace) -> None:
    """Prints mean completion times where loss is random, over as many seeds, with their standard errors."""
    for link in LINKS:
        if not link.loss or options.link not in (None, link.name):
            continue
        for sender in ("cubic", "fld"):
            kind = SENDERS[sender]
            todo = [Flow(link, kind, 1_000_000, seed=seed) for seed in range(1, SEEDS + 1)]
            times: tuple[list[float], list[float]] = ([], [])
            for start in range(0, SEEDS, TOGETHER):
                with tempfile.TemporaryDirectory() as scratch:
                    for linux, simulated in measure(cells, todo[start : start + TOGETHER], 1, Path(scratch)):
                        if linux:
                            times[0].append(linux[0].completion_ns / 1e9)
                            times[1].append(statistics.fmean(one.completion_ns for one in simulated) / 1e9)
            means = [statistics.fmean(arm) for arm in times]
            error = sum(statistics.variance(arm) / len(arm) for arm in times) ** 0.5
            limit = 2 * error + 0.02 * means[0]
            print(
                f"{link.name} {sender}, {len(times[0])} seeds: {means[0]:.3f} s, simulator {means[1]:.3f} s,"
                f" apart {abs(means[1] - means[0]):.3f} s"
                f" ({'within' if abs(means[1] - means[0]) <= limit else 'BEYOND'} {limit:.3f} s)",
                flush=True,
            )


def main() -> None:
    """Prints one line per flow and the table of tolerances, then crowds and random loss."""
    parser = argparse.ArgumentParser(description="The simulator beside Linux, flow by flow")
    parser.add_argument("--link", choices=[link.name for link in LINKS], help="only this path")
    parser.add_argument("--sender", choices=SENDERS, help="only this congestion control")
    parser.add_argument("--kb", type=int, choices=KILOBYTES, help="only flows of so many kB")
    parser.add_argument("--repeats", type=int, default=3, help="times that Linux carries out each flow")
    parser.add_argument("--longest", type=float, default=LONGEST_S, help="seconds at the full rate")
    parser.add_argument("--only", choices=["flows", "crowds", "chance"], help="only one of the three parts")
    parser.add_argument("-o", "--output", type=Path, help="folder for table and overlays")
    options = parser.parse_args()
    with Cells() as cells:
        if options.only in (None, "flows"):
            rows = list(one_by_one(cells, options))
            summarise(rows)
            if options.output:
                (options.output / "agreement.json").write_text(json.dumps(rows, indent=1))
        if options.only in (None, "crowds"):
            crowds(cells, options.repeats)
        if options.only in (None, "chance"):
            chance(cells, options)


def summarise(rows: Sequence[dict[str, Any]]) -> None:
    """How many flows are within each tolerance, by sender; the error of completion times."""
    print(f"\n{'tolerance':36}" + "".join(f"{name:>10}" for name in ("std", "cubic", "bbr", "cwv", "fld")))
    for what in dict.fromkeys(found["what"] for one in rows for found in one["findings"]):
        line = ""
        for sender in ("std", "cubic", "bbr", "cwv", "fld"):
            holds = [
                found["holds"]
                for one in rows
                if one["sender"] == sender
                for found in one["findings"]
                if found["what"] == what
            ]
            line += f"{sum(holds)}/{len(holds)}".rjust(10)
        print(f"{what:36}{line}")
    errors = sorted(abs(one["error"]) for one in rows)
    if errors:
        p90 = errors[min(len(errors) * 9 // 10, len(errors) - 1)]
        print(f"error of completion, medians: {100 * statistics.median(errors):.2f} %, p90 {100 * p90:.2f} %")


if __name__ == "__main__":
    main()
