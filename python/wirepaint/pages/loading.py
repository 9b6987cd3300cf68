"""Makes the load graph of a page: the cause of each request, from the served bodies.

A recording has the initiator of a request and the delay after it. In a browser, the time of a request
depends on the place where a document names the resource, the element, and the text before it.
:func:`load_graph` reads these from the prepared bodies, and uses the recorded cause for requests of
scripts. The page model loads the result (``crates/page-model``, type ``Page``).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from wirepaint.pages import bodies, layout, references, servers, shared_cache
from wirepaint.pages.model import Page, Rehearsed, Resource
from wirepaint.pages.modules import ImportMap, imports, read_maps
from wirepaint.pages.order import ordered
from wirepaint.pages.pictures import natural_size
from wirepaint.pages.prepare import PreparedPage
from wirepaint.pages.room import MOST_SCRIPT, Room
from wirepaint.pages.synthesis import flow
from wirepaint.pages.synthesis.markup import HIGH, LOW, Driver
from wirepaint.pages.tags import Tag, tokens

Element = Literal[
    "stylesheet", "script", "async_script", "deferred_script", "image", "lazy", "frame", "preload", "other"
]

_MOST_LAYOUT_NS = 2_000_000
"""Upper bound per element: a page with few elements has other costs."""
_HOLDS = {"before": "always", "either": "asked", "after": "never"}
_GZIP_LEVEL = 6
"""The testbed's PEP uses it (``crates/proxy/src/pep/coding.rs``)."""
_SYNTHETIC_JS_NS_PER_KIB = 2_000
"""A synthesised script is one comment, so parsing it is cheap."""
_SCRIPT_TYPES = {"", "text/javascript", "application/javascript", "module"}


def load_graph(
    prepared: PreparedPage,
    viewport: tuple[int, int],
    *,
    together: bool = False,
    first: int = 0,
    in_gzip: bool = False,
) -> dict[str, Any]:
    """The page in the form of the page model; ``viewport`` in CSS pixels.

    ``together`` and ``first`` as for :func:`wirepaint.pages.servers.addresses`. ``in_gzip``: with the bytes
    in gzip of each text, for proxies that compress.
    """
    addresses = servers.addresses(prepared, together=together, first=first)
    return _Graph(prepared, viewport, addresses, in_gzip=in_gzip).build()


