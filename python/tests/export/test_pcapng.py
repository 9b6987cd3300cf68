"""pcapng from the table ``packet`` as Wireshark's programs read it; captures are copied as they are."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import plan
from wirepaint.export import export
from wirepaint.results import Results, contents, journal
from wirepaint.results.outcome import Outcome
from wirepaint.results.trace import write_table
from wirepaint.runners import backends, pool
from wirepaint.runners.progress import Lines

EVALUATION = """
title = "A lossy train"
backend = "simulator"
warmup = false
repeats = 1
duration = "20 s"
{packets}
[[scenarios.network]]
title = "train"
changes = [ {{ at = "1 s", outage = "300 ms" }}, {{ at = "2 s", network = "3g" }} ]
[scenarios.network.down]
rate = "10 Mbit/s"
delay = "20 ms"
overhead = 38
loss = {{ kind = "independent", probability = "2 %" }}
[scenarios.network.up]
rate = "5 Mbit/s"
delay = "20 ms"
loss = {{ kind = "independent", probability = "2 %" }}
[[flows]]
name = "download"
bulk = "4 MB"
[[flows]]
name = "upload"
bulk = "500 kB"
direction = "up"
[[flows]]
name = "call"
rate = "64 kbit/s"
write = "160 B"
stop = "4 s"
"""
KEY = "train-cubic.flows.v01"


def carried_out(folder: Path, packets: str) -> Path:
    file = folder / "evaluation.toml"
    file.write_text(EVALUATION.format(packets=packets))
    pool.carry_out(plan(file), folder / "results", backends.named("simulator"), Lines())
    return folder / "results"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return carried_out(tmp_path_factory.mktemp("train"), "packet_trace = true")


@pytest.fixture(scope="module")
def files(results: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("exported")
    written = export(results, "pcapng", out)
    assert [path.name for path in written] == [f"{KEY}.flows.{side}.pcapng" for side in ("client", "server")]
    return dict(zip(("client", "server"), written, strict=True))


def packets(results: Path) -> pl.DataFrame:
    return Results.open(results).trace(KEY, "packet")


def tshark(file: Path, only: str, *fields: str) -> list[tuple[str, ...]]:
    """The fields of the packets that a display filter lets through, with checksums verified."""
    command = [
        "tshark",
        "-r",
        file,
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-Y",
        only,
    ]
    command += ["-T", "fields", *(word for field in fields or ("frame.number",) for word in ("-e", field))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("side", ["client", "server"])
def test_wireshark_finds_nothing_malformed_and_no_wrong_checksum(files: dict[str, Path], side: str) -> None:
    file = files[side]
    assert tshark(file, "_ws.malformed || tcp.checksum.status == Bad || ip.checksum.status == Bad") == []
    whole = tshark(file, "tcp.len == 0", "ip.checksum.status", "tcp.checksum.status")
    assert len(whole) > 1000 and set(whole) == {("1", "1")}
    # The window is not known; Wireshark must not take the stated one for a limit.
    assert tshark(file, "tcp.analysis.window_full || tcp.analysis.zero_window") == []
    # Nobody acknowledges what was not there before.
    assert side == "client" or tshark(file, "ip.src == 10.64.0.2 && tcp.analysis.ack_lost_segment") == []


@pytest.mark.parametrize(("side", "sends"), [("client", "up"), ("server", "down")])
def test_a_file_has_the_packets_that_its_side_sent_and_received(
    results: Path, files: dict[str, Path], side: str, sends: str
) -> None:
    found = tshark(
        files[side], "frame", "frame.time_epoch", "frame.len", "tcp.seq_raw", "tcp.len", "tcp.flags.str"
    )
    sent = pl.col("direction") == sends
    rows = packets(results).filter(sent | pl.col("time_out").is_not_null())
    rows = rows.with_columns(
        at=pl.when(sent).then("time_in").otherwise("time_out"),
        sent=sent,
        length=pl.col("wire_bytes") - pl.when(pl.col("direction") == "down").then(38 - 14).otherwise(0),
    ).sort("at", "sent", "sequence", "acknowledgement", maintain_order=True)
    began = Results.open(results).trace(KEY, "run")["started_unix"].item() or 0
    told = [
        (
            f"{(at + began) // 10**9}.{(at + began) % 10**9:09}",
            str(length),
            str(sequence % 2**32),
            str(payload),
        )
        for at, length, sequence, payload in rows.select(
            "at", "length", "sequence", "payload_bytes"
        ).iter_rows()
    ]
    assert [row[:4] for row in found] == told
    assert [set(row[4]) - {"·"} for row in found] == [set(flags) for flags in rows["flags"]]


def test_a_dropped_packet_is_in_the_file_of_its_sender_with_the_cause(
    results: Path, files: dict[str, Path]
) -> None:
    for side, sends in (("client", "up"), ("server", "down")):
        told = Counter(packets(results).filter(direction=sends)["dropped"].drop_nulls())
        comments = Counter(text for (text,) in tshark(files[side], "frame.comment", "frame.comment"))
        assert comments == {f"dropped: {cause}": count for cause, count in told.items()} and told


def test_retransmissions_that_wireshark_finds_at_the_server_are_those_of_its_connections(
    results: Path, files: dict[str, Path]
) -> None:
    again = "tcp.analysis.retransmission || tcp.analysis.out_of_order"
    found = Counter(
        port for (port,) in tshark(files["server"], f"ip.src == 10.63.0.1 && ({again})", "tcp.dstport")
    )
    rows = Results.open(results).trace(KEY, "connection")
    told = dict(zip(rows["client_port"].cast(str), rows["retransmitted_segments"], strict=True))
    assert sum(told.values()) > 10
    assert {port: found[port] for port in told} == told


def test_a_capture_is_preferred_and_copied_as_it_is(results_folder, tmp_path: Path) -> None:
    folder = results_folder(lambda run: 1.0, 1)
    key = "lte-cubic-h2.user.small.v01"
    capture = folder / "runs" / key / "captures/user.client.pcapng"
    capture.parent.mkdir()
    capture.write_bytes(b"whatever dumpcap wrote")
    kept(folder, key)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / f"out/{key}.user.client.pcapng").symlink_to(outside)
    [file] = export(folder, "pcapng", tmp_path / "out")
    assert file.read_bytes() == b"whatever dumpcap wrote" and not file.is_symlink()
    assert outside.read_text() == "mine"


def kept(folder: Path, key: str) -> None:
    """Journals the run again with the present content of its folder."""
    journal_of = journal.Journal(folder)
    journal_of.done(key, 1, Outcome("valid"), contents.record(folder / "runs" / key))
    journal_of.close()


def test_results_without_packets_are_refused_with_the_keys_to_set(tmp_path: Path) -> None:
    folder = carried_out(tmp_path, "")
    accepted = (
        r"results of an evaluation with \[capture\] \(testbed\) or packet_trace = true \(any back end\)"
    )
    with pytest.raises(
        UsageError, match=f"results: found no run with captures or a table packet; accepted: {accepted}"
    ):
        export(folder, "pcapng", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("source_address", "2001:db8::1", "Expected 4 octets"),
        ("payload_bytes", 9000, "9000 bytes of payload in"),
        ("wire_bytes", -1, "of payload in -15"),
        ("source_port", 70_000, "format requires"),
        ("flags", None, "not iterable"),
        ("flags", "SX", "substring not found"),
        ("direction", "sideways", "'sideways'"),
    ],
)
def test_rows_that_are_no_packets_of_tcp_are_refused(
    results_folder, tmp_path: Path, column: str, value: object, why: str
) -> None:
    folder = results_folder(lambda run: 1.0, 1)
    key = "lte-cubic-h2.user.small.v01"
    row = {
        "segment": "access", "direction": "up", "time_in": 5, "time_due": 7, "time_out": 7, "wire_bytes": 74,
        "source_address": "10.64.0.2", "source_port": 4000, "destination_address": "10.1.0.1",
        "destination_port": 443, "sequence": 1, "acknowledgement": 0, "payload_bytes": 0, "flags": "S",
    }  # fmt: skip
    (folder / "runs" / key / "run.json").write_text('{"segments": [{"down": {}, "up": {}}]}')
    write_table(folder / "runs" / key, "packet", [row])
    kept(folder, key)
    assert len(export(folder, "pcapng", tmp_path / "out")) == 2
    write_table(folder / "runs" / key, "packet", [row | {column: value}])
    kept(folder, key)
    with pytest.raises(
        UsageError, match=f"packet.parquet: found a packet at [57] ns that cannot be written .*{why}"
    ):
        export(folder, "pcapng", tmp_path / "out")
