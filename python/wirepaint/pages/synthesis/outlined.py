"""Documents of a shape that was made from rehearsals: elements are at their recorded positions.

The parser stops at the same scripts as in the recorded document, stylesheets block the
scripts after them and the first paint, and the document has as many elements as the recorded one.
"""

from __future__ import annotations

import html

from wirepaint.pages.model import Outline, Page, Place, Resource
from wirepaint.pages.synthesis import markup
from wirepaint.pages.synthesis.binary import sides
from wirepaint.pages.synthesis.markup import SENTENCES, Driver

_OPEN, _CLOSE = "<!--", "-->"
_LEAST_GAP = 24
"""Smallest filler in bytes that gets a comment of its own."""
_EVERY = 1500
"""Bytes of the body between two groups of placeholder elements for the document's other elements."""
_SMALL = 10_000
"""CSS pixels below which an image is small. Chromium asks for the first five larger ones with medium
priority (`kBoostImagePriority` in blink/common/features.cc)."""
_LARGE = (120, 120)
_LEAST_MS = 0.1
_RENDERING_MS, _RENDERING_MS_PER_ELEMENT = 6.0, 0.003
"""Time of a synthesised document for styles, layout and paint (benches/shapes.py, pages with bodies)."""
_ELEMENT = "<s></s>"
_AS = {"js": "script", "css": "style", "font": "font", "image": "image"}


def document(
    driver: Driver, page: Page, resource: Resource, outline: Outline, short: list[Resource]
) -> tuple[list[bytes], list[int] | None]:
    """Parts of the document and shares of the filler between them; ``short`` as in ``markup.document``."""
    children = driver.children.get(resource.id, [])
    asked = [(child, after) for child, after in children if child.cause.kind == "script"]
    placed: list[tuple[int, str]] = []
    for place in outline.places:
        if element := _element(place, page.resources[place.of]):
            placed.append((place.at, element))
        elif any(child.id == place.of for child, _ in children):
            asked.append((page.resources[place.of], 0.0))
    each = (resource.compute_ms or 0.0) / max(1, len(outline.inline_scripts))
    inline = f"_w.burn({each:.1f})" if each >= _LEAST_MS else "0"
    placed += [(at, f"<script>{inline}</script>") for at in outline.inline_scripts]
    styled = [child for child, _ in children if child.cause.kind == "css"]
    preloaded = dict.fromkeys(place.of for place in outline.places if place.element == "preload")
    styled += [page.resources[number] for number in preloaded if page.resources[number].type == "font"]
    start = _start(driver, page, resource, outline, styled, asked, short)
    body = f"<body>{_shown(driver, page, resource, styled)}"
    end = "</body></html>"
    pieces = [(0, start), *sorted([*placed, (outline.body_at, body)], key=lambda piece: piece[0])]
    size = resource.decoded_bytes
    for groups in (_groups(outline, size), []):
        parts, gaps = _joined(sorted([*pieces, *groups], key=lambda piece: piece[0]), end, size)
        if sum(map(len, parts)) <= size:
            return parts, gaps
    whole = "".join(piece for _, piece in pieces) + end
    return [whole.encode(), b""], None


def shown_sides(child: Resource) -> tuple[int, int]:
    """The sides in an image element: large enough for the priority of its request."""
    width, height = sides(child.wire_bytes)
    if child.priority in ("Medium", *markup.HIGH) and width * height < _SMALL:
        return _LARGE
    return width, height


def _joined(pieces: list[tuple[int, str]], end: str, size: int) -> tuple[list[bytes], list[int]]:
    """Texts with filler in comments between them, so that each is at its offset or soon after."""
    parts, gaps = [""], []
    at = 0
    for place, text in [*pieces, (max(size - len(end), 0), end)]:
        comment = len(_OPEN) + len(_CLOSE)
        if (gap := place - at - comment) >= _LEAST_GAP:
            parts[-1] += _OPEN
            parts.append(_CLOSE)
            gaps.append(gap)
            at = place
        parts[-1] += text
        at += len(text.encode())
    if len(parts) == 1:
        parts, gaps = [parts[0] + _OPEN, _CLOSE], [1]
    return [part.encode() for part in parts], gaps


