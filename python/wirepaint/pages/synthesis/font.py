"""A small valid font of an exact size: every Latin letter is the same box.

TrueType tables by the OpenType specification; WOFF by W3C WOFF 1.0, WOFF2 by W3C WOFF 2.0 with
untransformed outlines. Padding is a private table in TrueType and the private block in WOFF.
"""

from __future__ import annotations

import struct

import brotli

from wirepaint.pages.synthesis.filler import random_bytes

_EM = 1000
_FIRST, _LAST = 0x20, 0x17F
_WOFF2_TAGS = {"cmap": 0, "head": 1, "hhea": 2, "hmtx": 3, "maxp": 4, "name": 5, "OS/2": 6, "post": 7,
               "glyf": 10, "loca": 11}  # fmt: skip
_OTHER_TAG = 63
_UNTRANSFORMED = 3 << 6
_ROOM = 128
"""Bytes left for alignment, filled by the private block."""


_LARGEST = 2**24
"""Bytes; a larger font ends in zeros."""


def font(mime: str, size: int, seed: str) -> bytes:
    """A font of ``size`` bytes; below the smallest one (about 500 bytes) random bytes.

    ``mime`` chooses WOFF2, WOFF or TrueType; default WOFF2.
    """
    if size > _LARGEST:
        return font(mime, _LARGEST, seed).ljust(size, b"\0")
    mime = mime.lower()
    if "woff2" in mime or not any(
        word in mime for word in ("woff", "ttf", "otf", "truetype", "opentype", "sfnt")
    ):
        return _woff2(size, seed)
    return _padded(_woff if "woff" in mime else _sfnt, size, seed)


def _padded(make, size: int, seed: str) -> bytes:
    bare = len(make(b""))
    if bare > size:
        return random_bytes(seed, size)
    padding = random_bytes(seed, size - bare)
    while padding and len(make(padding)) > size:
        padding = padding[: len(padding) - (len(make(padding)) - size)]
    made = make(padding)
    return made + bytes(size - len(made))


