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
from pyroute2 import IPRoute

from wirepaint import dataplane
from wirepaint.dataplane.description import Interfaces, Run, Segment
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
        path = Segment(**network, interfaces=Interfaces())
        file = Run(
            id="emutest",
            seed=7,
            epoch_ns=self.epoch_ns,
            trace_dir=folder,
            work_dir=folder,
            segments=[path],
        ).write()
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


@contextmanager
def datagrams(running: Emulation) -> Iterator[tuple[socket.socket, socket.socket]]:
    """UDP sockets of the server, which sends, and of the client, which receives."""
    with running.spaces.inside(running.spaces.client):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with running.spaces.inside(running.spaces.server):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with receiver, sender:
        receiver.bind((namespaces.CLIENT_ADDRESS, 0))
        receiver.settimeout(5)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        sender.connect(receiver.getsockname())
        yield sender, receiver


def receive(receiver: socket.socket) -> tuple[bytes, int]:
    """The next datagram and its ECN field (RFC 3168)."""
    data, control, _, _ = receiver.recvmsg(2000, 100)
    return data, control[0][2][0] & 0b11


@pytest.mark.timed
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


@pytest.mark.timed
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
    # The kernel may drop some of a burst before they reach the emulator.
    received = summary["down"]["received_packets"]
    assert down["delivered_packets"][-1] == summary["down"]["delivered_packets"] == received >= 250
    assert down["delivered_bytes"][-1] == received * FULL_WIRE


@pytest.mark.timed
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


@pytest.mark.timed
def test_a_script_drops_holds_and_marks_exactly_the_packets_that_it_names(tmp_path: Path) -> None:
    script = [
        {"nth": 2, "action": {"kind": "drop"}},
        {"nth": 4, "action": {"kind": "hold", "extra_ns": 100 * MS}},
        {"nth": 5, "action": {"kind": "mark"}},
        {"nth": 6, "action": {"kind": "mark"}},
    ]
    with (
        emulation(tmp_path, down=direction(delay_ms=20, scripted=script), up=direction()) as running,
        datagrams(running) as (sender, receiver),
    ):
        sender.send(b"")  # carries no payload: does not count
        for number in range(1, 8):
            # The sixth is not ECN-capable: a mark does nothing to it.
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0 if number == 6 else 0b10)
            sender.send(bytes([number]))
        arrived = [receive(receiver) for _ in range(7)]
        summary = running.stop()
    assert [data[0] for data, _ in arrived if data] == [1, 3, 5, 6, 7, 4]
    assert [data[0] for data, ecn in arrived if ecn == 0b11] == [5]
    assert (summary["down"]["random_losses"], summary["down"]["ecn_marks"]) == (1, 1)
    assert summary["faults"] == []


def test_scripted_acknowledgements_are_lost_without_harm_to_the_data(tmp_path: Path) -> None:
    """ACK thinning: every second of the first pure acknowledgements; SYN and FIN pass."""
    thinned = [{"what": "bare", "nth": nth, "action": {"kind": "drop"}} for nth in range(2, 21, 2)]
    with emulation(
        tmp_path, down=direction(10_000_000, 5), up=direction(delay_ms=5, scripted=thinned), packet_trace=True
    ) as running:
        running.path.tcp("down", 500 * MS, "cubic")
        summary = running.stop()
    up = trace.read_table(tmp_path, "packet").filter(pl.col("direction") == "up").sort("time_in")
    bare = up.filter(pl.col("flags") == "A")["dropped"].to_list()
    assert bare[:22] == [None, "loss"] * 10 + [None, None]
    assert summary["up"]["random_losses"] == 10
    assert summary["faults"] == []


def test_an_ecn_capable_packet_arrives_marked_instead_of_being_dropped(tmp_path: Path) -> None:
    marking = direction(
        2_000_000, 1, queue={"kind": "codel", "target_ns": MS, "interval_ns": 5 * MS, "ecn": True}
    )
    with emulation(tmp_path, down=marking, up=direction()) as running:
        with datagrams(running) as (sender, receiver):
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0b10)  # ECT(0)
            for _ in range(100):
                sender.send(bytes(1000))
            classes = [receive(receiver)[1] for _ in range(100)]
        summary = running.stop()
    # That they arrive at all shows that the header checksum was mended.
    assert summary["down"]["ecn_marks"] == classes.count(0b11) > 0
    assert summary["down"]["aqm_drops"] == 0


@pytest.mark.timed
def test_the_first_class_goes_before_the_rest_which_gets_what_is_left(tmp_path: Path) -> None:
    """Voice (DSCP 46, RFC 3246) takes 40 % of the link, others offer 120 % of it."""
    frame_ns = (1000 + 28 + 14) * 8 * 1000
    classes = [{"dscp": [46], "packets": 5}, {"priority": 1, "packets": 20}]
    shared = direction(1_000_000, queue={"kind": "classes", "classes": classes})
    rounds, codes = 25, (0, 0, 46, 0)
    with (
        emulation(tmp_path, down=shared, up=direction(), packet_trace=True) as running,
        datagrams(running) as (sender, receiver),
    ):
        for _ in range(rounds):
            for dscp in codes:
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
                sender.send(bytes([dscp]) + bytes(999))
            time.sleep(frame_ns / 0.4e9)
        time.sleep(40 * frame_ns / 1e9)
        running.stop()
        packets = trace.read_table(tmp_path, "packet").filter(pl.col("payload_bytes") == 1000)
        arrived = [receive(receiver)[0][0] for _ in range(packets["time_due"].count())]
    packets = packets.sort("time_in").with_columns(
        dscp=pl.Series(codes * rounds), waited=pl.col("time_due") - pl.col("time_in")
    )
    first, rest = packets.filter(dscp=46), packets.filter(dscp=0)
    assert arrived.count(46) == first["time_due"].count() == rounds
    # Only the packet in transmission goes before one of the first class.
    assert first.filter(pl.col("waited").is_between(frame_ns, 2 * frame_ns)).height == rounds
    assert rest.filter(pl.col("waited") > 20 * frame_ns).height > 0
    assert rest["dropped"].count() > rounds / 2
    assert rest["time_due"].drop_nulls().is_sorted()


