"""Synthesised bodies have the recorded type and sizes, and repeat byte by byte."""

from __future__ import annotations

import gzip
import json
import re
import struct
import zlib
from pathlib import Path

import brotli
import pytest
from recording import entry, write

from wirepaint.pages import import_har, prepare, shipped
from wirepaint.pages.synthesis.binary import image, sides
from wirepaint.pages.synthesis.filler import fit
from wirepaint.pages.synthesis.font import font

BASE = "https://site.test/"
SIZES = [*range(1, 400), 1000, 4999, 65_533, 65_539, 70_001, 131_072, 999_999]


@pytest.mark.parametrize(
    ("mime", "smallest"), [("image/gif", 37), ("image/png", 69), ("image/webp", 90), ("image/jpeg", 230)]
)
def test_images_have_the_exact_size_and_their_type_wherever_it_fits(mime: str, smallest: int) -> None:
    for size in SIZES:
        data, kind = image(mime, size, "seed")
        assert len(data) == size
        if size >= smallest:
            assert kind == mime
            marks = {
                "image/gif": b"GIF89a",
                "image/png": b"\x89PNG",
                "image/webp": b"RIFF",
                "image/jpeg": b"\xff\xd8",
            }
            assert data.startswith(marks[mime])


def test_a_png_is_made_of_whole_chunks_with_right_checksums() -> None:
    data, _ = image("image/png", 20_000, "seed")
    position, kinds = 8, []
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        content = data[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack(">I", data[position + 8 + length : position + 12 + length])
        assert checksum == zlib.crc32(kind + content)
        kinds.append(kind)
        position += 12 + length
    assert kinds == [b"IHDR", b"wpPd", b"IDAT", b"IEND"]


def test_an_unknown_image_type_becomes_jpeg_and_says_so() -> None:
    data, kind = image("image/avif", 5000, "seed")
    assert (kind, data[:2], len(data)) == ("image/jpeg", b"\xff\xd8", 5000)
    assert sides(100_000) == (816, 612)


@pytest.mark.parametrize(
    ("mime", "mark"),
    [("font/woff2", b"wOF2"), ("font/woff", b"wOFF"), ("font/ttf", b"\0\1\0\0"), ("", b"wOF2")],
)
def test_fonts_have_the_exact_size(mime: str, mark: bytes) -> None:
    for size in (10, 300, 1500, 1501, 1502, 1503, 15_736, 100_000):
        data = font(mime, size, "seed")
        assert len(data) == size
        if size > 1400:
            assert data.startswith(mark)


@pytest.mark.parametrize("coding", ["gzip", "br"])
@pytest.mark.parametrize(
    ("decoded", "wire"),
    [
        (60, 80),
        (413, 300),
        (5198, 1400),
        (20_000, 9000),
        (100_000, 900),
        (100_000, 95_000),
        (300_000, 35_000),
    ],
)
def test_text_meets_both_sizes(coding: str, decoded: int, wire: int) -> None:
    parts = [b"<p>start", b"middle", b"end"]
    text, encoded = fit(parts, decoded, wire, coding, "seed")  # pyright: ignore[reportArgumentType]
    assert (len(text), len(encoded)) == (decoded, wire)
    assert (gzip if coding == "gzip" else brotli).decompress(encoded) == text
    assert re.fullmatch(rb"<p>start.*middle.*end", text, re.S)


def test_text_is_made_compressible_rather_than_padded() -> None:
    """The share of padding stays below 1 % or 64 bytes: decoders work for their bytes."""
    for decoded, wire in ((5198, 1400), (20_000, 9000), (300_000, 35_000), (1_000_000, 700_000)):
        text, _ = fit([b"", b""], decoded, wire, "gzip", "seed")
        assert wire - len(gzip.compress(text, 6)) <= max(64, wire // 100)


def test_json_is_json_and_scripts_are_comments(tmp_path: Path) -> None:
    sizes = (1, 2, 3, 9, 29, 30, 31, 500, 5000)
    entries = [entry(BASE, size=9000)]
    entries += [entry(f"{BASE}{n}.json", at=60 + n, mime="application/json", size=n) for n in sizes]
    entries += [entry(f"{BASE}{n}.js", at=60 + n, mime="text/javascript", size=n) for n in sizes]
    import_har(write(tmp_path, *entries), tmp_path / "page")
    prepared = prepare(tmp_path / "page", tmp_path / "cache")
    for response, resource in zip(prepared.responses, prepared.resources, strict=True):
        data = Path(response["body"]).read_bytes()
        assert len(data) == resource["wire_bytes"]
        if response["url"].endswith(".json"):
            json.loads(data)
            assert resource["residual_bytes"] == 0
        elif response["url"].endswith(".js") and len(data) >= 4:
            assert data.startswith(b"/*")
            assert data.endswith(b"*/")
            assert b"*/" not in data[:-2]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_what_is_served_has_the_recorded_sizes(name: str, tmp_path: Path) -> None:
    """Within 1 % or 64 bytes on the wire and decoded, for every resource that is large enough to matter."""
    index = json.loads((shipped()[name] / "page.json").read_text())
    prepared = prepare(shipped()[name], tmp_path)
    for recorded, served, response in zip(
        index["resources"], prepared.resources, prepared.responses, strict=True
    ):
        size = Path(response["body"]).stat().st_size if response["body"] else 0
        assert size == served["wire_bytes"]
        for key in ("wire_bytes", "decoded_bytes"):
            wanted = recorded[key]
            coded = served["type"] not in ("image", "font", "media") or "svg" in str(served["headers"])
            if key == "wire_bytes" or coded:
                assert abs(served[key] - wanted) <= max(64, wanted // 100), served["url"]
