"""Runs scripts in the running kernel: their timetables become transfers over the emulator, and their
checks are compared with the kernel's sender.

A check uses the same moment as the script: the sender's state at the next acknowledgement (table
``tcp``). If natively no acknowledgement came next, it uses a polled sample in that state. The value is
exact, or one segment (or 1 %) or one acknowledgement off; the latter are counted separately.
Checks that the path cannot reproduce, or that cannot be observed, are skipped with a reason.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.cc.outcome import Difference, Outcome
from wirepaint.errors import RunFailed
from wirepaint.printing import counted
from wirepaint.results.trace import read_table
from wirepaint.runners.testbed.cells import Cells
from wirepaint.runners.testbed.transfer import LOADING_S, server_address, server_network

AT_ONCE = 6
"""Transfers in one cell: they mostly wait for round trips, and the machine has few cores."""
ATTEMPTS, MOST_ATTEMPTS = 3, 6
"""Largest number of attempts at a transfer: undisturbed ones, and all. A deviation counts only if it occurs
each time, because a busy machine delays single acknowledgements, and a congestion control does not. The
first two run beside other transfers, later ones alone."""
TOGETHER = 3
"""Largest number of acknowledgements that may wait for the sender together."""
NEARLY = ("cwnd", "flight", "cwnd_sum")
MEASURED = ("westwood",)
"""Controls that set ssthresh from a measured rate; their ssthresh may be near, too."""
LATE_NS = 25_000_000
"""If the application is later, the sender may be in another state than in the script."""
PACKET_LATE_NS = 1_000_000
"""If a packet is later, it may come after an event that it should precede."""

_HEADERS_BYTES = 54
"""Ethernet, IP and TCP without options."""

Timetable = dict[str, Any]
Progress = Callable[[int, int], None]


def carry_out(timetables: dict[str, Timetable], progress: Progress) -> dict[str, Outcome]:
    """Carries out scripts, by file, and returns the outcome of each. Needs root."""
    outcomes = {file: Outcome() for file in timetables}
    todo: list[_Task] = []
    for file, timetable in timetables.items():
        for transfer in timetable["transfers"]:
            if transfer["impossible"]:
                outcomes[file].skipped += [
                    f"line {transfer['line']}: {why}" for why in transfer["impossible"]
                ]
            elif transfer["checks"]:
                todo.append(_Task(file, transfer))
    total = len(todo)
    with Cells() as cells, tempfile.TemporaryDirectory() as folder:
        while todo:
            progress(total - len(todo), total)
            at_once = 1 if todo[0].attempts >= ATTEMPTS - 1 else AT_ONCE
            batch, todo = todo[:at_once], todo[at_once:]
            for task, observed in zip(batch, _together(cells, batch, Path(folder)), strict=True):
                task.attempts += 1
                seen = _Seen(task.transfer, observed).judged()
                task.undisturbed += not seen.disturbed
                if not seen.passed and task.undisturbed < ATTEMPTS and task.attempts < MOST_ATTEMPTS:
                    outcomes[task.file].repeated += 1
                    todo.append(task)
                else:
                    outcomes[task.file].add(seen)
    progress(total, total)
    return outcomes


@dataclass
class _Task:
    file: str
    transfer: Timetable
    attempts: int = 0
    undisturbed: int = 0


@dataclass
class _Observed:
    """The observations of a transfer: the answer of ``transfer.carry_out``, the rows of its ACKs, and by
    place the name of each connection's congestion control."""

    answer: dict[str, Any]
    acks: pl.DataFrame
    asked: dict[str, Any]
    instances: _Instances


def _together(cells: Cells, tasks: Sequence[_Task], folder: Path) -> list[_Observed]:
    folder = folder / secrets.token_hex(4)
    folder.mkdir()
    instances = _Instances()
    transfers = [_asked(task.transfer, instances) for task in tasks]
    log = folder / "cell.txt"
    try:
        answers = cells.call(
            "wirepaint.runners.testbed.transfer:carry_out",
            {"folder": str(folder), "congestion": instances.loaded(), "transfers": transfers},
            timeout_s=LOADING_S + 60 + max(transfer["limit_s"] for transfer in transfers),
            log=log,
        )
    except RunFailed as error:
        raise RunFailed(f"{error} ({', '.join(sorted({task.file for task in tasks}))})") from None
    return [
        _Observed(answer, _acks(folder / transfer["name"], answer["start_ns"]), transfer, instances)
        for answer, transfer in zip(answers, transfers, strict=True)
    ]


