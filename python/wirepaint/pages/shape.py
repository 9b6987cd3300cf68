"""A shape: a rehearsed page without its bodies, which loads like the page.

:func:`shaped` drops the bodies and keeps the causes of the requests: the places and elements in documents,
the references of stylesheets, and for all other requests the causes that rehearsals measured,
with the computing time of scripts. :mod:`wirepaint.pages.synthesis` makes bodies from these.
"""

from __future__ import annotations

from typing import Any

from wirepaint.pages import headers, references, servers
from wirepaint.pages.loading import DocumentReader, _Graph, body_text
from wirepaint.pages.model import Cause, Outline, Page, Place, Rehearsed, Resource
from wirepaint.pages.order import ordered
from wirepaint.pages.prepare import PreparedPage
from wirepaint.pages.synthesis.markup import HIGH

NOTE = "a shape: bodies are synthesised, causes and computing times are those of its rehearsals"
_METHODS = ("GET", "HEAD", "POST")
_CERTAIN = ("stylesheet", "script", "async_script", "deferred_script", "image", "frame", "preload")
"""Elements whose resource a browser always asks for, independent of scripts and styles."""
_LAYS_OUT = ("html", "css", "js")
"""A style cause that waits only for these types waits for the layout that they block."""


def shaped(page: Page, prepared: PreparedPage, viewport: tuple[int, int]) -> Page:
    """``page``, which has been rehearsed, as a shape; ``prepared`` is the page made ready to be served."""
    return _Shape(page, prepared, viewport).make()