class _Graph:
    def __init__(
        self,
        prepared: PreparedPage,
        viewport: tuple[int, int],
        addresses: Mapping[str, str],
        *,
        in_gzip: bool = False,
    ) -> None:
        kept = [{key: value for key, value in r.items() if key != "expected"} for r in prepared.resources]
        self.page = Page.model_validate({"name": prepared.name, "url": prepared.url, "resources": kept})
        self._prepared = prepared
        self._bodies = [response["body"] for response in prepared.responses]
        self._origins = prepared.origins
        self._addresses = addresses
        self._in_gzip = in_gzip
        self._paints = prepared.paints
        self._driver = Driver(self.page)
        self._viewport = viewport
        self._ids = {references.key(r.url): r.id for r in self.page.resources if r.method == "GET"}
        self._last = {r.id: r.id for r in self.page.resources}
        """The last target of each resource's redirects."""
        for resource in reversed(self.page.resources):
            if resource.cause.kind == "redirect" and resource.cause.by is not None:
                self._last[resource.cause.by] = self._last[resource.id]
        rehearsed = any(resource.rehearsed for resource in self.page.resources)
        self._never_asked = {
            r.id for r in self.page.resources if (r.rehearsed is None if rehearsed else r.file == "listed")
        }
        self._causes: dict[int, dict[str, Any]] = {}
        self._afters: dict[int, dict[int, float]] = {}
        """Delays by the ids of the parent and of the resource that it asks for."""
        self._modules: set[int] = set()
        """Scripts that documents name as modules."""
        self._importers: dict[int, list[int]] = {}
        """For a module with several importers: the importers after the first."""
        self._import_map = ImportMap()
        self._anonymous: set[int] = set()
        self._urgent: dict[int, bool] = {}
        self._visible: set[int] = set()
        self._documents: dict[int, dict[str, Any]] = {}
        self._styles = layout.Styles(viewport)
        self._documents_room, self._maps_room, self._sheets_room = Room(), Room(), Room()
        self._scripts_room = Room(text=MOST_SCRIPT)
        self._sides: dict[int, tuple[float, float] | None] = {}
        """Natural sizes of images; cached, since a document may name an image often."""
        self._places: dict[int, dict[str, Any]] = {}
        """The part of each image in the first view port."""

    def build(self) -> dict[str, Any]:
        for resource in self.page.resources:
            if resource.id in self._never_asked:
                continue
            if resource.type == "html" and self._bodies[resource.id] and resource.status < 300:
                self._read_document(resource)
            elif resource.type == "css" and self._bodies[resource.id]:
                self._read_sheet(resource.id, body_text(self._prepared, resource.id), resource.url)
        self._read_modules()
        self._lay_out()
        resources, place = self._asked([self._resource(resource) for resource in self.page.resources])
        built: dict[str, Any] = {
            "origins": [
                {
                    "host": host,
                    "address": self._addresses[host],
                    "port": port,
                    "encrypted": scheme == "https",
                }
                for scheme, host, port in self._origins
            ],
            "resources": resources,
            "paints": {name: _follows(paint, place) for name, paint in self._paints.items() if paint},
        }
        if self._prepared.processor_ms is not None:
            built["processor_ns"] = round(self._prepared.processor_ms * 1e6)
        return built

    def _asked(self, built: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[int, int]]:
        """Resources that most rehearsals asked for; without rehearsals, all but files that nothing names."""
        seen = [resource.rehearsed for resource in self.page.resources]
        if not any(seen) and not self._never_asked:
            return built, {number: number for number in range(len(built))}
        wanted = [n not in self._never_asked and (not k or k.asked >= 0.5) for n, k in enumerate(seen)]
        starts = [known.start_ms or 0.0 if known else 0.0 for known in seen]
        return ordered(built, wanted, starts)

    def _resource(self, resource: Resource) -> dict[str, Any]:
        parts = urlsplit(resource.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        cause = self._cause(resource)
        rehearsed = resource.rehearsed
        told = rehearsed or (resource.cause if self._driver.is_shape else None)
        after_load = told.after == "load" if told else resource.recorded.after_load
        urgent = self._urgent.get(resource.id)
        if cause is not None and cause["kind"] == "script" and resource.id in self._driver.driven:
            urgent = _driven_urgency(resource)
        built: dict[str, Any] = {
            "method": resource.method,
            "url": resource.url,
            "origin": self._origins.index((parts.scheme, (parts.hostname or "").lower(), port)),
            "pool": self._pool(resource),
            "status": resource.status,
            "type": resource.type,
            "headers": resource.headers,
            "wire_bytes": resource.wire_bytes,
            "decoded_bytes": resource.decoded_bytes,
            "gzip_bytes": self._gzip_bytes(resource),
            "post_bytes": resource.recorded.post_bytes if resource.method == "POST" else 0,
            "think_ns": round(resource.think_ms * 1e6),
            "cacheable": shared_cache.is_served_again(resource.method, resource.status, resource.headers),
            "cause": cause,
            "urgent": urgent,
            "priority": rehearsed.priority if rehearsed else None,
            "in_viewport": resource.id in self._visible,
            **self._places.get(resource.id, {}),
            "after_load": after_load,
            "holds_load": _holds(rehearsed) if rehearsed else None,
            "document": self._document(resource),
        }
        if rehearsed and rehearsed.by:
            built["also"] = rehearsed.by[1:]
            built["after_content_loaded"] = rehearsed.after == "content_loaded"
            built["after_first"] = rehearsed.after == "first"
            built["after_run"] = rehearsed.after == "run"
        elif cause is not None and cause["kind"] == "import" and resource.id in self._importers:
            built["also"] = self._importers[resource.id]
        elif cause is not None and cause["kind"] == "script" and self._driver.is_shape:
            built["also"] = [other for other in resource.cause.also if other != cause["by"]]
            built["after_content_loaded"] = resource.cause.after == "content_loaded"
            if not rehearsed and resource.cause.holds_load is False:
                built["holds_load"] = "asked"
        if rehearsed and rehearsed.compute_ms is not None and resource.type != "html":
            built["compute_ns"] = round(rehearsed.compute_ms * 1e6)
        elif resource.synthetic and resource.type == "js":
            computes = round((resource.compute_ms or 0.0) * 1e6)
            built["compute_ns"] = (
                300_000 + computes + resource.decoded_bytes * _SYNTHETIC_JS_NS_PER_KIB // 1024
            )
        return {key: value for key, value in built.items() if value is not None}

    def _gzip_bytes(self, resource: Resource) -> int | None:
        """Bytes in gzip of a body that a proxy may compress."""
        coded = resource.header("content-encoding") not in (None, "", "identity")
        is_vector = (resource.header("content-type") or "").startswith("image/svg")
        never = resource.type in ("image", "font", "media") and not is_vector
        if not self._in_gzip or coded or never or not self._bodies[resource.id]:
            return None
        return len(gzip.compress(_decoded(self._prepared, resource.id), _GZIP_LEVEL))

    def _document(self, resource: Resource) -> dict[str, Any] | None:
        known = self._documents.get(resource.id)
        rehearsed = resource.rehearsed
        laid_out = rehearsed.compute_ms if rehearsed else None
        if resource.outline:
            laid_out = resource.outline.rendering_ms
        if known is None:
            return known
        if rehearsed is not None:
            known = known | {
                "inline_ns": [round(each * 1e6) for each in rehearsed.inline_ms],
                # DEVIATION: later layouts come all at once, here, after what scripts did; not one by one.
                "content_loaded_ns": round(
                    ((rehearsed.content_loaded_ms or 0.0) + rehearsed.later_layouts_ms) * 1e6
                ),
                "load_ns": round((rehearsed.load_event_ms or 0.0) * 1e6),
            }
            if rehearsed.style_wait_ms:
                known["style_wait_ns"] = round(rehearsed.style_wait_ms * 1e6)
            if rehearsed.layout_wait_ms is not None:
                known["layout_wait_ns"] = round(rehearsed.layout_wait_ms * 1e6)
        if not known["elements"] or laid_out is None:
            return known
        each = min(laid_out * 1e6 / known["elements"], _MOST_LAYOUT_NS)
        known |= {"layout_ns_per_element": round(each)}
        if rehearsed is not None and rehearsed.style_ms is not None and rehearsed.compute_ms:
            known["style_ns_per_element"] = round(each * rehearsed.style_ms / rehearsed.compute_ms)
        return known

    # Causes.

    def _cause(self, resource: Resource) -> dict[str, Any] | None:
        by = resource.cause.by
        if by is None:
            return None
        if resource.cause.kind == "redirect":
            return {"kind": "redirect", "by": by}
        if resource.rehearsed and resource.rehearsed.by:
            first, after = resource.rehearsed.by[0], resource.rehearsed.after_ms
            return {"kind": "script", "by": first, "after_ns": round(after * 1e6)}
        if found := self._causes.get(resource.id):
            return found
        after = resource.cause.after_ms
        if self._driver.is_shape and resource.cause.kind == "script":
            return {"kind": "script", "by": by, "after_ns": round(after * 1e6)}
        if parent := self._driver.driven.get(resource.id):
            by, after = parent.id, self._driver.call(resource, self._after(parent, resource))[2]
        elif resource.cause.kind == "css":
            return {"kind": "style", "by": by}
        return {"kind": "script", "by": by, "after_ns": round(float(str(after)) * 1e6)}

    def _after(self, parent: Resource, resource: Resource) -> float:
        if parent.id not in self._afters:
            self._afters[parent.id] = {child.id: after for child, after in self._driver.children[parent.id]}
        return self._afters[parent.id][resource.id]

    def _found(self, resource: int, cause: dict[str, Any]) -> None:
        """Stores the cause of a resource if it is the first one found, and earlier than the resource."""
        if resource and cause["by"] < resource:
            self._causes.setdefault(resource, cause)

    def _read_document(self, resource: Resource) -> None:
        text = body_text(self._prepared, resource.id)
        reader = DocumentReader(text, resource.url, self._documents_room)
        read_maps(text, resource.url, self._import_map, self._maps_room)
        repeated: list[int] = []
        self._documents[resource.id] = {
            "body_at": reader.body_at,
            "elements": reader.count,
            "inline_scripts": reader.inline_scripts,
            "repeated_images": repeated,
        }
        for at, element, url, attributes in reader.elements:
            if (child := self._ids.get(references.key(url))) is None:
                continue
            if (known := self._causes.get(child)) is not None:
                if element == "image" and known.get("by") == resource.id and known.get("at") != at:
                    repeated.append(at)
                continue
            self._found(child, {"kind": "markup", "by": resource.id, "at": at, "element": element})
            if attributes.get("type", "").lower() == "module":
                self._modules.add(child)
            if "crossorigin" in attributes and attributes["crossorigin"] != "use-credentials":
                self._anonymous.add(child)
            if (word := attributes.get("fetchpriority")) in ("high", "low"):
                self._urgent[child] = word == "high"
        for sheet in reader.sheets:
            self._read_sheet(resource.id, sheet, resource.url)

    def _read_sheet(self, by: int, text: str, base: str) -> None:
        text = self._sheets_room.take(text)
        for reference in references.in_css(text, base):
            child = self._ids.get(references.key(reference.url))
            if child is not None and child not in self._causes:
                kind = "import" if self.page.resources[child].type == "css" else "style"
                self._found(child, {"kind": kind, "by": by})
                # Elements that use a synthesised stylesheet are at the top of the page.
                if self.page.resources[by].synthetic and self.page.resources[child].type == "image":
                    self._visible.add(child)
        if not self.page.resources[by].synthetic:
            self._styles.add(text, base)

    def _read_modules(self) -> None:
        """Finds the modules that scripts import before they run; classic scripts do not import."""
        importers: dict[int, dict[int, None]] = {}
        for script in self.page.resources:
            named = script.id in self._causes and script.id not in self._modules
            body = self._bodies[script.id]
            if script.type != "js" or script.synthetic or named or script.id in self._never_asked or not body:
                continue
            text = self._scripts_room.take(body_text(self._prepared, script.id))
            for url in imports(text, script.url, self._import_map):
                child = self._ids.get(references.key(url))
                if child is not None and child not in self._causes and self._earlier(script.id, child):
                    importers.setdefault(child, {})[script.id] = None
        for child, by in importers.items():
            if self.page.resources[child].type == "js":
                first, *others = by
                self._causes[child] = {"kind": "import", "by": first}
                self._importers[child] = others

    def _earlier(self, one: int, other: int) -> bool:
        seen = [self.page.resources[number].rehearsed for number in (one, other)]
        if seen[0] and seen[1]:
            return (seen[0].start_ms or 0.0, one) < (seen[1].start_ms or 0.0, other)
        return one < other

    # The first view port.

    def _lay_out(self) -> None:
        """Finds the content of the first view port of the page's own document."""
        base = self._driver.base
        if (known := self._documents.get(base.id)) is None:
            return
        if base.synthetic:
            known["driver"] = True
            boxes = flow.boxes(self._driver, self._causes, self._natural)
            self._places = {child: {"inline_box": box} for child, box in boxes.items()}
            known |= flow.lines(self._driver, self._causes, self._viewport)
            return
        reader = layout.Layout(base.url, self._styles, self._viewport, self._picture)
        reader.read(body_text(self._prepared, base.id))
        estimate = reader.estimate
        self._visible |= {child for child, shown in estimate.images.items() if shown.visible}
        self._places = {child: {"area": shown.area} for child, shown in estimate.images.items()}
        known |= {"text_area": estimate.text_area, "unplaced_area": self._unplaced(estimate)}
        known["names_fonts"] = self._styles.names_fonts

    def _unplaced(self, estimate: layout.Estimate) -> int:
        """The largest possible area of an image that the document's scripts insert."""
        areas = [0]
        for resource in self.page.resources:
            if resource.id in self._never_asked:
                continue
            in_base = self._driver.document(resource).id == self._driver.base.id
            cause = self._cause(resource)
            if not in_base or resource.type != "image" or resource.id in estimate.images or cause is None:
                continue
            natural = self._natural(resource.id)
            if cause["kind"] == "script" and natural and not resource.recorded.after_load:
                shown = min(natural[0], self._viewport[0]) * min(natural[1], self._viewport[1])
                areas.append(layout.counted(shown, natural, resource.wire_bytes, self._viewport))
        return max(areas)

    def _natural(self, image: int) -> tuple[float, float] | None:
        last = self._last[image]
        if last not in self._sides:
            body = _decoded(self._prepared, last)
            self._sides[last] = natural_size(body) if body else None
        return self._sides[last]

    def _picture(self, url: str) -> layout.Picture | None:
        child = self._ids.get(references.key(url))
        image = None if child is None else self.page.resources[self._last[child]]
        if image is None or image.type != "image":
            return None
        return layout.Picture(image.id, self._natural(image.id), image.wire_bytes)

    # Connections.

    def _pool(self, resource: Resource) -> int:
        """Requests with and without credentials use separate connections (Chromium's privacy
        mode). Frames of other sites share those of the page: the headless shell does not separate them."""
        if resource.rehearsed and resource.rehearsed.pool is not None:
            return resource.rehearsed.pool
        return int(self._without_credentials(resource, self._driver.document(resource)))

    def _without_credentials(self, resource: Resource, document: Resource) -> bool:
        if _origin(resource.url) == _origin(document.url):
            return False
        if resource.type == "font":
            return True
        if resource.type == "data":
            return not self._driver.credentials(resource)
        return resource.id in self._anonymous


def _holds(rehearsed: Rehearsed) -> str:
    if not rehearsed.holds_load:
        return "begun" if rehearsed.load == "before" else "never"
    return _HOLDS[rehearsed.load]


def _follows(paint: dict[str, Any], place: dict[int, int]) -> dict[str, Any]:
    return {
        "by": [place[number] for number in paint["by"] if number in place],
        "run": paint["after"] == "run",
        "after_ns": round(paint["after_ms"] * 1e6),
    }


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _driven_urgency(resource: Resource) -> bool | None:
    """The urgency that the driver passes on (``markup.Driver.call``)."""
    if resource.type == "js" and resource.method == "GET":
        return True if resource.priority in HIGH else None
    if resource.type in ("data", "media", "other") or resource.method != "GET":
        # A fetch has high priority for any type.
        return resource.priority not in LOW
    return None


def body_text(prepared: PreparedPage, number: int) -> str:
    """The decoded body as Latin-1, so that positions are byte positions; a very long one is cut off."""
    return _decoded(prepared, number)[: references.MOST_READ].decode("latin-1")


def _decoded(prepared: PreparedPage, number: int) -> bytes:
    """The decoded body of the resource of this number, empty if it has none."""
    body, served = prepared.responses[number]["body"], prepared.resources[number]
    if not body:
        return b""
    coding = next((value for key, value in served["headers"] if key.lower() == "content-encoding"), None)
    return bodies.decoded(Path(body), served["wire_bytes"], served["decoded_bytes"], coding)


class DocumentReader:
    """Elements of a document that load something, with their offsets."""

    def __init__(self, text: str, base: str, room: Room | None = None) -> None:
        self.elements: list[tuple[int, Element, str, dict[str, str]]] = []
        self.inline_scripts: list[int] = []
        self.sheets: list[str] = []
        """Inline style sheets, and the ``style`` attributes of elements."""
        self.body_at: int = len(text)
        self.count = 0
        """Elements in the body."""
        self._base = base
        unseen = 0  # depth in templates
        for token in tokens(text, room):
            if not isinstance(token, Tag):
                if token.within == "style" and not unseen:
                    self.sheets.append(text[token.start : token.end])
            elif token.name == "template":
                unseen = max(0, unseen - 1) if token.closing else unseen + 1
            elif not token.closing and not unseen:
                self._element(token, text)

    def _element(self, tag: Tag, text: str) -> None:
        if tag.name == "body":
            self.body_at = min(self.body_at, tag.start)
        if tag.name == "noscript":
            return
        self.count += self.body_at < tag.start
        attributes = tag.attributes(text) if tag.fields else {}
        if "style" in attributes:
            self.sheets.append(attributes["style"])
        if tag.name == "script" and "src" not in attributes and attributes.get("type", "") in _SCRIPT_TYPES:
            self.inline_scripts.append(tag.start)
        for element, raw in _loads(tag.name, attributes):
            if url := references.absolute(raw.strip(), self._base):
                self.elements.append((tag.start, element, url, attributes))


def _loads(tag: str, attributes: dict[str, str]) -> Iterator[tuple[Element, str]]:
    """How an element loads a resource, and the addresses that it names."""
    source = attributes.get("src", "")
    match tag:
        case "link":
            relation = attributes.get("rel", "").lower().split()
            if "stylesheet" in relation:
                shown = attributes.get("media", "all").lower() in ("", "all", "screen")
                yield (
                    "stylesheet" if shown and "disabled" not in attributes else "other",
                    attributes.get("href", ""),
                )
            elif "preload" in relation or "modulepreload" in relation:
                yield "preload", attributes.get("href", "")
        case "script":
            deferred = "defer" in attributes or attributes.get("type") == "module"
            yield (
                "async_script" if "async" in attributes else "deferred_script" if deferred else "script",
                source,
            )
        case "img":
            element: Element = "lazy" if attributes.get("loading") == "lazy" else "image"
            yield element, source
            for candidate in layout.candidates(attributes):
                yield element, candidate
        case "iframe" | "frame":
            yield "lazy" if attributes.get("loading") == "lazy" else "frame", source
        case "source" if "srcset" in attributes:
            for candidate in layout.candidates(attributes):
                yield "image", candidate
        case "video" | "audio" | "embed" | "track" | "input" | "source":
            yield "other", source
            yield "other", attributes.get("poster", "")
        case "object":
            yield "other", attributes.get("data", "")
        case _:
            pass
