"""Positions of the boxes of a synthesised document; exact, since its markup and style are ours.

Text comes first, then elements that use fonts and pictures of stylesheets, then the images and frames of
the document, then the elements that the driver appends, all on lines as inline boxes. Sizes are those of
``markup.STYLE``, in CSS pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirepaint.pages.layout import CHARACTER_EM
from wirepaint.pages.model import Resource
from wirepaint.pages.synthesis.binary import sides
from wirepaint.pages.synthesis.markup import SENTENCES, Driver
from wirepaint.pages.synthesis.outlined import shown_sides

_MARGIN = 16
_FONT = 16
_LINE = 1.4 * _FONT
_HEADING = 0.67 * 32 + 1.4 * 32 + 0.67 * 32
"""Height of the heading: margins and line."""
_LETTERS = 15
"""Width of the text that uses a font."""
_ICON = 40
_DESCENT = 6.4
"""Space below a box on a line of text."""
_MOST = (300, 225)
_FRAME = (300, 200)
_MARGIN_OF_IMAGES = 2

Natural = Callable[[int], tuple[float, float] | None]
"""Width and height of the image that a resource is or redirects to."""


def lines(driver: Driver, causes: dict[int, dict[str, Any]], viewport: tuple[int, int]) -> dict[str, Any]:
    """The largest text of the page's own document, and the lines of its boxes."""
    width = viewport[0] - 2 * _MARGIN
    text = len(SENTENCES) * CHARACTER_EM * _FONT
    top = _HEADING + -(-text // width) * _LINE + _FONT
    document = driver.base.id
    preloaded = [c for c, _ in driver.children.get(document, []) if c.type == "font" and c.id in causes]
    styled = [c for s in driver.sheets.get(document, []) for c, _ in driver.children[s.id] if c.type != "css"]
    used = 0
    for child in [*preloaded, *styled]:
        own = _LETTERS if child.type == "font" else _ICON
        if used + own > width:
            used, top = 0, top + _ICON + _DESCENT
        used += own
    line = {
        "top": round(top),
        "used": used,
        "width": width,
        "descent": round(_DESCENT),
        "viewport": viewport[1],
    }
    return {"text_area": round(text * _LINE), "flow": line}


def boxes(driver: Driver, causes: dict[int, dict[str, Any]], natural: Natural) -> dict[int, dict[str, Any]]:
    """The boxes of the page's own document by resource (the first of a chain of redirects).

    ``causes`` are the causes from the document's text, in the form of the page model.
    """
    found: dict[int, dict[str, Any]] = {}
    for child, after in (entry for children in driver.children.values() for entry in children):
        by_style = driver.driven[child.id].type == "css"
        if by_style or driver.asking_document(child).id != driver.base.id:
            continue
        element = causes.get(child.id, {}).get("element")
        asked = driver.call(child, after)[0] if element is None else None
        if element == "frame" or asked == "f":
            found[child.id] = _box(_FRAME, margin=0, reserved=True)
        elif element == "image":
            stated = _fit(_said(driver, child), keep=False)
            found[child.id] = _box(stated, margin=_MARGIN_OF_IMAGES, reserved=True)
        elif asked == "i" and (size := natural(child.id)):
            found[child.id] = _box(_fit(size, keep=True), margin=_MARGIN_OF_IMAGES, reserved=False)
    return found


def _said(driver: Driver, image: Resource) -> tuple[int, int]:
    """The sides in the image's element."""
    return shown_sides(image) if driver.is_shape else sides(image.wire_bytes)


def _fit(size: tuple[float, float], *, keep: bool) -> tuple[float, float]:
    """``size`` within the largest sides of images; ``keep`` the proportion, as without attributes."""
    scales = [most / max(own, 1) for most, own in zip(_MOST, size, strict=True)]
    across, down = (min(scales),) * 2 if keep else scales
    return size[0] * min(1.0, across), size[1] * min(1.0, down)


def _box(size: tuple[float, float], *, margin: int, reserved: bool) -> dict[str, Any]:
    return {"width": round(size[0]), "height": round(size[1]), "margin": margin, "reserved": reserved}
