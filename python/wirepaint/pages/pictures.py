"""Reads the size of a picture from its first bytes, without decoding it."""

from __future__ import annotations

import io
import math
import re
import struct
import warnings

from PIL import Image

_BY_PILLOW = ("WEBP", "AVIF", "BMP", "ICO")
_LARGEST = 2**24
"""Largest picture in bytes that Pillow gets."""
_MOST_SEGMENTS = 10_000
_MOST_PIXELS = 2**31
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""Markers of JPEG before width and height (ITU-T T.81, table B.1)."""
_SVG = re.compile(rb"<svg\b[^>]*>", re.S)
_SVG_SIDE = re.compile(rb"\b(width|height|viewBox)\s*=\s*[\"']([^\"']*)[\"']")


def natural_size(body: bytes) -> tuple[float, float] | None:
    """Width and height that an image states, in CSS pixels; None if it states none."""
    sides = _stated(body) or _svg(body)
    if sides is None or not all(0 <= side < math.inf for side in sides) or sides[0] * sides[1] > _MOST_PIXELS:
        return None
    return sides


def _stated(body: bytes) -> tuple[float, float] | None:
    if body[:8] == b"\x89PNG\r\n\x1a\n" and body[12:16] == b"IHDR" and len(body) >= 24:
        return struct.unpack(">II", body[16:24])
    if body[:6] in (b"GIF87a", b"GIF89a") and len(body) >= 10:
        return struct.unpack("<HH", body[6:10])
    if body[:2] == b"\xff\xd8":
        return _jpeg(body)
    if len(body) > _LARGEST:
        return None
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            Image.open(io.BytesIO(body), formats=_known()) as image,
        ):
            return image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _known() -> tuple[str, ...]:
    """The formats that this Pillow was built with."""
    Image.init()
    return tuple(name for name in _BY_PILLOW if name in Image.OPEN)


def _jpeg(body: bytes) -> tuple[float, float] | None:
    at = 2
    for _ in range(_MOST_SEGMENTS):
        marker, size = body[at : at + 2], int.from_bytes(body[at + 2 : at + 4])
        if len(marker) < 2 or marker[0] != 0xFF:
            return None
        if marker[1] in _FRAMES and len(body) >= at + 9:
            height, width = struct.unpack(">HH", body[at + 5 : at + 9])
            return width, height
        # Fill bytes stand before a marker; some markers stand alone.
        alone = marker[1] == 1 or 0xD0 <= marker[1] <= 0xD8
        at += 1 if marker[1] == 0xFF else 2 if alone else 2 + size
    return None


def _svg(body: bytes) -> tuple[float, float] | None:
    tag = _SVG.search(body[:4096])
    sides = dict(_SVG_SIDE.findall(tag[0])) if tag else {}
    try:
        if {b"width", b"height"} <= sides.keys():
            return float(sides[b"width"].rstrip(b"px")), float(sides[b"height"].rstrip(b"px"))
        _, _, width, height = map(float, sides.get(b"viewBox", b"").replace(b",", b" ").split())
    except ValueError:
        return None
    return width, height
