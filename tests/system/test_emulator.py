"""The emulator between two namespaces: what goes in comes out as the model says, and it is counted."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from wirepaint import dataplane
from wirepaint.results import trace
from wirepaint.runners.testbed import namespaces
from wirepaint.runners.testbed.calibrate import ProbedPath
from wirepaint.runners.testbed.process import Part

pytestmark = pytest.mark.usefixtures("root")

MS = 1_000_000
FULL_WIRE = 1514


def direction(rate: int | None = None, delay_ms: int = 0, **more: Any) -> dict[str, Any]:
    capacity = {"kind": "unlimited"} if rate is None else {"kind": "rate", "bit_per_s": rate}
    queue = {"kind": "droptail", "packets": 1000}
    return {"capacity": capacity, "delay_ns": delay_ms * MS, "queue": queue, **more}


class Emulation:
    """A path with a running emulator."""

    def __init__(self, spaces: namespaces.Namespaces, folder: Path, network: dict[str, Any]) -> None:
        self.spaces = spaces
        self.path = ProbedPath(spaces)
        self.trace_dir = folder
        self.epoch_ns = time.monotonic_ns()
        run = {
            "format": 1,
            "id": "emutest",
            "seed": 7,
            "epoch_ns": self.epoch_ns,
            "trace_dir": str(folder),
            "work_dir": str(folder),
            "network": {"client_interface": "c1", "server_interface": "s1", **network},
        }
        file = folder / "run.json"
        file.write_text(json.dumps(run))
        self._log = (folder / "log").open("w+")
        self.part = Part(["emulate"], file, self._log, spaces.wire)
        self.part.wait_ready()

    def stop(self) -> dict[str, Any]:
        return self.part.stop()

    def close(self) -> None:
        self.part.kill()
        self._log.close()


@contextmanager
def emulation(folder: Path, **network: Any) -> Iterator[Emulation]:
    spaces = namespaces.Namespaces.create()
    running = None
    try:
        namespaces.build(spaces, [], initial_window=10)
        running = Emulation(spaces, folder, network)
        yield running
    finally:
        if running:
            running.close()
        spaces.close()


def test_a_packet_takes_its_transmission_time_and_the_delay(tmp_path: Path) -> None:
    with emulation(tmp_path, down=direction(10_000_000, 13), up=direction()) as running:
        result = running.path.probe(
            "down", "stream", packets=100, ip_bytes=1500, interval_ns=5 * MS, linger_ns=300 * MS
        )
        summary = running.stop()
    assert result["received"] == 100
    nominal = 13 * MS + FULL_WIRE * 8 * 100
    # Generous towards a loaded machine; benches/emulator.py measures how close it comes.
    assert nominal <= result["delay"]["min"] < nominal + 200_000
    assert nominal <= result["delay"]["p50"] < nominal + 500_000
    assert summary["lateness"]["packets"] == 100
    assert summary["faults"] == []


def test_every_packet_is_delivered_dropped_by_cause_or_still_inside(tmp_path: Path) -> None:
    lossy = direction(
        5_000_000,
        10,
        queue={"kind": "droptail", "packets": 20},
        loss={"kind": "independent", "probability": 0.1},
    )
    with emulation(tmp_path, down=lossy, up=direction(), packet_trace=True) as running:
        result = running.path.probe(
            "down", "stream", packets=1000, ip_bytes=1500, interval_ns=MS, linger_ns=200 * MS
        )
        summary = running.stop()
    down = summary["down"]
    assert down["received_packets"] == down["offered_packets"] == 1000
    assert down["queue_drops"] > 0 and 50 < down["random_losses"] < 150
    dropped = down["queue_drops"] + down["random_losses"]
    assert down["delivered_packets"] == result["received"] == 1000 - dropped
    assert down["inside_packets"] == 0
    assert summary["faults"] == []

    packets = trace.read_table(tmp_path, "packet")
    assert packets.height == 1000
    causes = dict(packets.group_by("dropped").len().iter_rows())
    assert causes == {
        None: result["received"],
        "queue": down["queue_drops"],
        "loss": down["random_losses"],
    }
    delivered = packets.filter(pl.col("dropped").is_null())
    assert (delivered["time_out"] >= delivered["time_due"]).all()
    assert (delivered["time_due"] - delivered["time_in"] >= 10 * MS).all()
    assert packets["wire_bytes"].unique().to_list() == [FULL_WIRE]
    assert packets["payload_bytes"].unique().to_list() == [1472]
    assert packets["source_address"].unique().to_list() == [namespaces.SERVER_ADDRESS]


def test_the_table_link_samples_both_directions_at_even_times(tmp_path: Path) -> None:
    with emulation(tmp_path, down=direction(5_000_000, 10), up=direction()) as running:
        running.path.probe("down", "stream", packets=300, ip_bytes=1500, interval_ns=0, linger_ns=800 * MS)
        summary = running.stop()
    link = trace.read_table(tmp_path, "link")
    down = link.filter(pl.col("direction") == "down")
    assert down.height == link.height // 2
    # The last sample is of the end.
    assert down["time"][:-1].diff().drop_nulls().unique().to_list() == [10 * MS]
    # 299 wait, one is in transmission; 5 Mbit/s take one of them every 2.4 ms.
    assert 200 <= (down["queue_packets"].max() or 0) <= 299
    assert down["queue_bytes"].max() == (down["queue_packets"].max() or 0) * FULL_WIRE
    assert down["delivered_packets"][-1] == summary["down"]["delivered_packets"] == 300
    assert down["delivered_bytes"][-1] == 300 * FULL_WIRE


def test_a_scheduled_change_takes_effect_at_its_time(tmp_path: Path) -> None:
    changing = direction(None, 5, changes=[{"at_ns": 700 * MS, "delay_ns": 40 * MS}])
    with emulation(tmp_path, down=changing, up=direction(), packet_trace=True) as running:
        running.path.probe("down", "stream", packets=120, interval_ns=10 * MS, linger_ns=300 * MS)
        running.stop()
    packets = trace.read_table(tmp_path, "packet")
    delay = packets["time_due"] - packets["time_in"]
    before = packets["time_in"] < 700 * MS
    assert delay.filter(before).unique().to_list() == [5 * MS]
    assert delay.filter(~before).unique().to_list() == [40 * MS]
    assert 0 < before.sum() < 120


def test_an_ecn_capable_packet_arrives_marked_instead_of_being_dropped(tmp_path: Path) -> None:
    marking = direction(
        2_000_000, 1, queue={"kind": "codel", "target_ns": MS, "interval_ns": 5 * MS, "ecn": True}
    )
    with emulation(tmp_path, down=marking, up=direction()) as running:
        with running.spaces.inside(running.spaces.client):
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with running.spaces.inside(running.spaces.server):
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with receiver, sender:
            receiver.bind((namespaces.CLIENT_ADDRESS, 0))
            receiver.settimeout(5)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0b10)  # ECT(0)
            for _ in range(100):
                sender.sendto(bytes(1000), receiver.getsockname())
            classes = []
            for _ in range(100):
                _, control, _, _ = receiver.recvmsg(2000, 100)
                classes.append(control[0][2][0] & 0b11)
        summary = running.stop()
    # That they arrive at all shows that the header checksum was mended.
    assert summary["down"]["ecn_marks"] == classes.count(0b11) > 0
    assert summary["down"]["aqm_drops"] == 0


def test_a_frame_above_the_mtu_is_a_fault(tmp_path: Path) -> None:
    with emulation(tmp_path, down=direction(), up=direction(), mtu=1000) as running:
        running.path.probe("down", "stream", packets=5, ip_bytes=1500, interval_ns=MS, linger_ns=50 * MS)
        summary = running.stop()
    assert summary["down"]["oversized"] == 5
    assert {"check": "frames above the MTU", "direction": "down", "packets": 5} in summary["faults"]


def test_tcp_through_the_emulator_is_never_merged_and_nothing_is_lost_outside_the_model(
    tmp_path: Path,
) -> None:
    with emulation(tmp_path, down=direction(100_000_000, 5), up=direction(100_000_000, 5)) as running:
        result = running.path.tcp("down", 1_500 * MS, "cubic")
        summary = running.stop()
    # 1448 of 1514 bytes are payload; a loaded machine may leave the link idle at times.
    assert 0.7 * 100e6 < result["bit_per_s"] < 100e6 * 1448 / 1514 * 1.01
    assert summary["down"]["oversized"] == summary["down"]["unfinished_checksums"] == 0
    assert summary["faults"] == []


def test_what_the_model_cannot_carry_out_ends_in_one_line_with_exit_code_2(tmp_path: Path) -> None:
    run = {
        "format": 1,
        "id": "bad",
        "seed": 1,
        "trace_dir": str(tmp_path),
        "work_dir": str(tmp_path),
        "network": {
            "down": direction(loss={"kind": "independent", "probability": 2}),
            "up": direction(),
            "client_interface": "c1",
            "server_interface": "s1",
        },
    }
    file = tmp_path / "run.json"
    file.write_text(json.dumps(run))
    done = subprocess.run([dataplane.program(), "emulate", file], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == f"{file}: network.down.loss.probability: found 2, accepted: 0 to 1"


def test_an_interface_that_is_missing_is_named(tmp_path: Path) -> None:
    spaces = namespaces.Namespaces.create()
    try:
        run = {
            "format": 1,
            "id": "bare",
            "seed": 1,
            "trace_dir": str(tmp_path),
            "work_dir": str(tmp_path),
            "network": {
                "down": direction(),
                "up": direction(),
                "client_interface": "c1",
                "server_interface": "s1",
            },
        }
        file = tmp_path / "run.json"
        file.write_text(json.dumps(run))
        with spaces.inside(spaces.wire):
            done = subprocess.run(
                [dataplane.program(), "emulate", file], capture_output=True, text=True, check=False
            )
    finally:
        spaces.close()
    assert done.returncode == 1
    assert done.stderr.startswith("interface c1: ")
    assert os.linesep not in done.stderr.strip()
