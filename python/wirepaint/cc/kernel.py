"""Scripts in the running kernel: timetables become transfers over the emulator, and their checks are
compared with what the kernel's sender did.

A check is looked at where the script looks: as the next acknowledgement found the sender (table
``tcp``), or, where natively none came next, when the sender was polled in that state. It is exact, or
one segment (or 1 %) or one acknowledgement off, which is counted by itself.
What a path cannot be told, and what cannot be seen, is not checked and says why.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.cc.outcome import Difference, Outcome
from wirepaint.errors import RunFailed
from wirepaint.results.trace import read_table
from wirepaint.runners.testbed.cells import Cells

AT_ONCE = 6
"""Connections in one cell: they mostly wait for round trips, and the machine has few cores."""
ATTEMPTS = 3
"""How often a transfer is carried out at most: only what differs each time is a difference, because a
busy machine delays an acknowledgement here and there, which no congestion control does."""
TOGETHER = 3
LATE_NS = 25_000_000
"""An application that is later than this may meet another sender than the script's did."""

_HEADERS_BYTES = 54
"""Ethernet, IP and TCP without options."""

Timetable = dict[str, Any]
Progress = Callable[[int, int], None]


def carry_out(timetables: dict[str, Timetable], progress: Progress) -> dict[str, Outcome]:
    """Carries out scripts, by file, and says how each went. Needs root."""
    outcomes = {file: Outcome() for file in timetables}
    todo: list[_Task] = []
    for file, timetable in timetables.items():
        for connection in timetable["connections"]:
            if connection["impossible"]:
                outcomes[file].skipped += [
                    f"line {connection['line']}: {why}" for why in connection["impossible"]
                ]
            elif connection["checks"]:
                todo.append(_Task(file, connection))
    total = len(todo)
    with Cells() as cells, tempfile.TemporaryDirectory() as folder:
        while todo:
            progress(total - len(todo), total)
            batch, todo = todo[:AT_ONCE], todo[AT_ONCE:]
            for task, observed in zip(batch, _together(cells, batch, Path(folder)), strict=True):
                task.attempts += 1
                seen = _Seen(task.connection, observed).judged()
                if not seen.passed and task.attempts < ATTEMPTS:
                    outcomes[task.file].repeated += 1
                    todo.append(task)
                else:
                    outcomes[task.file].add(seen)
    progress(total, total)
    return outcomes


@dataclass
class _Task:
    file: str
    connection: Timetable
    attempts: int = 0


@dataclass
class _Observed:
    """What a transfer showed: the answer of ``transfer.carry_out`` and the rows of its ACKs."""

    answer: dict[str, Any]
    acks: pl.DataFrame


def _together(cells: Cells, tasks: Sequence[_Task], folder: Path) -> list[_Observed]:
    folder = folder / secrets.token_hex(4)
    folder.mkdir()
    instances: list[dict[str, Any]] = []
    connections = [_asked(task.connection, instances) for task in tasks]
    log = folder / "cell.txt"
    try:
        answers = cells.call(
            "wirepaint.runners.testbed.transfer:carry_out",
            {"folder": str(folder), "congestion": instances, "connections": connections},
            timeout_s=60 + max(connection["limit_s"] for connection in connections),
            log=log,
        )
    except RunFailed as error:
        raise RunFailed(f"{error} ({', '.join(sorted({task.file for task in tasks}))})") from None
    return [
        _Observed(answer, _acks(folder / connection["name"]))
        for answer, connection in zip(answers, connections, strict=True)
    ]


def _acks(folder: Path) -> pl.DataFrame:
    rows = read_table(folder, "tcp").filter(pl.col("event") == "ack")
    # The SYN's own acknowledgement counts as one delivery.
    return rows.with_columns(pl.col("delivered") - 1)


