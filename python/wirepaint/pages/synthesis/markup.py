"""HTML, CSS and JavaScript that cause a page's recorded requests.

A document has elements for the children that its parser found, in recorded order. A small driver
(``runtime.js``) asks for children that came later or from scripts, after the recorded
delay. A stylesheet uses its fonts and pictures through classes of elements in its document.
A script passes its children to the driver. If it is too small for that, the document
has the names and the script passes only its number.
"""

from __future__ import annotations

import html
import json
from importlib import resources
from urllib.parse import urlsplit

from wirepaint.pages.model import Page, Resource, own_document
from wirepaint.pages.synthesis.binary import sides

PARSER_DELAY_MS = 100.0
"""If a child of the parser began later than this after its document, the driver asks for it."""

LATE_DELAY_MS = 250.0
"""Longest delay of a request after the load event: a visit ends when the network stays quiet."""

_LEAST_COMPUTE_MS = 0.5
"""A script that computes for less is only a comment."""

_MOST_ABOVE = 50
"""Longest chain of causes in the search for one that can ask for a resource."""

_LONGEST_CHAIN = 40
"""Longest chain of data requests: the driver's entries are nested."""

LOW = ("Low", "VeryLow", "Lowest")
HIGH = ("High", "VeryHigh", "Highest")
_PIXEL_BYTES = 500
"""A script's images up to this size count as trackers and are not shown."""

STYLE = (
    "body{margin:16px;font:16px/1.4 sans-serif;background:#fff;color:#222}"
    "img{max-width:300px;max-height:225px;margin:2px}"
    "i{display:inline-block;width:40px;height:40px}b{font-size:12px}iframe{width:300px;height:200px;border:0}"
)
SENTENCES = (
    "This text stands for the text of a recorded page. Its length on the wire, its kind and the "
    "requests that it causes are those of the recording; the words are not. It is shown in the first "
    "view port so that the browser has something to paint before the pictures have arrived."
)


def runtime(name: str = "runtime.js") -> str:
    """The driver's source without comments; ``shape.js`` for shapes that were made from rehearsals."""
    text = resources.files("wirepaint.pages.synthesis").joinpath(name).read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines() if not line.startswith("//"))


