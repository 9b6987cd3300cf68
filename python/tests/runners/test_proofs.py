"""For each possible contradiction between a run's records and what was asked there is a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from wirepaint.results import trace
from wirepaint.runners.testbed import proofs
from wirepaint.runners.testbed.join import Joined

from . import visits as v

RATE = 12_000_000
"""Bit/s of the path, 20 ms there and back; 15,000 bytes in the 10 ms of a sample."""


class Observed:
    """The records of one undisturbed run; each test changes one of them."""

    def __init__(self) -> None:
        side = {
            "capacity": {"kind": "rate", "bit_per_s": RATE},
            "delay_ns": 10_000_000,
            "queue": {"kind": "droptail", "packets": 100},
        }
        self.asked: dict[str, Any] = {
            "segments": [{"name": "access", "down": dict(side), "up": dict(side), "mtu": 1500}],
            "sites": {"sample": {"responses": [{"think_ns": 3_000_000}, *[{"think_ns": 0}] * 3]}},
            "transport": {"sysctls": {}},
        }
        self.before, self.after = v.settings(), v.settings()
        ends = {
            "client": v.counts(sent=30, received=40, received_bytes=40 * 1500, segments=30, opened=1),
            "server": v.counts(accepted=1),
        }
        self.ends, self.last = dict(ends), dict(ends)
        self.emulator: dict[str, Any] = {
            "down": {"received_packets": 40, "delivered_packets": 40, "delivered_bytes": 40 * 1514},
            "up": {"received_packets": 30, "delivered_packets": 30, "delivered_bytes": 30 * 66},
            "pauses": [{"length": 2_000_000, "at": v.ms(100)}],
        }
        self.server: dict[str, Any] = {
            "pauses": [{"length": 8_000_000, "at": v.ms(100)}, {"length": 90_000_000, "at": v.ms(800)}]
        }
        self.connection = {"host": v.HOST, "min_rtt": 20_200_000, "mss": 1448}
        self.requests = [
            {
                "site": "sample",
                "response": n,
                "url": str(n),
                "time": v.ms(50),
                "began": v.ms(50) + think + 20_000,
            }
            for n, think in enumerate((3_000_000, 0, 0, 0))
        ]
        self.link = [
            {
                "time": v.ms(10 * n),
                "direction": "down",
                "queue_packets": 40,
                "segment": "access",
                "queue_bytes": 60_000,
                "offered_packets": 10 * n,
                "offered_bytes": 15_000 * n,
                "delivered_bytes": 15_000 * n,
                "queue_drops": 0,
                "random_losses": 0,
            }
            for n in range(20)
        ]

    def check(self) -> list[proofs.Reason]:
        load = v.page_load()
        page = {"navigation_start": load.navigation_start, "load_event": load.load_event}
        tables: dict[str, Any] = {"connection": [self.connection], "page": [page]}
        span = load.navigation_start, load.load_event
        joined = Joined(tables, {}, {18: v.server_record()}, [], self.requests, span)
        frame = pl.DataFrame(self.link, schema=trace.polars_schema("link"))
        wires = proofs.Wires(self.before, self.after, self.ends, self.last)
        return list(
            proofs.prove(joined, self.asked, {"emulator": self.emulator, "server": self.server}, wires, frame)
        )


def test_an_undisturbed_run_proves_itself() -> None:
    assert Observed().check() == []


def _rate(factor: float) -> Callable[[Observed], None]:
    def disturb(o: Observed) -> None:
        for n, row in enumerate(o.link):
            row["delivered_bytes"] = round(factor * 15_000 * n)

    return disturb


def _end(end: str, **change: int) -> Callable[[Observed], None]:
    def disturb(o: Observed) -> None:
        o.ends[end], o.last[end] = replace(o.ends[end], **change), replace(o.last[end], **change)

    return disturb


def _late(milliseconds: float, *which: int) -> Callable[[Observed], None]:
    def disturb(o: Observed) -> None:
        for number in which:
            o.requests[number]["began"] += v.ms(milliseconds)

    return disturb


def _drops(o: Observed) -> None:
    o.link[-1]["queue_drops"] = 3


def _stranger(o: Observed) -> None:
    _end("client", opened=2)(o)
    _end("server", accepted=2)(o)


def _random(o: Observed) -> None:
    o.link[-1]["random_losses"] = 1


def _often(o: Observed) -> None:
    o.asked["segments"][0]["down"]["loss"] = {"kind": "independent", "probability": 0.001}
    o.link[-1]["random_losses"] = 30


CASES: list[tuple[Callable[[Observed], Any], str, str, str]] = [
    (
        lambda o: o.after.update({"server s0 MTU": "1000"}),
        "path",
        "invalid",
        "server s0 MTU: 1000 at the end",
    ),
    (lambda o: o.after.pop("server s0 MTU"), "path", "invalid", "None at the end"),
    (lambda o: o.after.update({"client c1 x": "1"}), "path", "invalid", "client c1 x: 1"),
    (_end("server", segments=45), "packets", "invalid", "5 segments that no device sent, at the server"),
    (_end("client", segments=28), "packets", "invalid", "2 packets that are not TCP's, at the client"),
    (_end("client", others=2, sent=32), "foreign_packets", "invalid", "2 packets of UDP or ICMP"),
    (_end("client", dropped=1), "packets", "invalid", "1 packets dropped by the client's device"),
    (
        lambda o: o.emulator["down"].update(received_packets=39),
        "packets",
        "invalid",
        "39 packets that entered",
    ),
    (lambda o: o.emulator["up"].update(delivered_packets=31), "packets", "invalid", "31 packets that left"),
    (
        lambda o: o.emulator["down"].update(delivered_bytes=40 * 1714),
        "packets",
        "invalid",
        "68000 bytes that left the emulator beside 14 of overhead",
    ),
    (_stranger, "foreign_packets", "invalid", "2 accepted at the server"),
    (
        _end("server", opened=1),
        "foreign_packets",
        "invalid",
        "1 connections opened and 1 accepted at the server",
    ),
    (_end("client", accepted=1), "foreign_packets", "invalid", "1 accepted at the client"),
    (_rate(0.5), "rate", "invalid", "-50.0 % of the asked rate down"),
    (_rate(1.05), "rate", "invalid", "+5.0 %"),
    (_drops, "losses", "invalid", "3 packets dropped down by a queue of at most 40 packets"),
    (_random, "losses", "invalid", "1 packets lost at random down"),
    (_often, "losses", "invalid", "30 of 190 packets lost"),
    (lambda o: o.connection.update(min_rtt=19_000_000), "round_trip", "invalid", "19.0 ms with a.test"),
    (lambda o: o.connection.update(min_rtt=25_000_000), "round_trip", "invalid", "25.0 ms at the least"),
    (lambda o: o.connection.update(mss=960), "segment_size", "invalid", "960 bytes"),
    (
        lambda o: o.emulator["pauses"][0].update(length=20_000_000),
        "emulator_pause",
        "suspect",
        "paused for 20.0 ms",
    ),
    (
        lambda o: o.server["pauses"][0].update(length=90_000_000),
        "server_pause",
        "suspect",
        "paused for 90.0 ms",
    ),
    (_late(2, 0, 1, 2), "think_time", "invalid", "half of the answers began 2.0 ms later"),
    (_late(57, 0), "think_time", "suspect", "60.0 ms for 0"),
]


@pytest.mark.parametrize(("disturb", "check", "severity", "found"), CASES)
def test_each_contradiction_is_found_by_its_check(
    disturb: Callable[[Observed], Any], check: str, severity: str, found: str
) -> None:
    observed = Observed()
    disturb(observed)
    reasons = observed.check()
    mine = [reason for reason in reasons if reason.check == check and found in reason.found]
    assert mine, reasons
    assert {reason.severity for reason in mine} == {severity}
    assert all(reason.expected for reason in mine)


def test_a_few_answers_have_no_median() -> None:
    observed = Observed()
    del observed.requests[1:]
    _late(2, 0)(observed)
    assert observed.check() == []


@pytest.mark.parametrize(("resets", "is_proved"), [(6, True), (5, True), (4, False), (0, False)])
def test_resets_of_a_proxy_that_no_route_takes_are_not_lost(resets: int, is_proved: bool) -> None:
    observed = Observed()
    _end("server", segments=45, resets=resets)(observed)
    assert (observed.check() == []) == is_proved


def test_an_accept_that_the_kernel_counted_twice_is_no_connection() -> None:
    observed = Observed()
    _end("server", accepted=3)(observed)
    assert observed.check() == []


def test_a_capacity_trace_is_proved_from_where_it_began() -> None:
    observed = Observed()
    # One opportunity a millisecond for 100 ms, then none for 100 ms; begun in the middle of the silence.
    times = [*range(1, 101), 200]
    capacity = {"kind": "trace", "opportunities_ms": times, "offset_ms": 150}
    observed.asked["segments"][0]["down"]["capacity"] = capacity
    for row, sent in zip(observed.link, [0] * 6 + [1504 * (1 + 10 * n) for n in range(10)], strict=False):
        row["delivered_bytes"] = sent
    observed.link = observed.link[:15]
    assert [r for r in observed.check() if r.check == "rate"] == []
    capacity["offset_ms"] = 0
    assert [r.check for r in observed.check() if r.check == "rate"] == ["rate"]
