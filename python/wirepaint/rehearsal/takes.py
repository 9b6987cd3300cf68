"""The observations of one rehearsal: each request, the resource that answered it, and its times.

Times are milliseconds since the navigation began.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urldefrag

from wirepaint.runners.testbed.browser import contract
from wirepaint.runners.testbed.browser.contract import PageLoad


@dataclass
class Request:
    """One request; ``resource`` of the page answered it, None if the page does not have it."""

    resource: int | None
    method: str
    url: str
    start: float
    """Time when the browser discovered it, or the end of its preflight."""
    end: float | None
    """Time of its last byte."""
    type: str
    priority: str
    initiator: str | None
    initiator_type: str
    frame: str
    status: int | None
    failed: str | None
    connection: int | None = None
    """The browser's number of the connection that carried it."""
    stack: tuple[str, ...] = ()
    """Addresses of the scripts that ran when the request was made, the innermost first."""


@dataclass
class Take:
    """One rehearsal."""

    requests: list[Request]
    load: float
    content_loaded: float | None
    first_contentful_paint: float | None
    largest_contentful_paint: float | None
    delays: dict[int, float]
    """Delay of each resource's answer, in ms."""
    browser: str
    trace: list[dict[str, Any]] = field(default_factory=list)
    largest_url: str | None = None
    """Address of the image that was the largest paint; empty for text."""

    def __post_init__(self) -> None:
        self.first: dict[int, Request] = {}
        """The first request of each resource."""
        for request in self.requests:
            if request.resource is not None:
                self.first.setdefault(request.resource, request)


def observe(
    load: PageLoad,
    records: Sequence[Mapping[str, Any]],
    answering: Sequence[int],
    known: Mapping[tuple[str, str], int],
    delays: dict[int, float],
) -> Take:
    """Joins the records of the browser and the server.

    ``answering`` is the resource of each response, ``known`` the resource of each method and address.
    """
    answered: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        answered[record["method"], record["url"]].append(record)
    requests: list[Request] = []
    preflights: dict[str, float] = {}
    fetched = [request for request in load.requests if not request.from_cache]
    for request in fetched:
        if request.method == "OPTIONS" and request.last_byte is not None:
            preflights.setdefault(request.url, _ms(load, request.last_byte))
    for request in fetched:
        rows = answered[request.method, _plain(request.url)]
        record = (rows.pop(0) if len(rows) > 1 else rows[0]) if rows else None
        response = record["response"] if record else None
        address = request.method, _plain(request.url)
        requests.append(
            Request(
                resource=known.get(address) if response is None else answering[response],
                method=request.method,
                url=_plain(request.url),
                start=_start(load, request, preflights),
                end=None if request.last_byte is None else _ms(load, request.last_byte),
                type=request.type,
                priority=request.asked_priority,
                initiator=None if request.initiator is None else _plain(request.initiator),
                initiator_type=request.initiator_type,
                frame=request.frame,
                status=request.status,
                failed=request.failed,
                connection=request.connection,
                stack=tuple(_plain(url) for url in request.stack),
            )
        )

    def since(time: int | None) -> float | None:
        return None if time is None else (time - load.navigation_start) / 1e6

    return Take(
        requests=requests,
        load=since(load.load_event) or 0.0,
        content_loaded=since(load.dom_content_loaded),
        first_contentful_paint=since(load.first_contentful_paint),
        largest_contentful_paint=since(load.largest_contentful_paint),
        delays=delays,
        browser=load.browser,
        trace=load.trace,
        largest_url=None if load.largest_url is None else _plain(load.largest_url),
    )


def _start(load: PageLoad, request: contract.Request, preflights: Mapping[str, float]) -> float:
    start = _ms(load, request.discovered)
    if request.method == "OPTIONS":
        return start
    return max(start, preflights.get(request.url, start))


def _ms(load: PageLoad, time: int) -> float:
    return (time - load.navigation_start) / 1e6


def _plain(url: str) -> str:
    return urldefrag(url).url