class Driver:
    """The requests of each synthetic resource of a page, and how it makes them."""

    def __init__(self, page: Page) -> None:
        self._all = page.resources
        self.is_shape = any(resource.outline for resource in page.resources)
        """The page is a shape made from rehearsals."""
        self.waits: dict[int, list[int]] = {}
        """For such a shape: resources that a resource waits for, besides the one that asks for it."""
        places = (place for r in page.resources if r.outline for place in r.outline.places)
        self.anonymous = {place.of for place in places if place.anonymous}
        """Resources that elements of such a shape ask for without credentials."""
        self.base = own_document(page.resources)
        self.children: dict[int, list[tuple[Resource, float]]] = {}
        self.driven: dict[int, Resource] = {}
        """The parent that asks for each resource, by the resource's id."""
        self.sheets: dict[int, list[Resource]] = {}
        self.scripts: dict[int, list[Resource]] = {}
        """Stylesheets and scripts of a document that make requests, by the document's id."""
        self._document: dict[int, Resource] = {0: page.resources[0]}
        self._after_data: dict[int, int] = {}
        for resource in self._all[1:]:
            above = self._all[resource.cause.by or 0]
            leads = above.type == "html" and not 300 <= above.status < 400
            self._document[resource.id] = above if leads else self._document[above.id]
            if self.is_shape:
                self._place_in_shape(resource)
            else:
                self._place(resource)
        acting = dict.fromkeys(self.children)
        if self.is_shape:
            acting |= dict.fromkeys(r.id for r in self._all if r.type == "js" and self.acts(r))
        for number in acting:
            asking = self._all[number]
            kept = {"css": self.sheets, "js": self.scripts}.get(asking.type)
            if kept is not None:
                kept.setdefault(self.document(asking).id, []).append(asking)

    def _place(self, resource: Resource) -> None:
        """Adds ``resource`` to the children of the nearest cause that can ask for it."""
        cause = resource.cause
        if cause.kind == "redirect":
            if cause.by is not None and cause.by in self.driven:
                self.driven[resource.id] = self.driven[cause.by]
            return
        after, parent = cause.after_ms, self._all[cause.by or 0]
        for _ in range(_MOST_ABOVE):
            if self._can_ask(parent, resource):
                break
            if parent.cause.by is None or (parent.body and parent.type in ("html", "css", "js")):
                return  # asked for by a recorded body
            after += parent.cause.after_ms
            parent = self._all[parent.cause.by]
        else:
            return
        self.driven[resource.id] = parent
        if parent.type == "data":
            self._after_data[resource.id] = self._after_data.get(parent.id, 0) + 1
        self.children.setdefault(parent.id, []).append((resource, after))

    def _place_in_shape(self, resource: Resource) -> None:
        """Adds ``resource`` to the children of its document, stylesheet or script."""
        cause = resource.cause
        causes = [self._all[number] for number in (cause.by or 0, *cause.also)]
        parent = causes[0]
        if cause.kind == "redirect":
            if parent.id in self.driven:
                self.driven[resource.id] = self.driven[parent.id]
            return
        if cause.kind == "script":
            while parent is not self.base and not _runs(parent):
                parent = self._all[parent.cause.by or 0] if parent.id else self.base
            document = parent if parent.type == "html" else self.document(parent)
            others = [self._asked_first(other) for other in causes if other.id != parent.id]
            self.waits[resource.id] = [
                other
                for other in dict.fromkeys(other.id for other in others)
                if other in (0, document.id) or self.document(self._all[other]).id == document.id
            ]
        self.driven[resource.id] = parent
        self.children.setdefault(parent.id, []).append((resource, cause.after_ms))

    def _asked_first(self, resource: Resource) -> Resource:
        """The first of the redirects to ``resource``."""
        while resource.cause.kind == "redirect":
            resource = self._all[resource.cause.by or 0]
        return resource

    def fetched(self, resource: Resource) -> bool:
        """True if the driver of a shape asks for it by a fetch."""
        if not self.is_shape or resource.id not in self.driven:
            return False
        first = self._asked_first(resource)
        return first.cause.kind == "script" and self._kind(first)[0] == "d"

    def _can_ask(self, parent: Resource, child: Resource) -> bool:
        if parent.type == "data":
            # The resource that asked for the data makes the request when the data has arrived.
            return parent.id in self.driven and self._after_data.get(parent.id, 0) < _LONGEST_CHAIN
        if not parent.synthetic:
            return False
        if parent.type == "css":
            return child.type in ("font", "image", "css") and not child.recorded.after_load
        return parent.type == "html" or (parent.type == "js" and parent.status < 400)

    def document(self, resource: Resource) -> Resource:
        """The document that uses ``resource``."""
        return self._document[resource.id]

    def credentials(self, resource: Resource) -> bool:
        """True if the page asked with credentials (needs a named origin); not across redirects."""
        redirected = 300 <= resource.status < 400 or resource.cause.kind == "redirect"
        return resource.header("access-control-allow-credentials") == "true" and not redirected

    def asking_document(self, resource: Resource) -> Resource:
        """The document whose driver asks for ``resource``."""
        parent = self.driven.get(resource.id, self.base)
        return parent if parent.type == "html" else self.document(parent)

    def call(self, resource: Resource, after: float) -> list[object]:
        """The driver's entry for one child; for data it includes the requests after its arrival."""
        if self.is_shape:
            return self._call_in_shape(resource, after)
        late = resource.recorded.after_load
        delay = min(after, LATE_DELAY_MS) if late else after
        kind, option = self._kind(resource)
        entry: list[object] = [kind, resource.url, round(delay), int(late)]
        if kind != "d":
            return [*entry, option] if option else entry
        then = [self.call(child, after) for child, after in self.children.get(resource.id, [])]
        return [*entry, option, *([then] if then else [])]

    def acts(self, script: Resource) -> bool:
        """True for a script that makes requests or computes."""
        computes = self.is_shape and (script.compute_ms or 0) >= _LEAST_COMPUTE_MS and _runs(script)
        return script.id in self.children or computes

    def arguments(self, script: Resource) -> str:
        """The arguments of a script's call to the driver."""
        children = [self.call(child, after) for child, after in self.children.get(script.id, [])]
        if not self.is_shape:
            return js(children)
        return f"{js(children)},{round(script.compute_ms or 0, 1):g}"

    def entry(self, script: Resource) -> str:
        """The script's entry in the document's table."""
        return f"[{self.arguments(script)}]" if self.is_shape else self.arguments(script)

    def _call_in_shape(self, resource: Resource, after: float) -> list[object]:
        cause = resource.cause
        late = cause.after == "load"
        when = 4 if late else 2 * (cause.after == "content_loaded") + (cause.holds_load is not False)
        delay = round(min(after, LATE_DELAY_MS) if late or resource.recorded.after_load else after)
        document = self.asking_document(resource).id
        own = {document, 0 if document == self.base.id else document}
        waits = ["" if other in own else self._all[other].url for other in self.waits.get(resource.id, [])]
        kind, option = self._kind(resource)
        entry: list[object] = [kind, resource.url, delay, when, waits, option]
        while not entry[-1]:
            entry.pop()
        return entry

    def _kind(self, resource: Resource) -> tuple[str, object]:
        """The driver's kind of request, and its option."""
        kind = {"js": "s", "css": "c", "html": "f", "font": "t", "image": "i"}.get(resource.type)
        if kind and resource.method == "GET":
            if kind == "i" and resource.wire_bytes <= _PIXEL_BYTES:
                return "p", None
            return kind, "high" if kind == "s" and resource.priority in HIGH else None
        options: dict[str, object] = {}
        if resource.method != "GET":
            options["method"] = resource.method
        if resource.method == "POST" and resource.recorded.post_bytes:
            options["body"] = resource.recorded.post_bytes
        if self.credentials(resource):
            options["credentials"] = "include"
        if resource.priority in LOW:
            options["priority"] = "low"
        return "d", options