class _Instances:
    """The congestion controls of a cell; equal ones are loaded once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, congestion: dict[str, Any]) -> str:
        """The name under which a congestion control is loaded."""
        name = f"{Path(congestion['algorithm']).stem[:9]}.{secrets.token_hex(3)[:5]}"
        return self._names.setdefault(json.dumps(congestion, sort_keys=True), name)

    def loaded(self) -> list[dict[str, Any]]:
        """The instances to load, for ``transfer.carry_out``."""
        return [json.loads(congestion) | {"name": name} for congestion, name in self._names.items()]


def _acks(folder: Path, start_ns: int) -> pl.DataFrame:
    rows = read_table(folder, "tcp").filter((pl.col("event") == "ack") & (pl.col("time") >= start_ns))
    # The SYN's own acknowledgement counts as one delivery.
    return rows.with_columns(pl.col("delivered") - 1)


def _asked(transfer: Timetable, instances: _Instances) -> dict[str, Any]:
    """The transfer for ``transfer.carry_out``."""
    rtt_ns = transfer["rtt_us"] * 1000
    mss = max(connection["mss"] for connection in transfer["connections"])
    # Full segments are so far apart that each acknowledgement is answered before the next one comes.
    rate = round((mss + _HEADERS_BYTES) * 8e6 / transfer["spacing_us"])
    way = {"delay_ns": rtt_ns // 2, "queue": {"kind": "droptail"}}
    sysctls = {
        "tcp_slow_start_after_idle": int(transfer["after_idle"]),
        "tcp_early_retrans": 3 if transfer["tail_loss_probe"] else 0,
        "tcp_ecn": int(transfer["ecn"]),
        # As the native sender: no timestamps (so 1448 is 1448), no F-RTO, an ACK for each segment.
        "tcp_timestamps": 0,
        "tcp_frto": 0,
        "tcp_comp_sack_nr": 0,
        # Otherwise TCP Small Queues hold back segments until earlier ones are transmitted, and the window
        # counts as unused. The native sender has no such limit.
        "tcp_pacing_ca_ratio": 1000,
        "tcp_pacing_ss_ratio": 1000,
        "tcp_rto_min_us": transfer["rto_us"] - transfer["rtt_us"],
    }
    return {
        "name": f"c{transfer['line']}.{secrets.token_hex(3)}",
        "path": {
            "down": way | {"capacity": {"kind": "rate", "bit_per_s": rate}, "scripted": transfer["down"]},
            "up": way | {"capacity": {"kind": "unlimited"}, "scripted": transfer["up"]},
        },
        "rtt_ns": rtt_ns,
        "connections": [
            connection | {"congestion": instances.name(connection["congestion"])}
            for connection in transfer["connections"]
        ],
        "sysctls": {f"net.ipv4.{name}": str(value) for name, value in sysctls.items()},
        "acts": [
            act | ({"name": instances.name(act["congestion"])} if act["kind"] == "switch" else {})
            for act in transfer["acts"]
        ],
        "until": transfer["until"],
        "limit_s": 15 + 1.5 * transfer["until"]["us"] / 1e6,
    }


class _Seen:
    """Compares one transfer's checks with its observations."""

    def __init__(self, transfer: Timetable, observed: _Observed) -> None:
        self._transfer, self._observed = transfer, observed
        self._answer = observed.answer
        self._acks = [
            observed.acks.filter(pl.col("server_address") == server_address(place, server=one["server"]))
            for place, one in enumerate(transfer["connections"])
        ]

    def _of(self, check: dict[str, Any]) -> dict[str, Any]:
        """The observations of a check's connection."""
        return self._answer["connections"][check["connection"]]

    def _spoiled(self) -> str | None:
        """Why the machine, not the congestion control, may have caused a difference; else None."""
        if self._answer["late_ns"] > LATE_NS:
            return f"the application was {self._answer['late_ns'] / 1e6:.0f} ms late"
        if (late_ns := self._answer["emulator"]["lateness"]["max"]) > PACKET_LATE_NS:
            return f"a packet was {late_ns / 1e6:.1f} ms late"
        if lost := self._answer["probe"]["lost"]:
            return f"{lost} samples of the kernel's TCP were lost"
        if unseen := self._answer["probe"].get("unseen"):
            segments = sum(gap["segments"] for gap in unseen)
            return (
                f"the kernel ran no BPF program for {counted(segments, 'segment') if segments else 'a timer'}"
            )
        for acks in self._acks:
            if len(acks) and (first := acks["delivered"][0]) > 0:
                return f"the acknowledgements of the first {first} segments were not sampled"
            # If the return path loses none, each segment has an acknowledgement of its own.
            together = acks.select(pl.col("delivered").diff().max()).item() or 0
            if together > TOGETHER and not self._transfer["up"]:
                return f"{together} segments were acknowledged together"
        return None

    def judged(self) -> Outcome:
        """Compares every check."""
        outcome = Outcome()
        if self._answer["timed_out"]:
            now = [connection["samples"][-1] for connection in self._answer["connections"]]
            outcome.differences.append(
                Difference(
                    self._transfer["line"],
                    "open",
                    "progress",
                    f"delivered, sent: {self._transfer['until']['reached']}",
                    f"{[[last['delivered'], last['sent']] for last in now]}, then nothing",
                )
            )
        for check in self._transfer["checks"]:
            found = self._value(check)
            if found is None:
                outcome.skipped.append(
                    f"line {check['line']}: {check['key']} is not visible in the kernel there"
                )
                continue
            outcome.checks += 1
            if found.lower() == check["expected"].lower():
                continue
            if self._nearly(check, found) or self._one_acknowledgement_off(check):
                outcome.nearly += 1
            else:
                outcome.differences.append(
                    Difference(check["line"], check["event"], check["key"], check["expected"], found)
                )
        if outcome.differences and (why := self._spoiled()):
            outcome.disturbed.append(f"line {self._transfer['line']}: {why}")
        return outcome

    def _value(self, check: dict[str, Any]) -> str | None:
        """The kernel's value for a check's key, in the script's notation; None if it has none."""
        key = check["key"]
        if "group" in check:
            return self._group(check)
        if key == "cc":
            switches = [
                act
                for act in self._transfer["acts"]
                if act["kind"] in ("write", "switch") and act["connection"] == check["connection"]
            ][: check["acts"]]
            number = sum(act["kind"] == "switch" for act in switches)
            return self._of(check)["congestion"][number].partition(".")[0]
        if key == "rounds":
            return self._rounds(check)
        if key == "sent_kb":
            same = [row for row in self._of(check)["samples"] if row["delivered"] == check["delivered"]]
            return str(same[-1]["bytes_sent"] // 1000) if same else None
        column = {"flight": "in_flight"}.get(key, key)
        row = self._row(check)
        if row is None:
            return f"never so ({check['delivered']} segments delivered, {check['sent']} sent)"
        if column not in row:
            return None
        return "inf" if column == "ssthresh" and row[column] is None else str(row[column])

    def _group(self, check: dict[str, Any]) -> str:
        """The checked number of a group; 0 if there is no such group."""
        group = check["group"]
        asked = {
            "congestion": self._observed.instances.name(group["congestion"]),
            "prefix": group["prefix"],
            "server": server_network(group["server"], ipv6=":" in group["prefix"]),
            "slot": group["slot"],
        }
        looks = self._answer["looks"]
        if group["look"] >= len(looks):
            return "never looked at"
        found = [one for one in looks[group["look"]] if asked.items() <= one.items()]
        return str(found[0][check["key"]]) if found else "0"

    def _row(self, check: dict[str, Any]) -> dict[str, Any] | None:
        """The sender's state at the moment of the check."""
        # The sender processes two acknowledgements that wait together as one.
        delivered = pl.col("delivered")
        acks = self._acks[check["connection"]].filter(
            delivered.is_between(check["delivered"], check["delivered"] + TOGETHER)
        )
        acks = acks.filter(delivered == delivered.min())
        found = acks.row(min(check["repeat"], acks.height - 1), named=True) if acks.height else None
        samples, before_acts = self._of(check)["samples"], self._of(check)["before_acts"]
        if check["until"] == "act":
            return _polled(samples[before_acts[check["acts"]]]) if check["acts"] < len(before_acts) else None
        keys = ("delivered", "sent", "retransmitted")
        same = [n for n, row in enumerate(samples) if all(row[key] == check[key] for key in keys)]
        polled = _polled(samples[same[-1]]) if same else None
        return polled or found if check["until"] == "timer" else found or polled

    def _nearly(self, check: dict[str, Any], found: str) -> bool:
        """Whether a window is one segment (a large one 1 %) off. This happens if growth overlaps the
        sampling: an acknowledgement was answered late, and its growth comes with a later one."""
        key, expected = check["key"], check["expected"]
        if key == "ssthresh" and "group" not in check:
            may = any(name.partition(".")[0] in MEASURED for name in self._of(check)["congestion"])
        else:
            may = key in NEARLY
        if not may or not (found.isdigit() and expected.isdigit()):
            return False
        return 0 < abs(int(found) - int(expected)) <= max(1, int(expected) // 100)

    def _one_acknowledgement_off(self, check: dict[str, Any]) -> bool:
        """Whether the state or a window has the expected value one acknowledgement earlier or later."""
        column = {"flight": "in_flight"}.get(check["key"], check["key"])
        if "group" in check or column not in self._observed.acks.columns or check["until"] != "arrival":
            return False
        near = (pl.col("delivered") - check["delivered"]).abs() == 1
        values = self._acks[check["connection"]].filter(near)[column].to_list()
        return check["expected"].lower() in [str(value).lower() for value in values]

    def _rounds(self, check: dict[str, Any]) -> str | None:
        """Round trips from the first write to the last arrival; None if an act waited for anything else."""
        if any(any(map(any, act["reached"])) or act["after_us"] for act in self._transfer["acts"]):
            return None
        rtt_ns = self._transfer["rtt_us"] * 1000
        return str(round((self._of(check)["arrivals"][-1][0] + rtt_ns / 2) / rtt_ns))


def _polled(sample: dict[str, Any]) -> dict[str, Any]:
    return sample | {"in_flight": sample["flight"]}
