"""Pages of text and photos: what HTTP-AE loaded, made anew.

The paper's pages hold the same text and 1 to 30 JPEGs of the Caltech-101 data set, "10K" in the mean. Its
photos do not ship. Each picture here is a JPEG of a size from that data set's distribution, scaled to 10 kB
in the mean; a page of N photos has the first N. The HTML has no content-encoding: what a proxy's compression
saves depends on it.
"""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

from wirepaint.pages import model
from wirepaint.pages.import_har import check_target, replacing, store

MOST_PHOTOS, MEAN_BYTES = 30, 10_000
PERCENTILES = (
    (1, 5325), (5, 6556), (10, 7256), (20, 8722), (25, 9472), (30, 10176), (40, 11502), (50, 12799),
    (60, 14284), (70, 15991), (75, 16981), (80, 18272), (90, 22009), (95, 25776), (99, 34841),
)  # fmt: skip
"""File sizes of 8,677 Caltech-101 images without the background class: per cent, bytes."""
_PHOTO_SIDES = 300, 200
"""Width and height in CSS pixels: the data set's images are about 300 x 200."""
_HOST = "satellite.example"
_SEED = 2011
_WORDS = 400
"""Words to draw text from: in gzip it takes about a third, as English does."""


def make(photos: int, text_bytes: int, folder: Path, scheme: str = "http") -> model.Page:
    """Writes the page of so many photos to ``folder``, which must be new, empty or such a page."""
    origin = f"{scheme}://{_HOST}"
    check_target(folder)
    with replacing(folder) as target:
        html = document(photos, text_bytes).encode()
        headers = [("cache-control", "max-age=3600")]
        base = model.Resource(
            id=0,
            url=f"{origin}/",
            headers=[("content-type", "text/html; charset=utf-8"), *headers],
            body=store(target, html),
            type="html",
            wire_bytes=len(html),
            decoded_bytes=len(html),
            cause=model.Cause(by=None, kind="navigation"),
        )
        pictures = [
            model.Resource(
                id=number,
                url=f"{origin}/{_name(number)}",
                headers=[("content-type", "image/jpeg"), *headers],
                synthetic=True,
                type="image",
                wire_bytes=size,
                decoded_bytes=size,
                cause=model.Cause(by=0, kind="parser"),
            )
            for number, size in enumerate(sizes()[:photos], 1)
        ]
        page = model.Page(
            name=folder.name,
            title=f"{photos} photos",
            summary="text and photos, as in HTTP-AE",
            source="made by wirepaint; sizes of Caltech-101",
            licence="MIT OR Apache-2.0",
            url=base.url,
            seed=_SEED,
            resources=[base, *pictures],
        )
        model.save_index(page, target)
        return page


def sizes() -> list[int]:
    """Bytes of each photo, 10 kB in the mean; the first few, too, come from all parts of the distribution."""
    drawn = [_quantile(_spread(number)) for number in range(1, MOST_PHOTOS + 1)]
    scaled = [round(size * MEAN_BYTES * MOST_PHOTOS / sum(drawn)) for size in drawn]
    return [scaled[0] + MEAN_BYTES * MOST_PHOTOS - sum(scaled), *scaled[1:]]


def document(photos: int, text_bytes: int) -> str:
    """The HTML: ``text_bytes`` of text, the same on each page, with the photos spread over it."""
    paragraphs = _text(text_bytes)
    width, height = _PHOTO_SIDES
    at: dict[int, list[str]] = {}
    for number in range(1, photos + 1):
        image = f'<img src="{_name(number)}" width="{width}" height="{height}" alt="">'
        at.setdefault((number - 1) * len(paragraphs) // photos, []).append(image)
    body = "\n".join("".join(at.get(i, [])) + f"<p>{text}</p>" for i, text in enumerate(paragraphs))
    head = '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Photos</title></head>'
    return f"{head}\n<body>\n{body}\n</body></html>\n"


def _name(number: int) -> str:
    return f"photo-{number:02}.jpg"


def _spread(number: int) -> float:
    """The ``number``-th of a sequence that fills 0 to 1 evenly (van der Corput, base 2)."""
    return int(f"{number:b}"[::-1], 2) / 2 ** number.bit_length()


def _quantile(share: float) -> float:
    """Bytes below which this share of the data set lies; flat beyond the outer percentiles."""
    points = ((0, PERCENTILES[0][1]), *PERCENTILES, (100, PERCENTILES[-1][1]))
    for (low, least), (high, most) in pairwise(points):
        if 100 * share <= high:
            return least + (most - least) * (100 * share - low) / (high - low)
    raise ValueError(f"share {share}: 0 to 1")


def _text(length: int) -> list[str]:
    """Paragraphs of made-up words, ``length`` bytes together."""
    chance = random.Random(_SEED)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(_WORDS)]
    paragraphs: list[str] = []
    left = length
    while left > 0:
        text = " ".join(chance.choices(words, k=60))[:left]
        paragraphs.append(text)
        left -= len(text)
    return paragraphs
