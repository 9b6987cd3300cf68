"""Synthesises the bodies that a recording lacks.

:func:`synthesise` gives every resource of a page its headers and, if its body was not recorded,
a body of the recorded type and sizes. Synthesised scripts, stylesheets and documents cause the
recorded requests. The bytes depend only on the page and the seed.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirepaint.pages import headers
from wirepaint.pages.codings import Coding, coding_of, encode
from wirepaint.pages.model import Page, Resource
from wirepaint.pages.synthesis import binary, markup, outlined
from wirepaint.pages.synthesis.filler import fit, random_bytes
from wirepaint.pages.synthesis.font import font
from wirepaint.pages.synthesis.markup import Driver

_PLAIN_SIZE = 30
"""Smallest size in bytes of a JSON body with a data string."""


def synthesise(page: Page) -> Iterator[tuple[Resource, bytes | None]]:
    """Each resource ready to be served, with its new body; None if it keeps its stored one."""
    driver = Driver(page)
    short = _short_scripts(page, driver)
    for resource in page.resources:
        made = resource.model_copy()
        if resource.id in driver.driven or resource is driver.base:
            made.headers = _allowed(driver, resource)
        if not resource.synthetic:
            yield made, None
            continue
        coding = coding_of(resource.header("content-encoding"))
        decoded, wire = _body(page, driver, made, coding, short)
        if decoded is wire:
            made.headers = headers.replaced(made.headers, "content-encoding", None)
            made.compressibility = None
        made.residual_bytes = len(wire) - resource.wire_bytes
        made.wire_bytes, made.decoded_bytes = len(wire), len(decoded)
        yield made, wire


def _allowed(driver: Driver, resource: Resource) -> headers.Headers:
    """Headers with which the browser accepts the answer to the driver's request."""
    result = list(resource.headers)
    content_type = (resource.header("content-type") or "").lower()
    wanted = {"html": "html", "css": "css", "js": "javascript", "image": "image/"}.get(resource.type)
    if (wanted and wanted not in content_type) or "utf-16" in content_type:
        usual = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript"}
        result = headers.replaced(result, "content-type", usual.get(resource.type, "image/gif"))
    if resource.type in ("font", "data", "media", "other") or (
        resource.id in driver.anonymous or driver.fetched(resource)
    ):
        named = driver.credentials(resource)
        allowed = markup.origin(driver.asking_document(resource).url) if named else "*"
        result = headers.replaced(result, "access-control-allow-origin", allowed)
        if not named:
            result = headers.replaced(result, "access-control-allow-credentials", None)
    return result


def _short_scripts(page: Page, driver: Driver) -> set[int]:
    """Scripts that are too small to name their children; their document names them."""
    short: set[int] = set()
    for resource in page.resources:
        if resource.type == "js" and resource.synthetic and driver.acts(resource):
            if not driver.document(resource).synthetic:
                continue
            full = b"".join(markup.script(driver, resource, short=False, alone=False))
            coding = coding_of(resource.header("content-encoding"))
            if len(full) > resource.decoded_bytes or len(encode(full, coding, 4)) > resource.wire_bytes:
                short.add(resource.id)
    return short


def _body(
    page: Page, driver: Driver, resource: Resource, coding: Coding, short: set[int]
) -> tuple[bytes, bytes]:
    """The decoded body and the body on the wire; the same object without a coding."""
    seed = f"{page.seed}:{resource.id}:{resource.url}"
    mime = (resource.header("content-type") or "").lower()
    size = resource.wire_bytes
    parts: list[bytes] = [b"", b""]
    gaps: list[int] | None = None
    if 300 <= resource.status < 400:
        pass
    elif resource.type == "html":
        keeps = [script for script in driver.scripts.get(resource.id, []) if script.id in short]
        own = page.resources[resource.id]
        if own.outline:
            parts, gaps = outlined.document(driver, page, own, own.outline, keeps)
        else:
            parts = markup.document(driver, page, own, keeps)
    elif resource.type == "css":
        parts = markup.stylesheet(driver, resource)
    elif resource.type == "js":
        alone = not driver.document(page.resources[resource.id]).synthetic
        parts = markup.script(driver, resource, short=resource.id in short, alone=alone)
    elif "svg" in mime and resource.type == "image":
        parts = _svg(resource)
    elif resource.type == "image":
        made, kind = binary.image(mime, size, seed)
        resource.headers = headers.replaced(resource.headers, "content-type", kind)
        return made, made
    elif resource.type == "font":
        made = font(mime or resource.url, size, seed)
        return made, made
    elif resource.type == "media":
        made = binary.media(size, seed)
        return made, made
    elif "json" in mime:
        room = resource.decoded_bytes >= _PLAIN_SIZE
        parts = [b'{"data":"', b'"}'] if room else [b"{", b"}"] if resource.decoded_bytes > 1 else [b"0", b""]
    elif not any(word in mime for word in ("text", "xml", "javascript", "urlencoded")):
        made = random_bytes(seed, size)
        return made, made
    decoded = resource.decoded_bytes if coding != "identity" else size
    ending = b" " if "json" in mime else b"\n"
    if "json" in mime and decoded < _PLAIN_SIZE:
        text = (parts[0] + parts[1].rjust(max(0, decoded - len(parts[0]))))[: max(decoded, 1)]
        return fit([text, b""], decoded, size, coding, seed)
    return fit(parts, decoded, size, coding, seed, ending, gaps)


def _svg(resource: Resource) -> list[bytes]:
    width, height = binary.sides(resource.decoded_bytes)
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{min(width, 300)}" height="{min(height, 200)}">'
        f'<rect width="100%" height="100%" fill="#7a8"/>'
    )
    if resource.decoded_bytes < len(start) + 13:
        return [b'<svg xmlns="http://www.w3.org/2000/svg"/>', b""]
    return [start.encode() + b"<!--", b"--></svg>"]