def test_a_frame_above_the_mtu_is_a_fault(tmp_path: Path) -> None:
    with emulation(tmp_path, down=direction(), up=direction(), mtu=1000) as running:
        running.path.probe("down", "stream", packets=5, ip_bytes=1500, interval_ns=MS, linger_ns=50 * MS)
        summary = running.stop()
    assert summary["down"]["oversized"] == 5
    assert {"check": "frames above the MTU", "direction": "down", "packets": 5} in summary["faults"]


def test_what_the_far_interface_refuses_is_no_delivery(tmp_path: Path) -> None:
    with emulation(tmp_path, down=direction(), up=direction(), packet_trace=True) as running:
        with running.spaces.inside(running.spaces.wire), IPRoute() as ip:
            [index] = ip.link_lookup(ifname="c1")
            ip.link("set", index=index, mtu=600)
        running.path.probe("down", "stream", packets=5, ip_bytes=1500, interval_ns=MS, linger_ns=50 * MS)
        result = running.path.probe(
            "down", "stream", packets=3, ip_bytes=500, interval_ns=MS, linger_ns=200 * MS
        )
        summary = running.stop()
    down = summary["down"]
    assert (down["offered_packets"], down["delivered_packets"], result["received"]) == (8, 3, 3)
    assert summary["faults"] == [{"check": "send failures", "direction": "down", "packets": 5}]
    packets = trace.read_table(tmp_path, "packet")
    assert packets.sort("time_in")["dropped"].to_list() == ["host"] * 5 + [None] * 3
    assert packets.filter(pl.col("dropped") == "host")["time_out"].null_count() == 5
    link = trace.read_table(tmp_path, "link").filter(pl.col("direction") == "down")
    assert link["delivered_packets"][-1] == 3


def test_tcp_over_a_path_that_is_dead_or_dies_ends_by_itself(tmp_path: Path) -> None:
    outage = {"capacity": {"kind": "rate", "bit_per_s": 0}}
    with emulation(tmp_path, down=direction(10_000_000), up=direction(0)) as running:
        done = probe_tcp(running, patience_ns=300 * MS)
    assert (done.returncode, done.stderr) == (1, "connecting: connection timed out\n")

    dying = direction(10_000_000, changes=[{"at_ns": 1_500 * MS, **outage}])
    with emulation(tmp_path, down=dying, up=direction()) as running:
        done = probe_tcp(running, duration_ns=3_000 * MS, patience_ns=300 * MS)
    assert done.returncode == 0
    assert 0 < json.loads(done.stdout)["bytes"] < 10_000_000 / 8 * 1.5


def probe_tcp(running: Emulation, **measure: Any) -> subprocess.CompletedProcess[str]:
    """A bulk transfer to the client, as the program answers it."""
    ends = {
        name: {"namespace": f"/proc/{os.getpid()}/fd/{space}", "address": address}
        for name, space, address in (
            ("source", running.spaces.server, namespaces.SERVER_ADDRESS),
            ("destination", running.spaces.client, namespaces.CLIENT_ADDRESS),
        )
    }
    bulk = {"kind": "tcp", "duration_ns": 100 * MS, "congestion": "cubic", **measure}
    request = json.dumps({**ends, "measure": bulk})
    return subprocess.run(
        [dataplane.program(), "probe", request], capture_output=True, text=True, check=False, timeout=30
    )


@pytest.mark.timed
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
    down = direction(loss={"kind": "independent", "probability": 2})
    path = Segment(down=down, up=direction(), interfaces=Interfaces())
    file = Run(id="bad", trace_dir=tmp_path, work_dir=tmp_path, segments=[path]).write()
    done = subprocess.run([dataplane.program(), "emulate", file], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == f"{file}: segments.down.loss.probability: found 2, accepted: 0 to 1"


def test_an_interface_that_is_missing_is_named(tmp_path: Path) -> None:
    spaces = namespaces.Namespaces.create()
    try:
        path = Segment(down=direction(), up=direction(), interfaces=Interfaces())
        file = Run(id="bare", trace_dir=tmp_path, work_dir=tmp_path, segments=[path]).write()
        with spaces.inside(spaces.wire):
            done = subprocess.run(
                [dataplane.program(), "emulate", file], capture_output=True, text=True, check=False
            )
    finally:
        spaces.close()
    assert done.returncode == 1
    assert done.stderr.startswith("interface c1: ")
    assert os.linesep not in done.stderr.strip()
