"""The simulator beside Linux: the same flows on the same paths, all tolerances.

    sudo .venv/bin/python benches/agreement.py [--only PART] [--links NAME ...] [--senders NAME ...]
                                               [--sizes KB ...] [-o FOLDER]

Begins with the link alone. Then each flow of a matrix runs in Linux over the emulator (``--repeats``
times, several flows side by side) and in the simulator (several phases of the clocks and host delays;
tests/conformance/arms.py says why): one line per flow, then for each tolerance how many flows are within
it, by the medians of both arms or, where the runs of an arm lie further apart than the tolerance, by their
ranges. Ends with many flows at once, random loss, and messages at a constant rate.

With ``-o``, what Linux did is kept in the folder: the command begun again goes on where it ended, and after
a change of the simulator only that runs anew. The folder also gets the table as JSON and an overlay of the
windows of each flow as SVG.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

CONFORMANCE = Path(__file__).resolve().parents[1] / "tests/conformance"
sys.path.append(str(CONFORMANCE))
# Cells find the arms where this program does.
os.environ["PYTHONPATH"] = str(CONFORMANCE)

import arms  # noqa: E402
import link_alone  # noqa: E402
from arms import FRAME, MS, SENDERS, Flow, Link, Messages, Seen  # noqa: E402
from tolerances import Finding, compare  # noqa: E402

from wirepaint.runners.testbed.cells import Cells  # noqa: E402

LINKS = [
    *(Link(1, 50, 2), Link(1, 600, 1), Link(1.5, 300, 1), Link(2, 100, 4), Link(2, 200, 1), Link(5, 40, 4)),
    *(Link(5, 20, 1), Link(5, 150, 0.5), Link(7, 50, 1), Link(8, 600, 1), Link(10, 20, 1), Link(10, 50, 0.5)),
    *(Link(10, 100, 2), Link(20, 60, 1), Link(20, 150, 0.25), Link(25, 26, 1), Link(25, 26, 4)),
    *(Link(50, 30, 1), Link(50, 100, 0.5), Link(50, 300, 1), Link(100, 10, 2), Link(100, 20, 1)),
    *(Link(100, 100, 0.25), Link(5, 100, None), Link(20, 60, None), Link(50, 30, None)),
    *(Link(10, 40, 1, 0.01), Link(20, 100, 1, 0.01), Link(5, 200, 2, 0.01), Link(50, 20, None, 0.01)),
]
ONE_BY_ONE = ("std", "cubic", "bbr", "cwv", "fld")
KILOBYTES = [10, 100, 1000, 5000, 20_000]
CROWDS = [(Link(20, 60, 1), 32, 1_000_000), (Link(50, 100, 0.5), 32, 2_000_000)]
"""Many flows at once: link, flows, bytes of each."""
MESSAGE_LINK = Link(5, 60)
MESSAGE_RATES = (1.6, 4.5)
"""Payload, in Mbit/s."""
SEEDS = 20
"""Times that a flow with random loss runs in each arm."""
LONGEST_S = 60
"""A flow that would take longer is left out."""
TOGETHER, TOGETHER_MBIT = 10, 80
"""Flows that run in Linux at the same time: so many at most, which carry so much at most (or one)."""
WIDTH, HEIGHT = 720, 240


def expected_s(flow: Flow) -> float:
    """About how long a transfer takes: at the full rate, or at what random loss leaves a Reno-like sender
    (1.22 segments a round trip over the root of the loss rate: Mathis et al., CCR 1997)."""
    link = flow.link
    rate = link.rate * 1e6
    if link.loss and flow.sender.name != "bbr":
        rate = min(rate, 1.22 * FRAME * 8 / (link.rtt / 1e3) / link.loss**0.5)
    return flow.count * flow.bytes * 8 / rate + 5 * link.rtt / 1e3


def matrix(options: argparse.Namespace) -> list[Flow]:
    """The flows that were asked for and are not too long."""
    flows = [
        Flow(link, SENDERS[sender], 1000 * kilobytes)
        for link in LINKS
        if link.name in options.links
        for sender in options.senders
        for kilobytes in options.sizes
    ]
    short = [flow for flow in flows if expected_s(flow) <= LONGEST_S]
    if len(short) < len(flows):
        names = ", ".join(
            dict.fromkeys(f"{flow.link.name} {flow.bytes // 1000} kB" for flow in flows if flow not in short)
        )
        print(f"left out, longer than {LONGEST_S} s: {names}")
    return short


def batches(flows: Iterable[Flow]) -> Iterator[list[Flow]]:
    """Flows that can run side by side and take about as long."""
    batch: list[Flow] = []
    for flow in sorted(flows, key=expected_s):
        rate = sum(8 * one.bytes / 1e6 / expected_s(one) for one in (*batch, flow))
        if batch and (len(batch) == TOGETHER or rate > TOGETHER_MBIT):
            yield batch
            batch = []
        batch.append(flow)
    if batch:
        yield batch


class Linux:
    """Linux's results for each flow, cached in a folder."""

    def __init__(self, cells: Cells, folder: Path) -> None:
        self._cells, self._folder = cells, folder

    def _place(self, flow: Flow, repeat: int) -> Path:
        count = f"{flow.count}x-" if flow.count > 1 else ""
        rate = f"-{flow.messages.rate:g}M" if flow.messages else ""
        return self._folder / f"{count}{flow.name.replace(' ', '-')}{rate}-seed{flow.seed}" / str(repeat)

    def carry_out(self, flows: Iterable[Flow], repeats: int) -> None:
        """Carries out the flows that are not cached yet."""
        for repeat in range(repeats):
            due = [flow for flow in flows if not self._place(flow, repeat).exists()]
            done = 0
            for batch in batches(due):
                with tempfile.TemporaryDirectory() as scratch:
                    for seen in arms.in_linux(self._cells, batch, Path(scratch)):
                        seen.keep(self._place(seen.flow, repeat))
                done += len(batch)
                print(f"Linux, repeat {repeat + 1}: {done} of {len(due)} flows", file=sys.stderr, flush=True)

    def seen(self, flow: Flow, repeats: int) -> list[Seen]:
        """Linux's results that are usable for a comparison."""
        return arms.worth_comparing(Seen.kept(flow, self._place(flow, repeat)) for repeat in range(repeats))


