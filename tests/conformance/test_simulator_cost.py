"""The simulator's cost of a packet in instructions, which are equal on any machine, unlike seconds."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from wirepaint import dataplane
from wirepaint.dataplane.description import Congestion, Flow, Host, Run, Segment

MOST_PER_HOP = 3_450
"""A quarter above what was measured (2,760): with one link each way, each hop is also a TCP endpoint's."""


def description(folder: Path, seconds: int) -> Run:
    """32 bulk flows over 100 Mbit/s and 100 ms one way, with a queue of one BDP."""
    link = {
        "capacity": {"kind": "rate", "bit_per_s": 100_000_000},
        "delay_ns": 100_000_000,
        "queue": {"kind": "droptail", "bytes": 2_500_000},
    }
    flows = [
        Flow(kind={"kind": "bulk"}, client=f"client{i}", server=f"server{i}", start_ns=i * 10_000_000)
        for i in range(32)
    ]
    hosts = [Host(name=flow.client, role="client", congestion="cc") for flow in flows]
    hosts += [Host(name=flow.server, role="server", congestion="cc") for flow in flows]
    return Run(
        id="cost",
        trace_dir=folder,
        work_dir=folder,
        hosts=hosts,
        segments=[Segment(down=link, up=link)],
        congestion=[Congestion(algorithm="cubic9438", name="cc")],
        flows=flows,
        until_ns=seconds * 10**9,
        tables=["host"],
    )


def counted(folder: Path, seconds: int) -> tuple[int, int]:
    """Instructions of the whole program, and packet-hops, for N simulated seconds."""
    run = description(folder, seconds).write()
    argv = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    argv += [str(dataplane.program()), "simulate", "--workers", "1", str(run)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    assert collected, done.stderr
    return int(collected[1]), json.loads(done.stdout)["packet_hops"]


def test_a_packet_hop_costs_no_more_instructions_than_it_did(tmp_path: Path) -> None:
    if "debug" in dataplane.program().resolve().parts:
        pytest.skip("the data plane is a debug build: `make setup` makes a release build")
    # The difference of two lengths leaves out what starting and writing cost.
    few, many = counted(tmp_path, 4), counted(tmp_path, 8)
    hops = many[1] - few[1]
    assert hops > 30_000
    assert (many[0] - few[0]) / hops <= MOST_PER_HOP
