"""HTML, CSS and JavaScript that cause a page's recorded requests.

A document names the children that its parser found as elements, in recorded order; those that
came later or from scripts are asked for by a small driver (``runtime.js``) after the recorded
delay. A stylesheet uses its fonts and pictures through classes of elements that its document
holds. A script names its children to the driver; where it is too small for that, the document
keeps the names and the script says only its number.
"""

from __future__ import annotations

import html
import json
from importlib import resources
from urllib.parse import urlsplit

from wirepaint.pages.model import Page, Resource
from wirepaint.pages.synthesis.binary import sides

PARSER_DELAY_MS = 100.0
"""A child of the parser that began later than this after its document is asked for by the driver."""

LATE_DELAY_MS = 250.0
"""Longest delay of a request after the load event: a visit ends when the network stays quiet."""

_LONGEST_CHAIN = 40
"""Data after data after data: the driver holds them nested."""

_LOW = ("Low", "VeryLow", "Lowest")
_HIGH = ("High", "VeryHigh", "Highest")
_PIXEL_BYTES = 500
"""Images up to this size that a script asks for count as trackers and are not shown."""

_STYLE = (
    "body{margin:16px;font:16px/1.4 sans-serif;background:#fff;color:#222}"
    "img{max-width:300px;max-height:225px;margin:2px}"
    "i{display:inline-block;width:40px;height:40px}b{font-size:12px}iframe{width:300px;height:200px;border:0}"
)
SENTENCES = (
    "This text stands for the text of a recorded page. Its length on the wire, its kind and the "
    "requests that it causes are those of the recording; the words are not. It is shown in the first "
    "view port so that the browser has something to paint before the pictures have arrived."
)


def runtime() -> str:
    """The driver's source without comments."""
    text = resources.files("wirepaint.pages.synthesis").joinpath("runtime.js").read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines() if not line.startswith("//"))


class Driver:
    """Knows for each synthetic resource of a page which children it asks for, and how."""

    def __init__(self, page: Page) -> None:
        self._all = page.resources
        self.base = page.resources[0]
        """The document after redirects."""
        for resource in page.resources:
            if resource.cause.kind == "redirect" and resource.cause.by == self.base.id:
                self.base = resource
        self.children: dict[int, list[tuple[Resource, float]]] = {}
        self.driven: dict[int, Resource] = {}
        """Who asks for what: the parent by the resource's id."""
        self.sheets: dict[int, list[Resource]] = {}
        self.scripts: dict[int, list[Resource]] = {}
        """Those of a document that ask for something, by the document's id."""
        self._document: dict[int, Resource] = {0: page.resources[0]}
        self._after_data: dict[int, int] = {}
        for resource in self._all[1:]:
            above = self._all[resource.cause.by or 0]
            leads = above.type == "html" and not 300 <= above.status < 400
            self._document[resource.id] = above if leads else self._document[above.id]
            self._place(resource)
        for number in self.children:
            asking = self._all[number]
            kept = {"css": self.sheets, "js": self.scripts}.get(asking.type)
            if kept is not None:
                kept.setdefault(self.document(asking).id, []).append(asking)

    def _place(self, resource: Resource) -> None:
        """Files ``resource`` under the nearest cause that can ask for it."""
        cause = resource.cause
        if cause.kind == "redirect":
            if cause.by is not None and cause.by in self.driven:
                self.driven[resource.id] = self.driven[cause.by]
            return
        after, parent = cause.after_ms, self._all[cause.by or 0]
        while not self._can_ask(parent, resource):
            if parent.cause.by is None or (parent.body and parent.type in ("html", "css", "js")):
                return  # asked for by a recorded body
            after += parent.cause.after_ms
            parent = self._all[parent.cause.by]
        self.driven[resource.id] = parent
        if parent.type == "data":
            self._after_data[resource.id] = self._after_data.get(parent.id, 0) + 1
        self.children.setdefault(parent.id, []).append((resource, after))

    def _can_ask(self, parent: Resource, child: Resource) -> bool:
        if parent.type == "data":
            # By what asked for it, when it has arrived.
            return parent.id in self.driven and self._after_data.get(parent.id, 0) < _LONGEST_CHAIN
        if not parent.synthetic:
            return False
        if parent.type == "css":
            return child.type in ("font", "image", "css") and not child.recorded.after_load
        return parent.type == "html" or (parent.type == "js" and parent.status < 400)

    def document(self, resource: Resource) -> Resource:
        """The document in which ``resource`` is used."""
        return self._document[resource.id]

    def credentials(self, resource: Resource) -> bool:
        """True when the page asked with credentials, which needs a named origin; not across redirects."""
        redirected = 300 <= resource.status < 400 or resource.cause.kind == "redirect"
        return resource.header("access-control-allow-credentials") == "true" and not redirected

    def asking_document(self, resource: Resource) -> Resource:
        """The document whose driver asks for ``resource``."""
        parent = self.driven.get(resource.id, self.base)
        return parent if parent.type == "html" else self.document(parent)

    def call(self, resource: Resource, after: float) -> list[object]:
        """The driver's entry for one child; that of data holds what is asked for once it has arrived."""
        late = resource.recorded.after_load
        delay = min(after, LATE_DELAY_MS) if late else after
        entry: list[object] = ["d", resource.url, round(delay), int(late)]
        kind = {"js": "s", "css": "c", "html": "f", "font": "t", "image": "i"}.get(resource.type)
        if kind and resource.method == "GET":
            entry[0] = "p" if kind == "i" and resource.wire_bytes <= _PIXEL_BYTES else kind
            if kind == "s" and resource.priority in _HIGH:
                entry.append("high")
            return entry
        options: dict[str, object] = {}
        if resource.method != "GET":
            options["method"] = resource.method
        if resource.method == "POST" and resource.recorded.post_bytes:
            options["body"] = resource.recorded.post_bytes
        if self.credentials(resource):
            options["credentials"] = "include"
        if resource.priority in _LOW:
            options["priority"] = "low"
        then = [self.call(child, after) for child, after in self.children.get(resource.id, [])]
        return [*entry, options, *([then] if then else [])]