def simulate(flows: Iterable[Flow]) -> Iterator[tuple[Flow, list[Seen]]]:
    """Carries out flows in the simulator, a few at a time."""
    for batch in batches(flows):
        with tempfile.TemporaryDirectory() as scratch:
            yield from zip(batch, arms.simulate(batch, Path(scratch)), strict=True)


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


def beside(linux: Sequence[Seen], simulated: Sequence[Seen]) -> dict[str, Any]:
    """Compares the arms' results for a flow; prints a line."""
    flow = linux[0].flow
    findings = compare(linux, simulated)
    times = [statistics.median(seen.completion_ns for seen in arm) / 1e9 for arm in (linux, simulated)]
    drops = [statistics.median(seen.drops for seen in arm) for arm in (linux, simulated)]
    print(
        f"{flow.link.name:20}{flow.sender.name:8}{flow.bytes // 1000:>6}{times[0]:>9.3f} s{times[1]:>9.3f} s"
        f"{100 * (times[1] / times[0] - 1):>+8.2f}%  {drops[0]:g}/{drops[1]:g}"
        + "".join(f"  {finding}" for finding in findings if not finding.holds),
        flush=True,
    )
    return {
        "link": flow.link.name,
        "sender": flow.sender.name,
        "bytes": flow.bytes,
        "linux_s": times[0],
        "simulator_s": times[1],
        "drops": drops,
        "late_us": max(seen.late_ns for seen in linux) / 1e3,
        "findings": [
            {
                "what": finding.what,
                "error": finding.error,
                "gap": finding.gap,
                "limit": finding.limit,
                "unit": finding.unit,
                "by_medians": finding.by_medians,
                "holds": finding.holds,
            }
            for finding in findings
        ],
    }


def one_by_one(linux: Linux, options: argparse.Namespace, folder: Path) -> None:
    """The matrix: a line per flow, and the tables."""
    flows = matrix(options)
    linux.carry_out(flows, options.repeats)
    print(f"{'link':20}{'sender':8}{'kB':>6}{'Linux':>11}{'simulator':>11}{'error':>9}  drops")
    rows = []
    for flow, simulated in simulate(flows):
        seen = linux.seen(flow, options.repeats)
        if not seen:
            print(f"{flow.name}: ACKs went unseen each time", flush=True)
            continue
        rows.append(beside(seen, simulated))
        sampled = [[one for one in arm if one.sampled] for arm in (seen, simulated)]
        if all(sampled):
            (folder / f"{flow.name.replace(' ', '-')}.svg").write_text(overlay(*sampled))
    (folder / "agreement.json").write_text(json.dumps(rows, indent=1))
    by_tolerance: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        for found in row["findings"]:
            by_tolerance[found["what"]].append(row | found)
    summarise("tolerance", by_tolerance)
    by_size: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(by_tolerance["completion"], key=lambda row: row["bytes"]):
        by_size[f"{row['bytes'] // 1000} kB"].append(row)
    summarise("completion of", by_size)


