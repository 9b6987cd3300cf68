"""The tables ``frame`` and ``cpu``: what the screen showed during a visit, how busy its browser was."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

from PIL import Image

from wirepaint.runners.testbed.browser.contract import PageLoad

SIDE = 240
"""Longest side of a kept picture in pixels."""
QUALITY = 45
"""Of WebP: at this one text of a thumbnail is still recognised, and a picture has 1 to 5 kB."""


def tables(loads: Sequence[PageLoad]) -> dict[str, list[dict[str, Any]]]:
    """Rows of both tables. Encodes pictures: call it when nothing is measured any more."""
    return {
        "frame": [
            {
                "visit": visit,
                "time": frame.time,
                "progress": frame.progress,
                "picture": frame.picture and webp(frame.picture),
            }
            for visit, load in enumerate(loads)
            for frame in load.frames
        ],
        "cpu": [
            {"visit": visit, "time": time, "browser": cpu_s}
            for visit, load in enumerate(loads)
            for time, cpu_s in load.cpu_samples
        ],
    }


def webp(jpeg: str) -> str:
    """A base64 JPEG as a smaller base64 WebP."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(jpeg))) as image:
        image.thumbnail((SIDE, SIDE))
        image.convert("RGB").save(small, "WEBP", quality=QUALITY)
    return base64.b64encode(small.getvalue()).decode("ascii")
