"""Captures of testbed runs: whole, readable for Wireshark's programs, and equal to what others counted."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wirepaint.errors import RunFailed
from wirepaint.evaluation import plan
from wirepaint.results import trace
from wirepaint.runners.testbed import capture, namespaces, one_run
from wirepaint.runners.testbed.cells import Cells
from wirepaint.runners.testbed.wiring import ETHERNET_BYTES

pytestmark = pytest.mark.usefixtures("root")
MSS = 1448

NETWORK = """
[[scenarios.network]]
title = "lossy"
[scenarios.network.down]
rate = "20 Mbit/s"
delay = "10 ms"
loss = { kind = "independent", probability = "1 %" }
[scenarios.network.up]
rate = "10 Mbit/s"
delay = "10 ms"
loss = { kind = "independent", probability = "1 %" }
"""
PAGE = f"""
title = "A page on a lossy path"
backend = "testbed"
warmup = false
packet_trace = true
@capture
{NETWORK}
[[user_agents]]
name = "anna"
pages = ["agency"]
visits = 1
"""
FLOWS = f"""
title = "Down and up on a lossy path"
backend = "testbed"
warmup = false
repeats = 1
duration = "4 s"
packet_trace = true
@capture
{NETWORK}
[[flows]]
name = "download"
bulk = "2 MB"
[[flows]]
name = "upload"
bulk = "500 kB"
direction = "up"
[[flows]]
name = "endless"
bulk = "endless"
"""
FAST = """
title = "A download faster than its capture"
backend = "testbed"
warmup = false
repeats = 1
duration = "3 s"
@capture
[scenarios]
network = [{ title = "fast", down = { rate = "200 Mbit/s", delay = "5 ms" }, up = { delay = "5 ms" } }]
[[flows]]
name = "download"
bulk = "endless"
"""
AGAIN = "(tcp.analysis.retransmission || tcp.analysis.out_of_order)"
"""No packet is reordered at the device of its sender: "out of order" is a quick retransmission there."""
OF_DUMPCAP = "for one in /proc/[0-9]*; do if grep -qx dumpcap $one/comm; then {} ${{one#/proc/}}; fi; done"
"""A command for each dumpcap of the cell."""
Ended = dict[str, Any]


class Lab:
    def __init__(self, cells: Cells, folder: Path) -> None:
        self._cells, self._folder, self._count = cells, folder, 0

    def carried_out(self, text: str, asked_for: str = "[capture]", faults: Any = ()) -> tuple[Path, Ended]:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        file = folder.with_suffix(".toml")
        file.write_text(text.replace("@capture", asked_for))
        [run] = plan(file).runs
        described = one_run.describe(run, folder, None)
        asked = {"run": described.document(), "faults": list(faults)}
        function = "wirepaint.runners.testbed.page_run:carry_out"
        return folder, self._cells.call(function, asked, timeout_s=60, log=folder / "log.txt")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces cannot be made without it")
    with Cells() as cells:
        yield Lab(cells, tmp_path_factory.mktemp("captures"))


@pytest.fixture(scope="module")
def visit(lab: Lab) -> tuple[Path, Ended]:
    return lab.carried_out(PAGE)


@pytest.fixture(scope="module")
def transfers(lab: Lab) -> tuple[Path, Ended]:
    return lab.carried_out(FLOWS)


def tshark(file: Path, only: str, *fields: str) -> list[tuple[str, ...]]:
    """The fields of the packets that a display filter lets through."""
    wanted = [word for field in fields or ("frame.number",) for word in ("-e", field)]
    command = ["tshark", "-2", "-o", "tcp.reassemble_out_of_order:TRUE", "-r", str(file), "-Y", only]
    command += ["-T", "fields", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def capinfos(file: Path) -> dict[str, int]:
    """Number of packets, and their bytes on the wire with Ethernet headers."""
    done = subprocess.run(["capinfos", "-TmMcd", str(file)], capture_output=True, text=True, check=True)
    names, values = (line.split(",") for line in done.stdout.splitlines())
    found = dict(zip(names, values, strict=True))
    return {"packets": int(found["Number of packets"]), "bytes": int(found["Data size (bytes)"])}


def held(reasons: list[dict[str, str]]) -> set[str]:
    return {reason["check"] for reason in reasons}


@pytest.mark.parametrize("of", ["visit", "transfers"])
def test_captures_hold_the_packets_and_bytes_that_kernel_and_emulator_counted(
    of: str, request: pytest.FixtureRequest
) -> None:
    folder, ended = request.getfixturevalue(of)
    assert not held(ended["reasons"]) & {"capture", "packets", "path", "packet_conservation"}, ended[
        "reasons"
    ]
    for side, sends, receives in (("client", "up", "down"), ("server", "down", "up")):
        [file] = folder.glob(f"captures/*.{side}.pcapng")
        counts, emulator = ended["ends"][side], ended["summaries"]["emulator"]
        of_client = "ip.src == 10.64.0.2"
        of_server = f"!({of_client})"
        sent, received = (of_client, of_server) if side == "client" else (of_server, of_client)

        gone = [int(length) for (length,) in tshark(file, sent, "frame.len")]
        taken = emulator[sends]["received_packets"]
        assert len(gone) >= counts["sent"] >= taken
        # Captures end half a second after the emulator: connections that were cut off send again or give up.
        still = set(tshark(file, f"({sent}) && ({AGAIN} || tcp.flags.reset == 1 || tcp.flags.fin == 1)"))
        assert set(tshark(file, sent)[taken:]) <= still

        got = [list(map(int, row)) for row in tshark(file, received, "frame.len", "tcp.len", "tcp.hdr_len")]
        packets = ip_bytes = 0
        for length, payload, header in got:
            # Generic receive offload, which the server's device has, merges segments: one header for several.
            segments = max(-(-payload // MSS), 1)
            assert segments == 1 or side == "server"
            packets += segments
            ip_bytes += length - ETHERNET_BYTES + (segments - 1) * (20 + header)
        assert packets == counts["received"] == emulator[receives]["delivered_packets"]
        assert ip_bytes == counts["received_bytes"]
        assert ip_bytes == emulator[receives]["delivered_bytes"] - ETHERNET_BYTES * packets
        whole = capinfos(file)
        assert whole == {"packets": len(gone) + len(got), "bytes": sum(gone) + sum(row[0] for row in got)}


@pytest.mark.parametrize("of", ["visit", "transfers"])
def test_connections_and_retransmissions_of_wireshark_are_those_of_the_trace(
    of: str, request: pytest.FixtureRequest
) -> None:
    folder, ended = request.getfixturevalue(of)
    rows = trace.read_table(folder, "connection").to_dicts()
    [file] = folder.glob("captures/*.server.pcapng")
    # A SYN that was lost behind the client's device is not here; one whose SYN-ACK was lost may come twice.
    opened = {
        int(port) for (port,) in tshark(file, "tcp.flags.syn == 1 && tcp.flags.ack == 0", "tcp.srcport")
    }
    assert opened == {row["client_port"] for row in rows}
    answers = tshark(file, "tcp.flags.syn == 1 && tcp.flags.ack == 1")
    assert of == "visit" or len(answers) > len(rows), "another seed: here a SYN-ACK must be lost"
    # The capture goes on when emulator and trace have ended: what was cut off then sends again.
    of_server = "ip.dst == 10.64.0.2"
    taken = tshark(file, of_server)[: ended["summaries"]["emulator"]["down"]["received_packets"]]
    again = tshark(file, f"{of_server} && {AGAIN} && frame.number <= {taken[-1][0]}", "tcp.dstport")
    found = Counter(int(port) for (port,) in again)
    endless = set(trace.read_table(folder, "flow").filter(flow="endless")["connection"])
    told = {
        row["client_port"]: row["retransmitted_segments"] for row in rows if row["connection"] not in endless
    }
    assert len(told) >= 2 and any(told.values())
    assert {port: found[port] for port in told} == told


def test_wireshark_reads_http_from_the_captures_without_being_given_a_key(visit: tuple[Path, Ended]) -> None:
    folder, _ = visit
    objects = trace.read_table(folder, "object")
    for side in ("client", "server"):
        file = folder / f"captures/anna.{side}.pcapng"
        asked = tshark(file, "http2.headers.method", "http2.headers.method")
        assert sum(row[0].count(",") + 1 for row in asked) == objects.height
        assert tshark(file, "_ws.malformed") == []


def test_a_capture_that_is_full_is_a_note_and_holds_the_beginning_of_its_packets(lab: Lab) -> None:
    folder, ended = lab.carried_out(PAGE, '[capture]\nsnap_length = "94 B"\nsize_limit = "100 kB"')
    notes = [reason for reason in ended["reasons"] if reason["check"] == "capture"]
    assert len(notes) == 2 and {note["severity"] for note in notes} == {"note"}
    for side in ("client", "server"):
        file = folder / f"captures/anna.{side}.pcapng"
        found = [list(map(int, row)) for row in tshark(file, "frame", "frame.cap_len", "frame.len")]
        assert max(row[0] for row in found) == 94 and max(row[1] for row in found) >= 1514
        assert 100_000 <= file.stat().st_size < 200_000
        assert any(
            f"at the {side} ended at its limit, with {len(found)} packets" in n["found"] for n in notes
        )


def test_packets_that_a_stopped_dumpcap_lost_are_counted(lab: Lab) -> None:
    stop = f"{OF_DUMPCAP.format('kill -STOP')}; sleep 2; {OF_DUMPCAP.format('kill -CONT')}"
    _, ended = lab.carried_out(FAST, faults=[{"at": "load", "in": "cell", "do": stop}])
    notes = [reason["found"] for reason in ended["reasons"] if reason["check"] == "capture"]
    # Held and dropped packets together are those of the device, else there were a third note.
    assert len(notes) == 2 and all("dropped" in note for note in notes), ended["reasons"]


def test_a_run_fails_with_its_capture(lab: Lab) -> None:
    kill = {"at": "load", "in": "cell", "do": OF_DUMPCAP.format("kill -9")}
    with pytest.raises(
        RunFailed, match=r"dumpcap at the client's device of anna ended under way: it gave no cause"
    ):
        lab.carried_out(PAGE, faults=[kill])


def test_users_who_share_a_device_have_a_file_each(tmp_path: Path) -> None:
    paths = namespaces.Namespaces.create()
    addresses = {"anna": "10.65.0.1", "bob": "10.65.0.2"}
    namespaces.build(paths, addresses.values(), initial_window=10, emulated=False)
    ends = [capture.End(user, "server", paths.server, "s0", address) for user, address in addresses.items()]
    with (
        contextlib.closing(paths),
        capture.Captures(ends, {"size_limit": 10**6}, tmp_path, "shared") as captures,
    ):
        for count, address in enumerate(addresses.values(), 1):
            with paths.inside(paths.server):
                listener = socket.create_server((address, 5000))
            with paths.inside(paths.client):
                clients = [socket.create_connection((address, 5000), timeout=5) for _ in range(count)]
            for client in (*clients, listener):
                client.close()
        assert captures.finish(paths, {}) == []
    for count, (user, address) in enumerate(addresses.items(), 1):
        file = tmp_path / f"captures/{user}.server.pcapng"
        assert len(tshark(file, "tcp.flags.syn == 1 && tcp.flags.ack == 0")) == count
        assert tshark(file, f"!(ip.addr == {address})") == []


def test_a_capture_that_cannot_begin_says_why(lab: Lab) -> None:
    gone = {"at": "path", "in": "client", "do": "ip link set c0 name c9"}
    with pytest.raises(
        RunFailed, match=r"dumpcap at the client's device of anna did not get ready: .*No such device"
    ):
        lab.carried_out(PAGE, faults=[gone])
