"""pcapng, the file format of packet captures: writes its blocks and reads the counters of a capture.

A file is a sequence of blocks: one section header, then an interface, then packets in the order of time.
Numbers of blocks and options are those of draft-ietf-opsawg-pcapng. Blocks are in little-endian order.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

_SECTION_HEADER, _INTERFACE, _STATISTICS, _PACKET, _SECRETS = 0x0A0D0D0A, 1, 5, 6, 10
_BYTE_ORDER = 0x1A2B3C4D
_LENGTH_UNKNOWN = (1 << 64) - 1
_ETHERNET = 1
_TLS_KEY_LOG = 0x544C534B
_COMMENT, _APPLICATION, _IF_NAME, _IF_RESOLUTION = 1, 4, 2, 9
_RECEIVED, _DROPPED = 4, 5
_NANOSECONDS = b"\x09"

Option = tuple[int, bytes]


@dataclass(frozen=True)
class Statistics:
    """Counters of the program that made a capture."""

    received: int
    """Packets that it took from the kernel."""
    dropped: int
    """Packets that it or the kernel dropped."""


def section(application: str, comment: str = "") -> bytes:
    """The header that begins a file."""
    options = [(_APPLICATION, application.encode()), *_comment(comment)]
    return _block(_SECTION_HEADER, struct.pack("<IHHQ", _BYTE_ORDER, 1, 0, _LENGTH_UNKNOWN), options)


def interface(name: str, comment: str = "") -> bytes:
    """An Ethernet interface whose packets have times in nanoseconds and any length."""
    options = [(_IF_NAME, name.encode()), (_IF_RESOLUTION, _NANOSECONDS), *_comment(comment)]
    return _block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, 0), options)


def packet(unix_ns: int, frame: bytes, length: int, comment: str = "") -> bytes:
    """A packet of ``length`` bytes on the first interface; ``frame`` holds its first bytes, or all."""
    head = struct.pack("<IIIII", 0, unix_ns >> 32, unix_ns & 0xFFFFFFFF, len(frame), length)
    return _block(_PACKET, head + _padded(frame), _comment(comment))


def tls_secrets(key_log: bytes) -> bytes:
    """Secrets of TLS connections in NSS Key Log Format; the block comes before the packets that need it."""
    return _block(_SECRETS, struct.pack("<II", _TLS_KEY_LOG, len(key_log)) + _padded(key_log), [])


def section_length(file: IO[bytes]) -> int:
    """Bytes of the section header of an open file.

    Raises ValueError if there is none, or one in big-endian order.
    """
    head = _at(file, 0, 12)
    kind, length, order = struct.unpack("<III", head) if len(head) == 12 else (0, 0, 0)
    if (kind, order) != (_SECTION_HEADER, _BYTE_ORDER):
        raise ValueError("no little-endian section header")
    return length


def statistics(file: IO[bytes]) -> Statistics:
    """The counters in the last block of an open file; raises ValueError if the last block has none."""
    end = file.seek(0, os.SEEK_END)
    tail = _at(file, max(end - 4, 0), 4)
    [length] = struct.unpack("<I", tail) if len(tail) == 4 else (0,)
    block = _at(file, end - length, length) if 20 <= length <= end else b""
    if len(block) < 20 or struct.unpack_from("<II", block) != (_STATISTICS, length):
        raise ValueError("no counters at the end")
    found = dict(_options(block[20:-4]))
    if not {_RECEIVED, _DROPPED} <= found.keys():
        raise ValueError("counters without packets received and dropped")
    received, dropped = (int.from_bytes(found[code], "little") for code in (_RECEIVED, _DROPPED))
    return Statistics(received, dropped)


def _at(file: IO[bytes], place: int, length: int) -> bytes:
    file.seek(place)
    return file.read(length)


def _block(kind: int, body: bytes, options: Iterable[Option]) -> bytes:
    """A block: its type, its length, the body, its options, its length again."""
    written = b"".join(struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options)
    if written:
        written += bytes(4)  # opt_endofopt
    length = struct.pack("<I", 12 + len(body) + len(written))
    return struct.pack("<I", kind) + length + body + written + length


def _options(data: bytes) -> Iterable[Option]:
    place = 0
    while place + 4 <= len(data):
        code, length = struct.unpack_from("<HH", data, place)
        if code == 0:
            return
        yield code, data[place + 4 : place + 4 + length]
        place += 4 + length + -length % 4


def _comment(text: str) -> list[Option]:
    return [(_COMMENT, text.encode())] if text else []


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
