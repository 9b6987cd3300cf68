"""The answers of a rehearsal: the recorded resources, and stand-ins for those that the recording lacks.

A rehearsal may ask for a resource that was not recorded, or for a recorded one under another address
(times and random numbers). :meth:`Cast.learn` gives such requests a stored answer (a fast 404 that
every origin may read) or a pattern, so that the next rehearsal and every visit get the same answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from wirepaint.pages.model import Cause, Kind, Page, Recorded, Resource
from wirepaint.rehearsal.takes import Request, Take

_ANYBODY = [("access-control-allow-origin", "null"), ("access-control-allow-credentials", "true")]
"""The server replaces the value by the origin of the request."""
_VARYING = re.compile(r"\d")
_MOST_VARYING = 3
"""Path segments that differ between two addresses of one resource."""


class Cast:
    """The resources of a page while it is rehearsed."""

    def __init__(self, page: Page, responses: Sequence[dict[str, Any]]) -> None:
        self.resources = list(page.resources)
        self._responses = list(responses)

    @property
    def origins(self) -> list[tuple[str, str, int]]:
        """Scheme, host and port of each origin, in the order of their first resource."""
        return list(dict.fromkeys(origin(resource.url) for resource in self.resources))

    @property
    def known(self) -> dict[tuple[str, str], int]:
        """The number of each resource, by method and address."""
        return {(r.method, r.url): number for number, r in enumerate(self.resources)}

    def answers(self, delays: dict[int, float]) -> tuple[list[dict[str, Any]], list[int]]:
        """Responses of the run description, each late by ``delays`` (ms), and the resource of each."""
        responses: list[dict[str, Any]] = []
        answering: list[int] = []
        for number, resource in enumerate(self.resources):
            if resource.stand_in and resource.method == "OPTIONS":
                continue  # the server grants preflights itself
            response = self._responses[number] if number < len(self._responses) else _stand_in(resource)
            late = round(delays.get(number, 0.0) * 1e6)
            responses.append(response | {"think_ns": late, "patterns": resource.patterns})
            answering.append(number)
        return responses, answering

    def learn(self, take: Take) -> int:
        """Adds answers for the requests of a rehearsal; returns how many were new."""
        known = {(resource.method, resource.url): resource for resource in self.resources}
        new = 0
        for request in take.requests:
            if request.resource is not None and request.url != self.resources[request.resource].url:
                new += self._vary(self.resources[request.resource], request.url)
            elif request.resource is None and (request.method, request.url) not in known:
                if similar := self._similar(request):
                    new += self._vary(similar, request.url)
                elif len(self.resources) < 5_000:
                    resource = self._add(request)
                    known[resource.method, resource.url] = resource
                    new += 1
        return new

    def _vary(self, resource: Resource, url: str) -> bool:
        """Makes the resource answer ``url`` too; False if it already did."""
        if any(_fits(pattern, url) for pattern in resource.patterns):
            return False
        resource.patterns = list(dict.fromkeys([*resource.patterns, pattern_of(resource.url, url)]))
        return True

    def _similar(self, request: Request) -> Resource | None:
        """A stand-in whose address differs only in times and random numbers in its path."""
        for resource in self.resources:
            if resource.stand_in and resource.method == request.method:
                pattern = pattern_of(resource.url, request.url)
                if pattern.count("*") <= _MOST_VARYING and _fits(pattern, request.url):
                    return resource
        return None

    def _add(self, request: Request) -> Resource:
        secure = request.url.startswith("https:")
        kind: Kind = "data" if request.method != "GET" else _kind(request.type)
        resource = Resource(
            id=len(self.resources),
            method=request.method,
            url=request.url,
            status=204 if request.method == "OPTIONS" else 404,
            headers=list(_ANYBODY),
            type=kind,
            wire_bytes=0,
            decoded_bytes=0,
            cause=Cause(by=0, kind="other"),
            recorded=Recorded(protocol="h2" if secure else "http/1.1"),
            stand_in=True,
        )
        self.resources.append(resource)
        return resource


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return (
        parts.scheme,
        (parts.hostname or "").lower(),
        parts.port or (443 if parts.scheme == "https" else 80),
    )


def pattern_of(one: str, other: str) -> str:
    """An address with ``*`` where two addresses differ: whole parameters and path segments.

    If the addresses differ in host or number of segments, the first itself.
    """
    a, b = urlsplit(one), urlsplit(other)
    mine, theirs = a.path.split("/"), b.path.split("/")
    if a[:2] != b[:2] or len(mine) != len(theirs):
        return one
    path = [x if x == y else "*" for x, y in zip(mine, theirs, strict=True)]
    if any(
        p == "*" and not (_VARYING.search(x) and _VARYING.search(y))
        for p, x, y in zip(path, mine, theirs, strict=True)
    ):
        return one
    start = f"{a.scheme}://{a.netloc}{'/'.join(path)}"
    if a.query == b.query:
        return f"{start}?{a.query}" if a.query else start
    own, others = a.query.split("&"), b.query.split("&")
    names = [pair.partition("=")[0] for pair in own]
    if names != [pair.partition("=")[0] for pair in others]:
        return f"{start}?*" if a.query and b.query else f"{start}*"
    pairs = (x if x == y else f"{name}=*" for x, y, name in zip(own, others, names, strict=True))
    return f"{start}?{'&'.join(pairs)}"


def _fits(pattern: str, url: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), url, re.S) is not None


def _kind(devtools: str) -> Kind:
    known: dict[str, Kind] = {k: k for k in ("html", "css", "js", "image", "font", "media", "data")}  # type: ignore[misc]
    return known.get(devtools, "other")


def _stand_in(resource: Resource) -> dict[str, Any]:
    return {
        "method": resource.method,
        "url": resource.url,
        "status": resource.status,
        "headers": resource.headers,
        "body": None,
    }