def _tables() -> dict[str, bytes]:
    box = struct.pack(">hhhhh", 1, 50, 0, 450, 600)  # one contour and its bounds
    box += struct.pack(">HH", 3, 0) + b"\1\1\1\1"  # last point, no instructions, four points on the curve
    box += struct.pack(">8h", 50, 400, 0, -400, 0, 0, 600, 0)  # steps in x, then in y
    glyphs = box + b"\0" * (-len(box) % 4)
    count = _LAST - _FIRST + 1
    segments = struct.pack(">HHHHHHH", 4, 4, 1, 0, _LAST, 0xFFFF, 0) + struct.pack(
        ">HHhhHH", _FIRST, 0xFFFF, 0, 1, 4, 0
    )
    subtable = struct.pack(">HHH", 4, 6 + len(segments) + 2 * count, 0) + segments + b"\0\1" * count
    cmap = struct.pack(">HHHHI", 0, 1, 3, 1, 12) + subtable
    family = "wp".encode("utf-16-be")
    records = b"".join(struct.pack(">HHHHHH", 3, 1, 0x409, name, len(family), 0) for name in (1, 2, 4, 6))
    bounds = struct.pack(">hhhh", 50, 0, 450, 600)
    return {
        "OS/2": struct.pack(">HhHHH", 4, 500, 400, 5, 0) + struct.pack(">11h", *[100] * 10, 0) + bytes(10)
        + struct.pack(">IIII", 1, 0, 0, 0) + b"none" + struct.pack(">HHH", 0x40, _FIRST, _LAST)
        + struct.pack(">hhhHH", 800, -200, 0, 800, 200) + struct.pack(">IIhhHHH", 1, 0, 500, 700, 0, 32, 1),
        "cmap": cmap,
        "glyf": glyphs,
        "head": struct.pack(">IIIIHH", 0x10000, 0x10000, 0, 0x5F0F3CF5, 3, _EM) + bytes(16) + bounds
        + struct.pack(">HHhhh", 0, 8, 2, 0, 0),
        "hhea": struct.pack(">IhhhHhhhhhh", 0x10000, 800, -200, 0, 500, 50, 50, 450, 1, 0, 0) + bytes(10)
        + struct.pack(">H", 2),
        "hmtx": struct.pack(">HhHh", 500, 0, 500, 50),
        "loca": struct.pack(">HHH", 0, 0, len(glyphs) // 2),
        "maxp": struct.pack(">IH13H", 0x10000, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        "name": struct.pack(">HHH", 0, 4, 6 + len(records)) + records + family,
        "post": struct.pack(">IIhhI", 0x30000, 0, -100, 50, 0) + bytes(16),
    }  # fmt: skip


def _checksum(data: bytes) -> int:
    data += b"\0" * (-len(data) % 4)
    return sum(struct.unpack(f">{len(data) // 4}I", data)) & 0xFFFFFFFF


def _sfnt(padding: bytes) -> bytes:
    tables = _tables()
    if padding:
        tables["wpPd"] = padding
    count = len(tables)
    power = 1 << (count.bit_length() - 1)
    head = struct.pack(">IHHHH", 0x10000, count, power * 16, power.bit_length() - 1, (count - power) * 16)
    offset = len(head) + 16 * count
    directory, body = b"", b""
    for tag, data in sorted(tables.items()):
        place = offset + len(body)
        directory += struct.pack(">4sIII", tag.encode(), _checksum(data), place, len(data))
        body += data + b"\0" * (-len(data) % 4)
    return head + directory + body


def _woff(padding: bytes) -> bytes:
    tables = sorted(_tables().items())
    offset = 44 + 20 * len(tables)
    directory, body = b"", b""
    for tag, data in tables:
        place = offset + len(body)
        directory += struct.pack(">4sIIII", tag.encode(), place, len(data), len(data), _checksum(data))
        body += data + b"\0" * (-len(data) % 4)
    total = offset + len(body) + len(padding)
    private = (offset + len(body), len(padding)) if padding else (0, 0)
    head = struct.pack(
        ">IIIHHIHHIIIII", 0x774F4646, 0x10000, total, len(tables), 0, len(_sfnt(b"")), 1, 0, 0, 0, 0, *private
    )
    return head + directory + body + padding


def _woff2(size: int, seed: str) -> bytes:
    """Padding is a table, since a WOFF2 file may not be larger than its font, and a private block."""
    bare = len(_woff2_file({}, b"", 0))
    if size < bare:
        return random_bytes(seed, size)
    private, made, room = random_bytes(seed + "rest", 4096), b"", 0
    while len(made) != size:  # Brotli's overhead on random data is not known in advance
        room += max(0, len(made) - size) + _ROOM
        table = random_bytes(seed, max(0, size - bare - room))
        # Zeros take no space in the file and keep the font larger than the file.
        made = _woff2_file({"wpPd": table + bytes(len(table) // 50 + 64)} if table else {}, private, size)
    return made


def _woff2_file(extra: dict[str, bytes], private: bytes, size: int) -> bytes:
    """The file, padded to ``size`` with a part of ``private`` if it is smaller."""
    # The outlines' index comes right after the outlines (WOFF 2.0, section 5.1).
    tables = sorted(_tables().items(), key=lambda table: "glyg" if table[0] == "loca" else table[0])
    tables += extra.items()
    directory = b""
    for tag, data in tables:
        flags = _WOFF2_TAGS.get(tag, _OTHER_TAG) | (_UNTRANSFORMED if tag in ("glyf", "loca") else 0)
        directory += bytes([flags]) + (b"" if tag in _WOFF2_TAGS else tag.encode()) + _base128(len(data))
    packed = brotli.compress(b"".join(data for _, data in tables), mode=brotli.MODE_FONT, quality=5)
    end = 48 + len(directory) + len(packed)
    start = end + -end % 4
    block = (b"\0" * (start - end) + private)[: max(0, size - end)] if size > start else b""
    place = (start, len(block) - (start - end)) if block else (0, 0)
    font_size = sum(16 + len(data) + -len(data) % 4 for _, data in tables) + 12
    head = struct.pack(
        ">IIIHHIIHH", 0x774F4632, 0x10000, end + len(block), len(tables), 0, font_size, len(packed), 1, 0
    )
    head += struct.pack(">IIIII", 0, 0, 0, *place)
    return (head + directory + packed + block).ljust(size, b"\0")


def _base128(number: int) -> bytes:
    digits = bytes([number & 0x7F])
    while number := number >> 7:
        digits = bytes([number & 0x7F | 0x80]) + digits
    return digits