def _groups(outline: Outline, size: int) -> list[tuple[int, str]]:
    """Elements of the body that load nothing, evenly spread."""
    count = max(0, outline.elements - len(outline.places))
    room = max(1, size - outline.body_at)
    stops = max(1, min(room // _EVERY, count))
    shares = [count * (stop + 1) // stops - count * stop // stops for stop in range(stops)]
    return [
        (outline.body_at + room * stop // stops + 1, _ELEMENT * share)
        for stop, share in enumerate(shares)
        if share
    ]


def _own_rendering(outline: Outline) -> float:
    """Time of styles, layout and paint of the synthesised document, in ms."""
    return _RENDERING_MS + _RENDERING_MS_PER_ELEMENT * outline.elements


def _start(
    driver: Driver,
    page: Page,
    resource: Resource,
    outline: Outline,
    styled: list[Resource],
    asked: list[tuple[Resource, float]],
    short: list[Resource],
) -> str:
    names = markup.names(driver, short)
    calls = [driver.call(child, after) for child, after in asked]
    call = f"_w({markup.js(calls)})" if calls else ""
    computes = bool(outline.inline_scripts) and (resource.compute_ms or 0.0) >= _LEAST_MS
    if (rendering := outline.rendering_ms - _own_rendering(outline)) >= _LEAST_MS:
        call += f";_w.lay({rendering:.1f})"
    if outline.callbacks_ms >= _LEAST_MS:
        call += f";_w.ready({outline.callbacks_ms:.1f})"
    needs = call or computes or resource.id in driver.scripts
    script = f"<script>{markup.runtime('shape.js')}{names}{call}</script>" if needs else ""
    imports = "".join(f'@import url("{child.url}");' for child in styled if child.type == "css")
    imports = f"<style>{imports}</style>" if imports else ""
    rules = "".join(markup.rule(child) for child in styled if child.type != "css")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(page.name)}</title>'
        f'<link rel="icon" href="data:,">{imports}<style>{markup.STYLE}{rules}</style>{script}'
    )


def _shown(driver: Driver, page: Page, resource: Resource, styled: list[Resource]) -> str:
    """Text, and elements that use the fonts and pictures of stylesheets."""
    shown = resource is driver.base
    text = f"<h1>{html.escape(page.name)}</h1><p>{SENTENCES}</p>" if shown else "<p>frame</p>"
    used = [child for child in styled if child.type != "css"] + markup.styled(driver, resource)
    return text + "".join(markup.user(child) for child in used)


def _element(place: Place, child: Resource) -> str | None:
    """The element as recorded; None if the resource is asked for in another way."""
    url = html.escape(child.url, quote=True)
    more = " crossorigin" if place.anonymous else ""
    if place.urgent is not None:
        more += f' fetchpriority="{"high" if place.urgent else "low"}"'
    match place.element:
        case "stylesheet":
            return f'<link rel="stylesheet" href="{url}"{more}>'
        case "script" | "async_script" | "deferred_script":
            word = {"script": "", "async_script": " async", "deferred_script": " defer"}[place.element]
            return f'<script{word} src="{url}"{more}></script>'
        case "preload" if child.type in _AS:
            return f'<link rel="preload" as="{_AS[child.type]}" href="{url}"{more}>'
        case "frame":
            return f'<iframe src="{url}"></iframe>'
        case "lazy" if child.type == "html":
            return f'<iframe loading="lazy" style="position:absolute;top:0" src="{url}"></iframe>'
        case "lazy":
            return f'<img loading="lazy" style="position:absolute;top:0" src="{url}"{more} alt="">'
        case "other" if child.type == "css":
            return f'<link rel="stylesheet" media="print" href="{url}"{more}>'
        case "image" | "other" if child.type == "image":
            width, height = shown_sides(child)
            return f'<img src="{url}" width="{width}" height="{height}" alt=""{more}>'
        case "image":
            return f'<img src="{url}" alt=""{more}>'
        case "other" if child.type == "html":
            return f'<iframe src="{url}"></iframe>'
        case _:
            return None