class _Shape:
    def __init__(self, page: Page, prepared: PreparedPage, viewport: tuple[int, int]) -> None:
        self._page, self._prepared = page, prepared
        self._graph = _Graph(prepared, viewport, servers.addresses(prepared))
        self._graph.build()

    def make(self) -> Page:
        resources = self._page.resources
        wanted = [_is_wanted(resource) for resource in resources]
        starts = [(r.rehearsed.start_ms or 0.0) if r.rehearsed else 0.0 for r in resources]
        order, place = ordered([self._described(resource) for resource in resources], wanted, starts)
        made = [
            self._resource(resources[each["id"]], number, each, place) for number, each in enumerate(order)
        ]
        return self._page.model_copy(
            update={
                "resources": made,
                "rehearsal": None,
                "notes": [note for note in self._page.notes if note != NOTE] + [NOTE],
            }
        )

    def _described(self, resource: Resource) -> dict[str, Any]:
        """The resource in the form for :func:`ordered`."""
        cause, also = self._cause(resource)
        described: dict[str, Any] = {"id": resource.id, "type": resource.type}
        if cause is not None:
            described["cause"] = cause
        if cause is not None and cause["kind"] == "script":
            described["also"] = also
        return described

    def _cause(self, resource: Resource) -> tuple[dict[str, Any] | None, list[int]]:
        """The cause from documents and stylesheets if it is certain enough, else the fitted one."""
        known, rehearsed = self._graph._causes.get(resource.id), resource.rehearsed
        by = rehearsed.by if rehearsed else []
        if known is not None and resource.cause.kind != "redirect" and by:
            if known["kind"] == "markup" and known["element"] in _CERTAIN:
                return known, []
            types = {self._page.resources[other].type for other in by}
            on_time = rehearsed is not None and rehearsed.after == "resources"
            if (
                known["kind"] in ("style", "import")
                and on_time
                and types <= set(_LAYS_OUT)
                and "css" in types
            ):
                return known, []
        return self._graph._cause(resource), list(by[1:])

    def _resource(
        self, resource: Resource, number: int, described: dict[str, Any], place: dict[int, int]
    ) -> Resource:
        rehearsed = resource.rehearsed or Rehearsed(asked=1)
        computes = {"js": rehearsed.compute_ms, "html": sum(rehearsed.inline_ms)}.get(resource.type)
        empty = resource.status == 204 or resource.method == "HEAD" or not resource.wire_bytes
        document = resource.type == "html" and resource.body and resource.status < 300
        sent, status = headers.kept(resource.headers, synthetic=True), resource.status
        if document and (onward := self._onward(resource)):
            # Its script or <meta> navigated to another document; a synthesised one redirects by status.
            document, status = False, 302
            sent.append(("location", onward.url))
        return resource.model_copy(
            update={
                "id": number,
                "status": status,
                "headers": sent,
                "body": None,
                "synthetic": not empty,
                "cause": _as_cause(described, rehearsed),
                "recorded": resource.recorded.model_copy(update={"after_load": rehearsed.load == "after"}),
                "priority": rehearsed.priority or resource.priority,
                "residual_bytes": 0,
                "stand_in": False,
                "patterns": [],
                "rehearsed": None,
                "outline": self._outline(resource, number, place) if document else resource.outline,
                "compute_ms": computes if resource.status < 300 else None,
            }
        )

    def _onward(self, document: Resource) -> Resource | None:
        """The document that this one navigates to."""
        leads = (r for r in self._page.resources if r.cause.kind == "redirect" and r.cause.by == document.id)
        return next(leads, None)

    def _outline(self, document: Resource, number: int, place: dict[int, int]) -> Outline:
        text = body_text(self._prepared, document.id)
        reader = DocumentReader(text, document.url)
        ids = {
            references.key(r.url): r.id for r in self._page.resources if r.method == "GET" and r.id in place
        }
        places: list[Place] = []
        for at, element, url, attributes in reader.elements:
            found = place.get(ids.get(references.key(url), -1), -1)
            if element == "other" and found > number and self._applies(ids[references.key(url)]):
                element = "stylesheet"
            crossorigin, word = attributes.get("crossorigin"), attributes.get("fetchpriority")
            if found > number:
                places.append(
                    Place(
                        of=found,
                        at=at,
                        element=element,
                        anonymous=crossorigin is not None and crossorigin != "use-credentials",
                        urgent=word == "high" if word in ("high", "low") else None,
                    )
                )
        rehearsed = document.rehearsed
        return Outline(
            body_at=reader.body_at,
            elements=reader.count,
            inline_scripts=reader.inline_scripts,
            places=places,
            rendering_ms=self._rendering(document),
            callbacks_ms=(rehearsed.callbacks_ms if rehearsed else None) or 0.0,
        )

    def _applies(self, number: int) -> bool:
        """True for a stylesheet whose media query held in the rehearsals: others have the lowest priority."""
        sheet = self._page.resources[number]
        return sheet.type == "css" and sheet.rehearsed is not None and sheet.rehearsed.priority in HIGH

    def _rendering(self, document: Resource) -> float:
        """Time in ms for styles, layout and paint of the page's own document, with its style sheets."""
        if document.rehearsed is None or document.rehearsed.callbacks_ms is None:
            return 0.0
        sheets = (
            r.rehearsed.compute_ms or 0.0 for r in self._page.resources if r.type == "css" and r.rehearsed
        )
        layouts = (document.rehearsed.compute_ms or 0.0) + document.rehearsed.later_layouts_ms
        return round(layouts + sum(sheets), 3)


def _is_wanted(resource: Resource) -> bool:
    if resource.rehearsed is None or resource.rehearsed.asked < 0.5 or resource.method not in _METHODS:
        return False
    return not (resource.stand_in and resource.method == "OPTIONS")


def _as_cause(described: dict[str, Any], rehearsed: Rehearsed) -> Cause:
    cause = described.get("cause")
    if cause is None:
        return Cause(by=None, kind="navigation")
    kinds = {"redirect": "redirect", "markup": "parser", "import": "css", "style": "css"}
    module = cause["kind"] == "import" and described["type"] == "js"
    kind = "script" if module else kinds.get(cause["kind"], "script")
    # Synthesised scripts cannot wait for the first of several.
    first = module or rehearsed.after == "first"
    plain = first or kind != "script" or rehearsed.after == "run"
    after_load = rehearsed.after == "load" and kind == "script"
    return Cause(
        by=cause["by"],
        kind=kind,  # pyright: ignore[reportArgumentType]
        after_ms=round(cause.get("after_ns", 0) / 1e6, 3),
        also=[] if first else described.get("also", []),
        after="resources" if plain else rehearsed.after,
        holds_load=rehearsed.load == "before" and rehearsed.holds_load and not after_load,
    )
