"""Handovers and outages: what an evaluation says of them, and what they do on the simulator."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import network, plan
from wirepaint.results import Results
from wirepaint.runners import backends, pool
from wirepaint.runners.progress import Lines

TRAIN = """
title = "Train"
down = {{ rate = "25 Mbit/s", delay = "13 ms" }}
up = {{ rate = "25 Mbit/s", delay = "13 ms" }}
changes = [{changes}]
"""
S = 10**9


def written(folder: Path, changes: str) -> network.Network:
    (folder / "train.toml").write_text(TRAIN.format(changes=changes))
    return network.load(str(folder / "train.toml"))


def test_a_handover_brings_another_network_and_an_outage_goes_back_to_the_one_before(tmp_path: Path):
    changes = '{ at = "1 s", network = "3g" }, { at = "2 s", outage = "500 ms" }'
    down = written(tmp_path, changes).direction("down")["changes"]
    other = network.load("3g").direction("down")
    assert [change["at_ns"] for change in down] == [S, 2 * S, 2 * S + S // 2]
    assert (down[0]["capacity"], down[0]["delay_ns"]) == (other["capacity"], other["delay_ns"])
    assert down[1] == {"at_ns": 2 * S, "capacity": {"kind": "rate", "bit_per_s": 0}}
    assert down[2]["capacity"] == other["capacity"]


FAULTS = {
    '{ at = "1 s" }': r"changes\[0\]: found neither; accepted: network or outage",
    '{ at = "1 s", outage = "2 s" }, { at = "2 s", network = "3g" }':
        "changes: found an overlap; accepted: each after the end of the one before",
    '{ at = "1 s", network = "4gg" }': r"changes\[0\].network: found \"4gg\"",
}  # fmt: skip


@pytest.mark.parametrize("changes", FAULTS)
def test_each_fault_is_one_sentence(changes: str, tmp_path: Path):
    with pytest.raises(UsageError, match=FAULTS[changes]):
        written(tmp_path, changes)


def test_a_flow_stands_still_in_an_outage_and_goes_on_at_the_new_rate(tmp_path: Path):
    (tmp_path / "train.toml").write_text(
        TRAIN.format(changes='{ at = "2 s", outage = "1 s" }, { at = "3 s", network = "3g" }')
    )
    (tmp_path / "evaluation.toml").write_text(
        """
title = "Train"
backend = "simulator"
warmup = false
repeats = 1
duration = "8 s"
[scenarios]
network = ["./train.toml"]
[[flows]]
name = "download"
bulk = "endless"
"""
    )
    pool.carry_out(plan(tmp_path / "evaluation.toml"), tmp_path / "results", [backends.simulator()], Lines())
    flow = Results.open(tmp_path / "results").all("flow").with_columns(second=(pl.col("time") - 1) // S)
    by_second = dict(flow.group_by("second").agg(pl.col("received_bytes").sum() * 8 / 1e6).iter_rows())
    rate = network.load("3g").rate("down")
    assert rate is not None
    assert by_second[1] == pytest.approx(25 * 1448 / 1514, rel=0.05)
    assert by_second[2] < 1.5  # what was under way
    assert by_second[7] == pytest.approx(rate * 1448 / 1514 / 1e6, rel=0.1)
