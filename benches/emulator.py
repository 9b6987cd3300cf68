"""The emulator against a bare veth pair and, where installed, Mahimahi's mm-delay and mm-link.

    sudo .venv/bin/python benches/emulator.py [--json] [--seconds S]

One-way delay error: probes at half the rate, stamped by the kernel on arrival; the error is the
measured delay minus delay and transmission time. Figures to reach on a quiet machine: p50 10 µs,
p99 30 µs; rate within 0.1 %; 300,000 packets a second; 4 Gbit/s unshaped with one TCP flow.
Compare ratios: absolute figures belong to this machine at this moment.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mahimahi

from wirepaint.errors import RunFailed
from wirepaint.runners.testbed import namespaces
from wirepaint.runners.testbed.calibrate import ProbedPath, probed_path

NS = 1_000_000_000
FULL_BITS = 1514 * 8
RATES = (10_000_000, 100_000_000, 1_000_000_000)
DELAYS_MS = (13, 300)
QUEUE = {"kind": "droptail", "packets": 20_000}

Row = dict[str, Any]
AnyPath = ProbedPath | mahimahi.ShellPath


def direction(rate: int | None, delay_ms: float) -> dict[str, Any]:
    """One direction; ``rate`` in bit/s, None for no bottleneck."""
    capacity = {"kind": "unlimited"} if rate is None else {"kind": "rate", "bit_per_s": rate}
    return {"capacity": capacity, "delay_ns": round(delay_ms * 1e6), "queue": QUEUE}


@contextmanager
def bare() -> Iterator[ProbedPath]:
    """Client and server on one veth pair without an emulator, offloads off as in a run."""
    spaces = namespaces.Namespaces.create()
    try:
        namespaces.build(spaces, [], initial_window=10, emulated=False)
        yield ProbedPath(spaces)
    finally:
        spaces.close()


def delay_row(path: AnyPath, case: str, rate: int, delay_ms: float, transmits: bool, seconds: float) -> Row:
    """One-way delay error in µs of full packets at half the rate."""
    interval = 2 * FULL_BITS * NS // rate
    result = path.probe(
        "down",
        "stream",
        ip_bytes=1500,
        packets=max(int(seconds * NS) // interval, 20),
        interval_ns=interval,
        linger_ns=round(delay_ms * 1e6) + NS // 5,
        punctual=True,
    )
    nominal = delay_ms * 1e6 + (FULL_BITS * NS / rate if transmits else 0)
    error = {
        key: None if value is None else round((value - nominal) / 1000, 1)
        for key, value in result["delay"].items()
    }
    return {"case": case, "lost": result["sent"] - result["received"], **error}


def emulator_rows(seconds: float) -> Iterator[Row]:
    """Delay error, shaped rate, packets per second and TCP throughput through the emulator."""
    with probed_path() as path:
        for rate in RATES:
            for delay in DELAYS_MS:
                summaries: list[dict[str, Any]] = []
                with path.emulating(
                    down=direction(rate, delay), up=direction(rate, delay), summaries=summaries
                ):
                    row = delay_row(path, f"{rate // 10**6} Mbit/s, {delay} ms", rate, delay, True, seconds)
                late = summaries[0]["lateness"]
                busy = summaries[0]["cpu_time"] / summaries[0]["duration"]
                yield {
                    "tool": "wirepaint",
                    **row,
                    "late p99": round(late["p99"] / 1000, 1),
                    "cpu": f"{busy:.0%}",
                    "faults": summaries[0]["faults"],
                }


def rate_row(path: ProbedPath, rate: int, seconds: float) -> Row:
    """Rate of a flood a little above the rate, relative to what was asked."""
    interval = int(FULL_BITS * NS / rate / 1.1)
    with path.emulating(down=direction(rate, 13), up=direction(rate, 13)):
        result = path.probe(
            "down",
            "stream",
            ip_bytes=1500,
            packets=int(seconds * NS) // interval,
            interval_ns=interval,
            linger_ns=NS // 20,
        )
    span = result["last_arrival"] - result["first_arrival"]
    measured = (result["received"] - 1) * FULL_BITS * NS / span
    return {"case": f"rate {rate // 10**6} Mbit/s", "Mbit/s": measured / 1e6, "error": measured / rate - 1}


def packets_row(path: ProbedPath, seconds: float) -> Row:
    """Most small packets a second that all arrive, searched downwards from 500,000 offered."""
    for offered in (500_000, 400_000, 350_000, 300_000, 250_000, 200_000, 150_000, 100_000):
        summaries: list[dict[str, Any]] = []
        with path.emulating(down=direction(None, 1), up=direction(None, 1), summaries=summaries):
            packets = int(offered * seconds)
            result = path.probe(
                "down", "stream", packets=packets, interval_ns=NS // offered, linger_ns=NS // 5
            )
        sent_rate = packets * NS / (result["last_sent"] - result["first_sent"])
        if result["received"] == result["sent"] and not summaries[0]["faults"]:
            return {"case": "packets per second without loss", "offered": offered, "kpps": sent_rate / 1e3}
    return {"case": "packets per second without loss", "offered": offered, "kpps": 0.0}


def tcp_mbit_s(path: AnyPath, seconds: float) -> float:
    """Goodput of one TCP flow, server to client."""
    return path.tcp("down", int(seconds * NS), "cubic")["bit_per_s"] / 1e6


def throughput_rows(seconds: float) -> Iterator[Row]:
    """Shaped rate, packets per second, and TCP beside the bare pair."""
    with bare() as path:
        bare_tcp = tcp_mbit_s(path, seconds)
    yield {"tool": "bare veth", "case": "TCP unshaped", "Mbit/s": bare_tcp}
    with probed_path() as path:
        for rate in RATES:
            yield {"tool": "wirepaint", **rate_row(path, rate, seconds)}
        yield {"tool": "wirepaint", **packets_row(path, min(seconds, 1))}
        for delay in (0, 13):
            summaries: list[dict[str, Any]] = []
            with path.emulating(down=direction(None, delay), up=direction(None, delay), summaries=summaries):
                own = tcp_mbit_s(path, seconds)
            late = summaries[0]["lateness"]
            yield {
                "tool": "wirepaint",
                "case": f"TCP unshaped, {delay} ms",
                "Mbit/s": own,
                "of bare": own / bare_tcp,
                "late p50": round(late["p50"] / 1000, 1),
                "late p99": round(late["p99"] / 1000, 1),
                "faults": summaries[0]["faults"],
            }


def bare_rows(seconds: float) -> Iterator[Row]:
    """The cost of the measurement itself: the same probes without an emulator."""
    with bare() as path:
        for rate in RATES:
            yield {
                "tool": "bare veth",
                **delay_row(path, f"{rate // 10**6} Mbit/s pace", rate, 0, False, seconds),
            }


def mahimahi_rows(seconds: float) -> Iterator[Row]:
    """The same probes through mm-delay and mm-link."""
    for rate in RATES:
        for delay in DELAYS_MS:
            with mahimahi.path(rate, delay) as path:
                case = f"{rate // 10**6} Mbit/s, {delay} ms"
                yield {"tool": "mm-delay mm-link", **delay_row(path, case, rate, delay, False, seconds)}
    with mahimahi.path(None, 13) as path:
        yield {"tool": "mm-delay", "case": "TCP unshaped, 13 ms", "Mbit/s": tcp_mbit_s(path, seconds)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of one case")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print(
            "benches/emulator.py: needs root: network namespaces cannot be made without it", file=sys.stderr
        )
        return 2
    groups: list[Callable[[float], Iterator[Row]]] = [emulator_rows, bare_rows]
    if mahimahi.installed():
        groups.append(mahimahi_rows)
    else:
        print("mm-delay and mm-link are not installed: left out", file=sys.stderr)
    rows, failed = [], False
    for group in [*groups, throughput_rows]:
        try:
            for row in group(options.seconds):
                rows.append(row)
                print(text(row), file=sys.stderr if options.json else sys.stdout, flush=True)
        except RunFailed as error:
            print(f"{group.__name__}: {error}", file=sys.stderr)
            failed = True
    if options.json:
        print(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=1))
    return int(failed)


def text(row: Row) -> str:
    """One row for people; delay errors are µs."""
    tool, case, *values = row.items()
    cells = [
        f"{key} {f'{value:.6g}' if isinstance(value, float) else value}"
        for key, value in values
        if value != []
    ]
    return f"{tool[1]:18}{case[1]:32}" + "  ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