def summarise(head: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """How many findings hold, by sender, and how large the errors of the medians are."""
    print(f"\nwithin the tolerance: by the medians + by the ranges, of all\n{head:34}", end="")
    senders = list(dict.fromkeys(one["sender"] for found in rows.values() for one in found))
    print("".join(f"{name:>12}" for name in (*senders, "all", "median", "p90", "worst")))
    for name, found in rows.items():
        line = ""
        for sender in (*senders, None):
            mine = [one for one in found if sender in (None, one["sender"])]
            medians = sum(one["by_medians"] for one in mine)
            ranges = sum(one["holds"] for one in mine) - medians
            line += f"{medians}+{ranges}/{len(mine)}".rjust(12)
        errors = sorted(abs(one["error"]) for one in found)
        shown = (statistics.median(errors), errors[(len(errors) - 1) * 9 // 10], errors[-1])
        unit = found[0]["unit"].replace(" round trips", " RTT").replace(" segments", " seg")
        print(f"{name:34}{line}{''.join(f'{error:.3g}{unit}'.rjust(12) for error in shown)}")


def crowds(linux: Linux, options: argparse.Namespace) -> None:
    """Prints how many flows at once lie beside each other."""
    for link, count, size in CROWDS:
        for sender in ("reno", "cubic"):
            flow = Flow(link, SENDERS[sender], size, count=count)
            linux.carry_out([flow], options.repeats)
            [(_, simulated)] = simulate([flow])
            found = "; ".join(map(str, compare(linux.seen(flow, options.repeats), simulated)))
            print(f"{count} flows, {flow.name}: {found}", flush=True)


def messages(linux: Linux, options: argparse.Namespace) -> None:
    """Prints the delays of messages at a constant rate: a third of the capacity, close to it."""
    for rate in MESSAGE_RATES:
        for sender in ("cubic", "std"):
            flow = Flow(MESSAGE_LINK, SENDERS[sender], 1_000_000, messages=Messages(1000, rate))
            linux.carry_out([flow], options.repeats)
            [(_, simulated)] = simulate([flow])
            theirs = linux.seen(flow, options.repeats)
            delays = [
                "/".join(
                    f"{statistics.median(one.delay_ms(share) for one in arm):.2f}" for share in (0.5, 0.99)
                )
                for arm in (theirs, simulated)
            ]
            found = "; ".join(map(str, compare(theirs, simulated)))
            print(
                f"{MESSAGE_LINK.name} {sender}, {rate:g} Mbit/s in messages: p50/p99 {delays[0]} ms,"
                f" simulator {delays[1]} ms; {found}",
                flush=True,
            )


def links(cells: Cells) -> None:
    """Prints what the link of each kind of queue did with the same arrivals in both arms."""
    for link in link_alone.LINKS:
        with tempfile.TemporaryDirectory() as scratch:
            crossed = link_alone.cross(cells, link, Path(scratch))
        print(
            f"link alone, {link.name}: {crossed.packets.height} packets, {crossed.drops} dropped,"
            f" {crossed.otherwise_dropped} otherwise in the simulator; {crossed.otherwise_due} due at another"
            f" time, departure in fact p99 {crossed.late_p99_ns / 1e3:.0f} us later",
            flush=True,
        )


def chance(linux: Linux, options: argparse.Namespace) -> None:
    """Prints mean completion times where loss is random, over as many seeds, with their standard errors."""
    for link in LINKS:
        if not link.loss or link.name not in options.links:
            continue
        for sender in options.senders:
            flows = [Flow(link, SENDERS[sender], 1_000_000, seed=seed) for seed in range(1, SEEDS + 1)]
            linux.carry_out(flows, 1)
            pairs = [(linux.seen(flow, 1), simulated) for flow, simulated in simulate(flows)]
            means = [
                [
                    statistics.fmean(seen.completion_ns for seen in pair[arm]) / 1e9
                    for pair in pairs
                    if pair[0]
                ]
                for arm in (0, 1)
            ]
            error = sum(statistics.variance(arm) / len(arm) for arm in means) ** 0.5
            overall = [statistics.fmean(arm) for arm in means]
            limit = 2 * error + 0.02 * overall[0]
            mean = Finding.of("mean completion", [[one] for one in overall], limit, " s")
            print(
                f"{link.name} {sender}, {len(means[0])} seeds: {overall[0]:.3f} s,"
                f" simulator {overall[1]:.3f} s; {mean}",
                flush=True,
            )


def main() -> None:
    """Carries out the parts that were asked for."""
    parser = argparse.ArgumentParser(description="The simulator beside Linux, flow by flow")
    names = [link.name for link in LINKS]
    parser.add_argument(
        "--links", nargs="+", choices=names, default=names, metavar="LINK", help="these paths"
    )
    parser.add_argument("--senders", nargs="+", choices=ONE_BY_ONE, default=ONE_BY_ONE, help="these controls")
    parser.add_argument(
        "--sizes", nargs="+", type=int, choices=KILOBYTES, default=KILOBYTES, help="kB of a flow"
    )
    parser.add_argument("--repeats", type=int, default=3, help="times that Linux carries out each flow")
    parts = ["links", "flows", "crowds", "chance", "messages"]
    parser.add_argument("--only", choices=parts, help="only one part")
    parser.add_argument(
        "-o", "--output", type=Path, help="folder for what Linux did, the table, the overlays"
    )
    options = parser.parse_args()
    with Cells() as cells, tempfile.TemporaryDirectory() as scratch:
        folder = options.output or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        linux = Linux(cells, folder / "linux")
        if options.only in (None, "links"):
            links(cells)
        if options.only in (None, "flows"):
            one_by_one(linux, options, folder)
        if options.only in (None, "crowds"):
            crowds(linux, options)
        if options.only in (None, "chance"):
            chance(linux, options)
        if options.only in (None, "messages"):
            messages(linux, options)


if __name__ == "__main__":
    main()
