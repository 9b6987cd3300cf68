"""Images and media of an exact size that a browser can decode.

The content is small. The rest is padding in the place that each format
has for other data (a JPEG comment, a PNG ancillary chunk, a GIF comment, a RIFF chunk), filled
with random bytes so that no coding on the way can shrink it. If the format allows, padding
comes before the picture, so a browser cannot paint before the last bytes arrive.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from wirepaint.pages.synthesis.filler import random_bytes

_BITS_PER_PIXEL = 1.6
"""Typical of a photo on the web: makes the picture's sides plausible for its size."""


_MOST_PADDING = 2**24
"""Bytes; a larger picture ends in zeros."""


def image(mime: str, size: int, seed: str) -> tuple[bytes, str]:
    """An image of ``size`` bytes and its content-type: ``mime`` if it can be made, else image/jpeg.

    Below the smallest valid file of the type (GIF 37 bytes, PNG 69, JPEG 160, WebP 50), a smaller
    type is used; below all of them the bytes are a cut-off GIF.
    """
    mime = mime.split(";")[0].strip().lower()
    makers = {"image/png": _png, "image/gif": _gif, "image/webp": _webp, "image/jpeg": _jpeg}
    first = mime if mime in makers else "image/jpeg"
    for kind in dict.fromkeys((first, "image/png", "image/gif")):
        made = makers[kind](size, seed)
        if len(made) == size:
            return made, mime if kind == first and mime == first else kind
    return _gif(37, seed)[:size], "image/gif"


def sides(size: int) -> tuple[int, int]:
    """Width and height in pixels, 4:3, plausible for an image of ``size`` bytes."""
    pixels = max(1.0, size * 8 / _BITS_PER_PIXEL)
    width = min(1600, max(1, round((pixels * 4 / 3) ** 0.5)))
    return (1, 1) if size < 200 else (width, max(1, width * 3 // 4))


def media(size: int, seed: str) -> bytes:
    """An MP4 of ``size`` bytes with only file type and free space."""
    head = struct.pack(">I4s4sI4s", 20, b"ftyp", b"isom", 512, b"isom")
    if size < len(head) + 8:
        return head[:size]
    head += struct.pack(">I4s", size - len(head), b"free")
    return random_bytes(seed, size - len(head), before=head)


def _fill(make: Callable[[bytes], bytes], size: int, seed: str) -> bytes:
    """``make(padding)`` with as much padding as ``size`` allows."""
    bare = len(make(b""))
    if bare >= size:
        return make(b"")
    overhead = len(make(b"\1")) - bare - 1
    padding = random_bytes(seed, max(0, min(size, _MOST_PADDING) - bare - overhead))
    while padding and len(make(padding)) > size:
        padding = padding[: len(padding) - (len(make(padding)) - size)]
    made = make(padding)
    return made + bytes(size - len(made))  # decoders stop at the end marker


def _png(size: int, seed: str) -> bytes:
    width, height = sides(size)
    shade = random_bytes(seed + "shade", 2)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(
        b"\0" + bytes([shade[(y // 16) & 1] if width > 1 else 255]) * width for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)

    def make(padding: bytes) -> bytes:
        extra = chunk(b"wpPd", padding) if padding else b""
        return (
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", head)
            + extra
            + chunk(b"IDAT", zlib.compress(rows, 9))
            + chunk(b"IEND", b"")
        )

    return _fill(make, size, seed)


def _gif(size: int, seed: str) -> bytes:
    """A screen with one painted pixel: GIF serves trackers and small icons."""
    screen = struct.pack("<HH", *sides(size))

    def make(padding: bytes) -> bytes:
        blocks = b"".join(bytes([len(b)]) + b for b in _pieces(padding, 255))
        comment = b"\x21\xfe" + blocks + b"\0" if padding else b""
        palette = b"\x80\0\0" + random_bytes(seed + "shade", 3) + b"\0\0\0"
        picture = b"\x2c\0\0\0\0\1\0\1\0\0\2\2D\1\0"
        return b"GIF89a" + screen + palette + comment + picture + b";"

    return _fill(make, size, seed)


def _jpeg(size: int, seed: str) -> bytes:
    """Grey blocks of 8 x 8 pixels, baseline, two Huffman codes."""
    width, height = sides(size)
    blocks = -(-width // 8) * -(-height // 8)
    # DC difference: code 0 is no change, code 10 is category 6 with six bits; AC: 0 ends the block.
    noise = random_bytes(seed + "shade", blocks)
    level, bits = 0, []
    for byte in noise:
        step = 40 if byte & 1 else -40
        if byte < 64 and -400 <= level + step <= 400:
            level += step
            bits.append(f"10{step if step > 0 else step + 63:06b}0")
        else:
            bits.append("00")
    stream = "".join(bits)
    stream += "1" * (-len(stream) % 8)
    scan = int(stream, 2).to_bytes(len(stream) // 8, "big").replace(b"\xff", b"\xff\0")

    def segment(marker: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data

    def make(padding: bytes) -> bytes:
        return (
            b"\xff\xd8"
            + segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
            + b"".join(segment(0xFE, piece) for piece in _pieces(padding, 65_000))
            + segment(0xDB, b"\0" + b"\2" * 64)
            + segment(0xC0, struct.pack(">BHHBBBB", 8, height, width, 1, 1, 0x11, 0))
            + segment(0xC4, b"\0" + bytes([1, 1] + [0] * 14) + b"\0\6")
            + segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0")
            + segment(0xDA, b"\1\1\0\0\x3f\0")
            + scan
            + b"\xff\xd9"
        )

    return _fill(make, size, seed)


def _webp(size: int, seed: str) -> bytes:
    """One colour, lossless: five Huffman codes of a single symbol need no bit per pixel."""
    width, height = sides(size)
    red, green, blue = random_bytes(seed + "shade", 3)
    bits = value = 0

    def put(number: int, count: int) -> None:
        nonlocal bits, value
        value |= number << bits
        bits += count

    put(width - 1, 14)
    put(height - 1, 14)
    put(0, 1 + 3 + 1 + 1 + 1)  # no alpha, version 0, no transform, no colour cache, one code group
    for symbol in (green, red, blue, 255):
        put(0b101 | symbol << 3, 11)  # simple code, one symbol, of 8 bits
    put(0b001, 4)  # distances: one symbol, of 1 bit, 0
    frame = b"\x2f" + value.to_bytes((bits + 7) // 8, "little")

    def chunk(kind: bytes, data: bytes) -> bytes:
        return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)

    def make(padding: bytes) -> bytes:
        extended = chunk(
            b"VP8X", bytes(4) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
        )
        body = b"WEBP" + extended + chunk(b"VP8L", frame) + (chunk(b"wpPd", padding) if padding else b"")
        return b"RIFF" + struct.pack("<I", len(body)) + body

    return _fill(make, size, seed)


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]
