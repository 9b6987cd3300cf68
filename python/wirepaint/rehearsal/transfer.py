"""Takes of a page of plain http as takes of its https version, which loads in the same way.

The https version then needs loads of its own only to find its requests and to judge the simulator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wirepaint.pages.model import Resource
from wirepaint.pages.secure import https_address
from wirepaint.rehearsal.takes import Request, Take


@dataclass(frozen=True)
class Plain:
    """What the rehearsal of a page of plain http tells of its https version."""

    takes: Sequence[Take]
    """The draft and the takes that fitted it."""
    resources: Sequence[Resource]
    error: float | None
    """The simulator's error on the page."""


def asked(take: Take) -> frozenset[str]:
    """The addresses that the take asked for and the page has, by https."""
    return frozenset(https_address(each.url) for each in take.requests if each.resource is not None)


def by_https(plain: Plain, known: Mapping[tuple[str, str], int], draft: Take) -> list[Take]:
    """The takes of the plain page as takes of its https version; none if these two do not ask for the same
    before their load events.

    ``known`` has the version's resources by method and address, ``draft`` is its own take without delays.
    """
    numbers = {
        number: known.get((resource.method, https_address(resource.url)))
        for number, resource in enumerate(plain.resources)
    }
    mapped = [_mapped(take, numbers) for take in plain.takes]
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


def _mapped(take: Take, numbers: Mapping[int, int | None]) -> Take:
    def request(of: Request) -> Request:
        return replace(
            of,
            resource=None if of.resource is None else numbers[of.resource],
            url=https_address(of.url),
            initiator=None if of.initiator is None else https_address(of.initiator),
            stack=tuple(map(https_address, of.stack)),
            connection=None,  # those of HTTP/1.1 say nothing of HTTP/2's
        )

    delays: dict[int, float] = defaultdict(float)
    for number, late in take.delays.items():
        if (resource := numbers[number]) is not None:
            delays[resource] += late
    return replace(
        take,
        requests=_direct([request(each) for each in take.requests]),
        delays=dict(delays),
        trace=[],
        largest_url=None if take.largest_url is None else https_address(take.largest_url),
    )