def _asked(connection: Timetable, instances: list[dict[str, Any]]) -> dict[str, Any]:
    """The connection for ``transfer.carry_out``; adds the congestion controls that it needs."""

    def load(congestion: dict[str, Any]) -> str:
        name = f"{Path(congestion['algorithm']).stem[:9]}.{secrets.token_hex(3)[:5]}"
        instances.append(congestion | {"name": name})
        return name

    rtt_ns = connection["rtt_us"] * 1000
    # Full segments so far apart that each acknowledgement is answered before the next one comes.
    rate = round((connection["mss"] + _HEADERS_BYTES) * 8e6 / connection["spacing_us"])
    way = {"delay_ns": rtt_ns // 2, "queue": {"kind": "droptail"}}
    sysctls = {
        "tcp_slow_start_after_idle": int(connection["after_idle"]),
        "tcp_early_retrans": 3 if connection["tail_loss_probe"] else 0,
        "tcp_ecn": int(connection["ecn"]),
        # As the native sender: no timestamps (so 1448 is 1448), no F-RTO, an ACK for each segment.
        "tcp_timestamps": 0,
        "tcp_frto": 0,
        "tcp_comp_sack_nr": 0,
        # Or TCP Small Queues hold back segments for want of a finished transmission, which the native
        # sender does not know, and the window counts as unused.
        "tcp_pacing_ca_ratio": 1000,
        "tcp_pacing_ss_ratio": 1000,
        "tcp_rto_min_us": connection["rto_us"] - connection["rtt_us"],
    }
    return {
        "name": f"c{connection['line']}.{secrets.token_hex(3)}",
        "network": {
            "down": way | {"capacity": {"kind": "rate", "bit_per_s": rate}, "scripted": connection["down"]},
            "up": way | {"capacity": {"kind": "unlimited"}, "scripted": connection["up"]},
            "client_interface": "c1",
            "server_interface": "s1",
        },
        "rtt_ns": rtt_ns,
        "congestion": load(connection["congestion"]),
        "initial_window": connection["initial_window"],
        "mss": connection["mss"],
        "sysctls": {f"net.ipv4.{name}": str(value) for name, value in sysctls.items()},
        "acts": [
            act | ({"name": load(act["congestion"])} if act["kind"] == "switch" else {})
            for act in connection["acts"]
        ],
        "until": connection["until"],
        "limit_s": 15 + 1.5 * connection["until"]["us"] / 1e6,
    }


class _Seen:
    """One connection's checks against what its transfer showed."""

    def __init__(self, connection: Timetable, observed: _Observed) -> None:
        self._connection = connection
        self._answer, self._acks = observed.answer, observed.acks
        self._samples = self._answer["samples"]

    def _spoiled(self) -> str | None:
        """Why a difference may be the machine's, not the congestion control's."""
        if self._answer["late_ns"] > LATE_NS:
            return f"the application was {self._answer['late_ns'] / 1e6:.0f} ms late"
        if lost := self._answer["probe"]["lost"]:
            return f"{lost} samples of the kernel's TCP were lost"
        if unseen := self._answer["probe"].get("unseen"):
            return f"the kernel ran no BPF program for {unseen[0]['segments']} acknowledgements"
        if len(self._acks) and (first := self._acks["delivered"][0]) > 0:
            return f"the acknowledgements of the first {first} segments were not sampled"
        return None

    def judged(self) -> Outcome:
        """Every check compared."""
        outcome = Outcome()
        if self._answer["timed_out"]:
            last = self._samples[-1]
            until = self._connection["until"]
            outcome.differences.append(
                Difference(
                    self._connection["line"],
                    "open",
                    "progress",
                    f"{until['delivered']} segments delivered, {until['sent']} sent",
                    f"{last['delivered']} delivered, {last['sent']} sent, then nothing",
                )
            )
        for check in self._connection["checks"]:
            found = self._value(check)
            if found is None:
                outcome.skipped.append(
                    f"line {check['line']}: {check['key']} is not visible in the kernel there"
                )
                continue
            outcome.checks += 1
            if found.lower() == check["expected"].lower():
                continue
            if _nearly(check, found) or self._one_acknowledgement_off(check):
                outcome.nearly += 1
            else:
                outcome.differences.append(
                    Difference(check["line"], check["event"], check["key"], check["expected"], found)
                )
        if outcome.differences and (why := self._spoiled()):
            outcome.disturbed.append(f"line {self._connection['line']}: {why}")
        return outcome

    def _value(self, check: dict[str, Any]) -> str | None:
        """What the kernel shows of a check's key, as the script would write it; None where it cannot."""
        key = check["key"]
        if key == "cc":
            switches = [act for act in self._connection["acts"][: check["acts"]] if act["kind"] == "switch"]
            return self._answer["congestion"][len(switches)].partition(".")[0]
        if key == "rounds":
            return self._rounds()
        if key == "sent_kb":
            same = [row for row in self._samples if row["delivered"] == check["delivered"]]
            return str(same[-1]["bytes_sent"] // 1000) if same else None
        column = {"flight": "in_flight"}.get(key, key)
        row = self._row(check)
        if row is None:
            return f"never so ({check['delivered']} segments delivered, {check['sent']} sent)"
        if column not in row:
            return None
        return "inf" if column == "ssthresh" and row[column] is None else str(row[column])

    def _row(self, check: dict[str, Any]) -> dict[str, Any] | None:
        """The sender where the check looks at it."""
        # Two acknowledgements that wait for the sender together are processed as one.
        delivered = pl.col("delivered")
        acks = self._acks.filter(delivered.is_between(check["delivered"], check["delivered"] + TOGETHER))
        acks = acks.filter(delivered == delivered.min())
        found = acks.row(min(check["repeat"], acks.height - 1), named=True) if acks.height else None
        before_acts = self._answer["before_acts"]
        if check["until"] == "act":
            return self._polled(before_acts[check["acts"]]) if check["acts"] < len(before_acts) else None
        keys = ("delivered", "sent", "retransmitted")
        same = [n for n, row in enumerate(self._samples) if all(row[key] == check[key] for key in keys)]
        polled = self._polled(same[-1]) if same else None
        return polled or found if check["until"] == "timer" else found or polled

    def _one_acknowledgement_off(self, check: dict[str, Any]) -> bool:
        """Whether the state or a window is as expected one acknowledgement earlier or later."""
        column = {"flight": "in_flight"}.get(check["key"], check["key"])
        if column not in self._acks.columns or check["until"] != "arrival":
            return False
        near = (pl.col("delivered") - check["delivered"]).abs() == 1
        values = self._acks.filter(near)[column].to_list()
        return check["expected"].lower() in [str(value).lower() for value in values]

    def _polled(self, number: int) -> dict[str, Any]:
        return self._samples[number] | {"in_flight": self._samples[number]["flight"]}

    def _rounds(self) -> str | None:
        """Round trips from the first write to the last arrival, where nothing else was waited for."""
        if any(act["delivered"] or act["after_us"] for act in self._connection["acts"]):
            return None
        rtt_ns = self._connection["rtt_us"] * 1000
        return str(round((self._answer["arrivals"][-1][0] + rtt_ns / 2) / rtt_ns))


def _nearly(check: dict[str, Any], found: str) -> bool:
    """Whether a window is one segment off, or 1 % where it is large, as it is where growth overlaps the
    sampling: an acknowledgement was answered late, and its growth comes with a later one."""
    expected = check["expected"]
    if check["key"] not in ("cwnd", "ssthresh", "flight") or not (found.isdigit() and expected.isdigit()):
        return False
    return 0 < abs(int(found) - int(expected)) <= max(1, int(expected) // 100)
