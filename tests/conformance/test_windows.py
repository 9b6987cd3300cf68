"""The exact windows of the congestion controls, in the running kernel, over the emulator.

The same expectations as congestion/scripts, whose names are in the docstrings.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from conftest import MS, Transfer

Carry = Callable[..., Transfer]
STANDARD = {"net.ipv4.tcp_slow_start_after_idle": "0"}
RTT = 100 * MS


@pytest.mark.timed
def test_fld_triples_its_window_each_round_trip(transfer: Carry) -> None:
    """FLD-1: 10, 30, 90, 270 segments per round trip."""
    seen = transfer("fld", [(0, 400 + 810)])
    assert seen.windows_at(10, 40, 130, 400) == [30, 90, 270, 810]
    sent = [seen.data_sent(n * RTT, (n + 1) * RTT - 1) for n in range(5)]
    assert sent == [10, 30, 90, 270, 810]


@pytest.mark.timed
def test_std_doubles_its_window_each_round_trip(transfer: Carry) -> None:
    """STD-1: 10, 20, 40, 80, 160, 320, 640 segments per round trip."""
    seen = transfer("std", [(0, 1270)], sysctls=STANDARD)
    assert seen.windows_at(10, 30, 70, 150, 310, 630) == [20, 40, 80, 160, 320, 640]
    sent = [seen.data_sent(n * RTT, (n + 1) * RTT - 1) for n in range(7)]
    assert sent == [10, 20, 40, 80, 160, 320, 640]


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize(
    ("segments", "fld", "std"),
    [(34, 2, 3), (67, 3, 3), (130, 3, 4), (200, 4, 5), (334, 4, 6), (667, 5, 7), (1200, 5, 7)],
)
def test_round_trips_that_a_flow_needs(transfer: Carry, segments: int, fld: int, std: int) -> None:
    """FLD-2, in segments: the paper's sizes are 50 kB to 1.8 MB in segments of 1500 bytes."""
    needed = {}
    for name, sysctls in (("fld", {}), ("std", STANDARD)):
        arrivals = transfer(name, [(0, segments)], sysctls=sysctls).answer["arrivals"]
        needed[name] = round((arrivals[-1][0] + RTT / 2) / RTT)
    assert needed == {"fld": fld, "std": std}


def three_losses(transfer: Carry, **more: object) -> Transfer:
    """Three segments of a flight of 100 are lost, nothing else; then bulk data.

    Flights of 30 segments first let the receiver's window grow and leave cwnd alone (they use
    less than a third of it). Then three segments meet a path that loses everything, and the rest of
    the flight one that is whole again; the round trip of 200 ms leaves time for both.
    """
    warm = [(n * 200 * MS, 30) for n in range(6)]
    loss = 1600 * MS
    start = 500 * MS  # parts.START_NS
    changes = [
        {"at_ns": start + loss - 30 * MS, "loss": {"kind": "independent", "probability": 1.0}},
        {"at_ns": start + loss + 30 * MS, "loss": {"kind": "none"}},
    ]
    seen = transfer(
        "fld",
        [*warm, (loss, 3), (loss + 60 * MS, 900)],
        initial_window=100,
        rtt=200 * MS,
        changes=changes,
        **more,
    )
    lost = seen.packets.filter(pl.col("dropped").is_not_null())
    assert lost.height == 3, "the test's own timing: exactly the first three segments were to be lost"
    return seen


def after_recovery(seen: Transfer) -> tuple[int, int, list[int]]:
    """ssthresh after the episode, cwnd at its end, and the windows from there on."""
    first = seen.tcp.filter((pl.col("event") == "state") & (pl.col("state") == "Recovery"))
    assert first.height == 1
    later = seen.acks().filter(pl.col("time") > first["time"][0])
    done = later.filter(pl.col("state") == "Open")
    windows = done["cwnd"].unique(maintain_order=True).to_list()
    return done["ssthresh"][0], done["cwnd"][0], windows


@pytest.mark.timed
def test_fld_loses_only_what_was_lost(transfer: Carry) -> None:
    """FLD-3: 3 of 100 lost: ssthresh = cwnd = 97, then 98, 99, 100, 101, one per round trip."""
    seen = three_losses(transfer)
    entered = seen.tcp.filter(pl.col("state") == "Recovery")
    assert entered["ssthresh"].unique().to_list() == [97]
    ssthresh, cwnd, windows = after_recovery(seen)
    assert (ssthresh, cwnd) == (97, 97)
    assert windows[:5] == [97, 98, 99, 100, 101]
    steps = (
        seen.acks()
        .filter((pl.col("state") == "Open") & (pl.col("ssthresh") == 97))
        .group_by("cwnd", maintain_order=True)
        .agg(pl.col("acked").min())
    )
    assert steps["acked"].diff().to_list()[2:5] == [98, 99, 100]  # a window of acknowledged segments each


@pytest.mark.timed
def test_fld_halves_once_the_flow_is_long(transfer: Carry) -> None:
    """FLD-4: the same loss beyond the threshold: 50. The threshold is a parameter of the instance."""
    seen = three_losses(transfer, parameters={"fld_threshold": 200_000})
    ssthresh, cwnd, windows = after_recovery(seen)
    assert (ssthresh, cwnd) == (50, 50)
    assert windows[:3] == [50, 51, 52]


@pytest.mark.timed
def test_std_restarts_from_its_initial_window_after_idle(transfer: Carry) -> None:
    """STD-3: the first flight after 1.2 s of silence is the restart window, not cwnd."""
    idle = 2000 * MS
    seen = transfer("std", [(0, 310), (idle, 150)], sysctls=STANDARD)
    before = seen.acks().filter(pl.col("time") < idle)["cwnd"][-1]
    assert before >= 150
    assert seen.data_sent(idle, idle + RTT - 1) == 10
    assert seen.windows_at(320) == [20]


@pytest.mark.timed
def test_std_grows_while_the_application_is_the_limit(transfer: Carry) -> None:
    """STD-2: one segment each 120 ms: 11, 12, ... 40 after 30 segments."""
    seen = transfer("std", [(n * 120 * MS, 1) for n in range(31)], sysctls=STANDARD)
    assert seen.windows_at(*range(1, 31)) == list(range(11, 41))


@pytest.mark.timed
def test_changing_the_congestion_control_of_a_living_connection_keeps_its_window(transfer: Carry) -> None:
    """fld-switch.ack: the window stays, the growth changes."""
    switch = 2 * RTT + RTT // 2
    seen = transfer("std", [(0, 70 + 80)], sysctls=STANDARD, beside=("fld",), switches=[(switch, "fld")])
    assert seen.answer["congestion_before"].startswith("std.")
    assert seen.answer["congestion_after"].startswith("fld.")
    assert seen.windows_at(10, 30, 70) == [20, 40, 40 + 2 * 40]


def test_the_connection_uses_what_was_asked_for_and_no_sample_is_lost(transfer: Carry) -> None:
    seen = transfer("fld", [(0, 100)])
    assert seen.answer["congestion_before"] == seen.answer["congestion_after"]
    assert seen.answer["congestion_after"].startswith("fld.")
    assert seen.answer["probe"]["lost"] == 0
    assert seen.answer["probe"]["samples"] == seen.tcp.height > 50
    assert seen.tcp["server_port"].unique().to_list() == [5001]