def _runs(resource: Resource) -> bool:
    """True for a document or script whose synthesised text can make requests."""
    return resource.status < 300 and resource.type in ("html", "js") and resource.synthetic


def js(value: object) -> str:
    """``value`` as a literal within a script element."""
    return (
        json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        .replace("</", "<\\/")
        .replace("<!", "<\\!")
    )


def script(driver: Driver, resource: Resource, *, short: bool, alone: bool) -> list[bytes]:
    """A script without output that asks for its children.

    ``short``: the document keeps their names; ``alone``: no document defines the driver.
    """
    if not driver.acts(resource):
        return [b"/*", b"*/"] if resource.decoded_bytes >= 4 else [b"", b""]
    call = f"_w({resource.id if short else driver.arguments(resource)});"
    return [((runtime() if alone else "") + call + "/*").encode(), b"*/"]


def names(driver: Driver, short: list[Resource]) -> str:
    """Table entries for scripts that are too small to hold the names of their children."""
    table = (f"_w.table[{script.id}]={driver.entry(script)};" for script in short)
    return "".join(table)


def stylesheet(driver: Driver, resource: Resource) -> list[bytes]:
    """A stylesheet that imports stylesheets and uses the fonts and pictures that it caused."""
    imports, rules = "", ""
    for child, _ in driver.children.get(resource.id, []):
        address = f'url("{_css(child.url)}")'
        if child.type == "css":
            imports += f"@import {address};"
        else:
            rules += rule(child)
    room = resource.decoded_bytes >= len(imports + rules) + 4
    return [(imports + rules).encode() + (b"/*" if room else b""), b"*/" if room else b""]


def rule(child: Resource) -> str:
    """Rules for a class of elements that use a font or picture."""
    address = f'url("{_css(child.url)}")'
    if child.type != "font":
        return f".b{child.id}{{background-image:{address}}}"
    face = f"@font-face{{font-family:f{child.id};src:{address};font-display:swap}}"
    return f"{face}.f{child.id}{{font-family:f{child.id}}}"


def user(child: Resource) -> str:
    """The element of that class."""
    return f'<b class="f{child.id}">Aa</b>' if child.type == "font" else f'<i class="b{child.id}"></i>'


def styled(driver: Driver, resource: Resource) -> list[Resource]:
    """Fonts and pictures that the stylesheets of a document use."""
    sheets = driver.sheets.get(resource.id, [])
    return [child for sheet in sheets for child, _ in driver.children[sheet.id] if child.type != "css"]


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
                fonts.append(user(child))
    uses = fonts + [user(child) for child in styled(driver, resource)]
    kept = names(driver, short)
    needs = asked or resource.id in driver.scripts
    inline = f"<script>{runtime()}{kept}{f'_w({js(asked)})' if asked else ''}</script>" if needs else ""
    shown = resource is driver.base
    text = f"<h1>{html.escape(page.name)}</h1><p>{SENTENCES}</p>" if shown else "<p>frame</p>"
    start = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(page.name)}</title>'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style>{inline}{"".join(head)}</head>'
        f"<body>{text}{''.join(uses)}"
    )
    parts = [start, *body, "</body></html>"]
    if resource.decoded_bytes < sum(len(p.encode()) for p in parts) + 7 * len(parts):
        return ["".join(parts).encode(), b""]
    pieces = [p.encode() for p in parts]
    last = len(pieces) - 1
    return [(b"-->" if i else b"") + piece + (b"<!--" if i < last else b"") for i, piece in enumerate(pieces)]


def _element(child: Resource, *, after_pictures: bool) -> tuple[str, str] | None:
    """The part of the document (head or body) and the element for ``child``; None for the driver."""
    url = html.escape(child.url, quote=True)
    if child.type == "css":
        return "head", f'<link rel="stylesheet" href="{url}">'
    if child.type == "js":
        if child.priority in LOW:
            return "head", f'<script async src="{url}"></script>'
        blocking = child.priority in HIGH or (child.priority is None and not after_pictures)
        return ("head" if blocking else "body"), f'<script src="{url}"></script>'
    if child.type == "image":
        width, height = sides(child.wire_bytes)
        return "body", f'<img src="{url}" width="{width}" height="{height}" alt="">'
    if child.type == "html":
        return "body", f'<iframe src="{url}"></iframe>'
    if child.type == "font":
        preload = f'<link rel="preload" as="font" crossorigin href="{url}">'
        return "head", f"{preload}<style>{rule(child)}</style>"
    return None


def origin(url: str) -> str:
    """Scheme, host and port of ``url`` in the form of the Origin header."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