def _js(value: object) -> str:
    return (
        json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        .replace("</", "<\\/")
        .replace("<!", "<\\!")
    )


def script(driver: Driver, resource: Resource, *, short: bool, alone: bool) -> list[bytes]:
    """A silent script that asks for its children.

    ``short``: the document keeps their names; ``alone``: no document defines the driver.
    """
    children = [driver.call(child, after) for child, after in driver.children.get(resource.id, [])]
    if not children:
        return [b"/*", b"*/"] if resource.decoded_bytes >= 4 else [b"", b""]
    call = f"_w({resource.id if short else _js(children)});"
    return [((runtime() if alone else "") + call + "/*").encode(), b"*/"]


def stylesheet(driver: Driver, resource: Resource) -> list[bytes]:
    """A stylesheet that imports, and uses the fonts and pictures that it caused."""
    imports, rules = "", ""
    for child, _ in driver.children.get(resource.id, []):
        address = f'url("{_css(child.url)}")'
        if child.type == "css":
            imports += f"@import {address};"
        elif child.type == "font":
            rules += f"@font-face{{font-family:f{child.id};src:{address};font-display:swap}}"
            rules += f".f{child.id}{{font-family:f{child.id}}}"
        else:
            rules += f".b{child.id}{{background-image:{address}}}"
    room = resource.decoded_bytes >= len(imports + rules) + 4
    return [(imports + rules).encode() + (b"/*" if room else b""), b"*/" if room else b""]


def _css(url: str) -> str:
    return url.replace("\\", "\\\\").replace('"', "%22").replace("\n", "")


def document(driver: Driver, page: Page, resource: Resource, short: list[Resource]) -> list[bytes]:
    """A document with its children; ``short`` are the scripts whose children's names it keeps."""
    head: list[str] = []
    body: list[str] = []
    asked: list[list[object]] = []
    fonts: list[str] = []
    pictures = False
    for child, after in driver.children.get(resource.id, []):
        late = after > PARSER_DELAY_MS or child.recorded.after_load or child.cause.kind == "script"
        element = None if late or child.method != "GET" else _element(child, after_pictures=pictures)
        pictures = pictures or child.type == "image"
        if element is None:
            asked.append(driver.call(child, after))
        else:
            (head if element[0] == "head" else body).append(element[1])
            if child.type == "font":
                fonts.append(f'<b class="f{child.id}">Aa</b>')
    uses = fonts + [
        f'<b class="f{r.id}">Aa</b>' if r.type == "font" else f'<i class="b{r.id}"></i>'
        for sheet in driver.sheets.get(resource.id, [])
        for r, _ in driver.children[sheet.id]
        if r.type != "css"
    ]
    names = "".join(
        f"_w.table[{s.id}]={_js([driver.call(c, after) for c, after in driver.children[s.id]])};"
        for s in short
    )
    needs = asked or resource.id in driver.scripts
    inline = f"<script>{runtime()}{names}{f'_w({_js(asked)})' if asked else ''}</script>" if needs else ""
    shown = resource is driver.base
    text = f"<h1>{html.escape(page.name)}</h1><p>{SENTENCES}</p>" if shown else "<p>frame</p>"
    start = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(page.name)}</title>'
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style>{inline}{"".join(head)}</head>'
        f"<body>{text}{''.join(uses)}"
    )
    parts = [start, *body, "</body></html>"]
    if resource.decoded_bytes < sum(len(p.encode()) for p in parts) + 7 * len(parts):
        return ["".join(parts).encode(), b""]
    pieces = [p.encode() for p in parts]
    last = len(pieces) - 1
    return [(b"-->" if i else b"") + piece + (b"<!--" if i < last else b"") for i, piece in enumerate(pieces)]


def _element(child: Resource, *, after_pictures: bool) -> tuple[str, str] | None:
    """Where in the document the parser finds ``child``, and as what element."""
    url = html.escape(child.url, quote=True)
    if child.type == "css":
        return "head", f'<link rel="stylesheet" href="{url}">'
    if child.type == "js":
        if child.priority in _LOW:
            return "head", f'<script async src="{url}"></script>'
        blocking = child.priority in _HIGH or (child.priority is None and not after_pictures)
        return ("head" if blocking else "body"), f'<script src="{url}"></script>'
    if child.type == "image":
        width, height = sides(child.wire_bytes)
        return "body", f'<img src="{url}" width="{width}" height="{height}" alt="">'
    if child.type == "html":
        return "body", f'<iframe src="{url}"></iframe>'
    if child.type == "font":
        rule = f'@font-face{{font-family:f{child.id};src:url("{_css(child.url)}");font-display:swap}}'
        preload = f'<link rel="preload" as="font" crossorigin href="{url}">'
        return "head", f"{preload}<style>{rule}.f{child.id}{{font-family:f{child.id}}}</style>"
    return None


def origin(url: str) -> str:
    """Scheme, host and port of ``url`` as the Origin header writes them."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
