"""Blocks of pcapng: what Wireshark's programs make of them, and files that are no captures."""

from __future__ import annotations

import io
import struct
import subprocess
from pathlib import Path

import pytest

from wirepaint import pcapng

ARP = bytes.fromhex("ffffffffffff0200000000010806") + bytes(46)


def statistics_block(received: int, dropped: int) -> bytes:
    """An Interface Statistics Block as dumpcap writes it."""
    options = b"".join(struct.pack("<HHQ", code, 8, value) for code, value in ((4, received), (5, dropped)))
    body = struct.pack("<III", 0, 0, 0) + options + bytes(4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", 5) + length + body + length


def test_wireshark_reads_times_lengths_comments_and_names(tmp_path: Path) -> None:
    file = tmp_path / "a.pcapng"
    file.write_bytes(
        pcapng.section("wirepaint", "a run")
        + pcapng.tls_secrets(b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n")
        + pcapng.interface("c0", "no payload")
        + pcapng.packet(1_760_000_000_123_456_789, ARP[:21], 60, "dropped: queue")
        + pcapng.packet(1_760_000_001_000_000_001, ARP, 60)
    )
    fields = ("frame.time_epoch", "frame.cap_len", "frame.len", "frame.comment", "frame.interface_name")
    command = ["tshark", "-r", file, "-T", "fields", *(word for field in fields for word in ("-e", field))]
    read = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split("\t") for line in read] == [
        ["1760000000.123456789", "21", "60", "dropped: queue", "c0"],
        ["1760000001.000000001", "60", "60", "", "c0"],
    ]
    told = subprocess.run(["capinfos", file], capture_output=True, text=True, check=True).stdout
    assert "Number of decryption secrets in file: 1" in told
    assert "Capture comment:     a run" in told and "Capture application: wirepaint" in told


def test_counters_come_from_the_last_block() -> None:
    header = pcapng.section("dumpcap")
    file = io.BytesIO(header + pcapng.interface("c0") + statistics_block(2**33, 7))
    assert pcapng.statistics(file) == pcapng.Statistics(received=2**33, dropped=7)
    assert pcapng.section_length(file) == len(header)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x05",
        pcapng.section("dumpcap"),
        statistics_block(1, 0)[:-1],
        statistics_block(1, 0)[4:],
        pcapng.section("dumpcap") + b"\xff\xff\xff\xff",
        pcapng.section("dumpcap") + struct.pack("<IIIIII", 5, 24, 0, 0, 0, 24),
    ],
    ids=[
        "empty",
        "one byte",
        "no counters",
        "cut",
        "without its type",
        "too long",
        "counters without values",
    ],
)
def test_a_file_without_counters_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="counters"):
        pcapng.statistics(io.BytesIO(data))


@pytest.mark.parametrize(
    "data", [b"", b"\x0a\x0d\x0d\x0a", statistics_block(1, 0), b"\x0a\x0d\x0d\x0a\0\0\0\x1c\x1a\x2b\x3c\x4d"]
)
def test_a_file_without_a_little_endian_header_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no little-endian section header"):
        pcapng.section_length(io.BytesIO(data))
