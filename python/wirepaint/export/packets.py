"""Writes the packets of a run as pcapng: its captures, or files made from the table ``packet``.

A file from the table has the packets that its side sent or received, at the time at which they were there.
A dropped packet is in the sender's file, with a comment that names the cause. The table has no payload,
window and options:

- A packet ends behind its headers; its original length is the true one.
- The window is 65,535 bytes, of scale 14 by an option of each SYN, so that it limits nobody. The place of
  other options is filled with no-operations.
- Checksums are right, for a payload of zeros.
"""

from __future__ import annotations

import json
import struct
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint import __version__, pcapng
from wirepaint.errors import UsageError
from wirepaint.results.reader import Results

TABLE = "packet"
_ETHERNET_BYTES, _IP_BYTES, _TCP_BYTES, _MOST_TCP_BYTES = 14, 20, 20, 60
_MAC = {"client": b"\x02wp\0\0\xc0", "server": b"\x02wp\0\0\x50"}
_TYPE_IPV4, _TCP = b"\x08\0", 6
_DONT_FRAGMENT, _TTL = 0x4000, 64
_FLAGS = "FSRPAUEW"
"""Letters of the table by bit (RFC 9293 section 3.1)."""
_WINDOW = 65_535
_WINDOW_SCALE = b"\x03\x03\x0e"
"""Option of a SYN: kind, length, a shift of 14 (RFC 7323 section 2.2)."""
_NO_OPERATION = b"\x01"
_ORIGIN = (
    "From wirepaint's table packet: no payload; windows and TCP options are not known; "
    "checksums are those of a payload of zeros"
)


def write(results: Results, run_key: str, user: str, side: str, path: Path) -> None:
    """Writes the packets of one side of a run from the table.

    Raises UsageError for a table with other packets than TCP over IPv4, and OSError.
    """
    table = results.file(run_key, f"{TABLE}.parquet")
    frame = results.scan(run_key, TABLE)
    assert table is not None and frame is not None  # the caller found it
    began = results.trace(run_key, "run")["started_unix"].first() or 0
    backend = results.runs().filter(pl.col("run_key") == run_key)["backend"].item()
    overhead = _overhead(results.file(run_key, "run.json"))
    with path.open("xb") as file:
        file.write(pcapng.section(f"wirepaint {__version__}", f"{backend}: {run_key}: {user}, {side}"))
        file.write(pcapng.interface({"client": "c0", "server": "s0"}[side], _ORIGIN))
        for row in _at(side, frame).iter_rows(named=True):
            try:
                headers, length = _packet(row, overhead[row["direction"]])
                comment = f"dropped: {row['dropped']}" if row["dropped"] else ""
                file.write(pcapng.packet(began + row["time"], headers, length, comment))
            except (ValueError, TypeError, KeyError, struct.error) as error:
                found = f"a packet at {row['time']} ns that cannot be written ({error})"
                raise UsageError(str(table), found, "packets of TCP over IPv4") from None


def _at(side: str, frame: pl.LazyFrame) -> pl.DataFrame:
    """The packets of a side in the order of their ``time`` there.

    In the simulator many packets have the same time. Those that came in are first: what is sent at that
    time answers them. A burst leaves in the order of its sequence numbers; the table has those that were
    dropped before the others.
    """
    sent = pl.col("direction") == {"client": "up", "server": "down"}[side]
    there = frame.with_columns(time=pl.when(sent).then("time_in").otherwise("time_out"), sent=sent)
    order = ("time", "sent", "sequence", "acknowledgement")
    return there.filter(pl.col("time").is_not_null()).sort(order, maintain_order=True).collect()


def _overhead(run_file: Path | None) -> dict[str, int]:
    """Bytes that the link of each direction adds to IP's."""
    try:
        [segment] = json.loads((run_file or Path()).read_bytes())["segments"]
        return {way: segment[way].get("overhead_bytes", _ETHERNET_BYTES) for way in ("down", "up")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(str(run_file), "no path of one segment", "the run.json of a run") from None


def _packet(row: dict[str, Any], overhead: int) -> tuple[bytes, int]:
    """Headers of a packet from Ethernet's on, and its length."""
    payload, ip_bytes = row["payload_bytes"], row["wire_bytes"] - overhead
    flags = sum(1 << _FLAGS.index(letter) for letter in row["flags"])
    tcp_bytes = ip_bytes - _IP_BYTES - payload
    if payload < 0 or not _TCP_BYTES <= tcp_bytes <= _MOST_TCP_BYTES or tcp_bytes % 4:
        raise ValueError(f"{payload} bytes of payload in {ip_bytes}")
    source, destination = _address(row["source_address"]), _address(row["destination_address"])
    options = (_WINDOW_SCALE if "S" in row["flags"] else b"")[: tcp_bytes - _TCP_BYTES]
    tcp = struct.pack(
        ">HHIIBBHHH",
        row["source_port"],
        row["destination_port"],
        row["sequence"] % 2**32,
        row["acknowledgement"] % 2**32,
        tcp_bytes // 4 << 4,
        flags,
        _WINDOW,
        0,
        0,
    ) + options.ljust(tcp_bytes - _TCP_BYTES, _NO_OPERATION)
    pseudo = struct.pack(">4s4sHH", source, destination, _TCP, tcp_bytes + payload)
    tcp = tcp[:16] + _checksum(pseudo + tcp) + tcp[18:]
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, ip_bytes, 0, _DONT_FRAGMENT, _TTL, _TCP, 0, source, destination
    )
    ip = ip[:10] + _checksum(ip) + ip[12:]
    to, sender = ("client", "server") if row["direction"] == "down" else ("server", "client")
    return _MAC[to] + _MAC[sender] + _TYPE_IPV4 + ip + tcp, _ETHERNET_BYTES + ip_bytes


@cache
def _address(text: str) -> bytes:
    return IPv4Address(text).packed


def _checksum(data: bytes) -> bytes:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)
