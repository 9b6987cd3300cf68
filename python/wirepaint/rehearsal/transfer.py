"""Takes of a page of plain http as takes of its https version, which loads in the same way.

The https version then needs loads of its own only to find its requests and to judge the simulator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from wirepaint.pages.model import Resource
from wirepaint.pages.secure import https_address
from wirepaint.rehearsal.takes import Request, Take

Told = list[dict[str, Any]]
"""Takes as values of JSON; resources by method and address."""


def told(takes: Sequence[Take], resources: Sequence[Resource]) -> Told:
    """Takes in a form that another process and the https version of the page can read; no traces."""

    def name(number: int) -> tuple[str, str]:
        return resources[number].method, resources[number].url

    def request(of: Request) -> dict[str, Any]:
        return asdict(of) | {"resource": None if of.resource is None else name(of.resource)}

    return [
        {field.name: getattr(take, field.name) for field in fields(take) if field.name != "trace"}
        | {
            "requests": [request(each) for each in take.requests],
            "delays": [[*name(number), late] for number, late in take.delays.items()],
        }
        for take in takes
    ]


def by_https(takes: Told, known: Mapping[tuple[str, str], int], draft: Take) -> list[Take]:
    """The takes of the plain page as takes of its https version; none if these two do not ask for the same
    before their load events.

    ``known`` has the version's resources by method and address, ``draft`` is its own take without delays. The
    first of the plain page's takes must be one without delays, too.
    """
    mapped = [_mapped(take, known) for take in takes]
    if not mapped or _early(mapped[0]) != _early(draft):
        return []
    return mapped


def _early(take: Take) -> set[int | None]:
    """Resources asked for before the load event; None among them stands for a request without an answer."""
    return {request.resource for request in take.requests if request.start < take.load}


def _direct(requests: list[Request]) -> list[Request]:
    """The requests without redirects from http to https: their times are those of the target."""
    last = {each.url: place for place, each in enumerate(requests)}
    begun: dict[str, float] = {}
    kept: list[Request] = []
    for place, each in enumerate(requests):
        if place < last[each.url] and each.status is not None and 300 <= each.status < 400:
            begun.setdefault(each.url, each.start)
        else:
            kept.append(replace(each, start=begun.pop(each.url, each.start)))
    return kept


def _mapped(take: dict[str, Any], known: Mapping[tuple[str, str], int]) -> Take:
    def number(method: str, url: str) -> int | None:
        return known.get((method, https_address(url)))

    def request(of: dict[str, Any]) -> Request:
        resource = of["resource"]
        return Request(
            **of
            | {
                "resource": None if resource is None else number(*resource),
                "url": https_address(of["url"]),
                "initiator": None if of["initiator"] is None else https_address(of["initiator"]),
                "stack": tuple(map(https_address, of["stack"])),
                # Connections of HTTP/1.1 say nothing of HTTP/2's.
                "connection": None,
            }
        )

    delays: dict[int, float] = defaultdict(float)
    for method, url, late in take["delays"]:
        if (resource := number(method, url)) is not None:
            delays[resource] += late
    return Take(
        **take
        | {
            "requests": _direct([request(each) for each in take["requests"]]),
            "delays": dict(delays),
            "largest_url": None if take["largest_url"] is None else https_address(take["largest_url"]),
        }
    )
