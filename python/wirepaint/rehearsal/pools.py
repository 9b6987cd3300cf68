"""Finds from the rehearsals which requests share connections.

Chromium opens separate connections for requests without credentials. For elements, the markup decides;
scripts (`import()`, `fetch`) choose at run time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from urllib.parse import urlsplit

from wirepaint.rehearsal.fitting import Part
from wirepaint.rehearsal.prediction import key
from wirepaint.rehearsal.takes import Take


def describe(part: Part, takes: Sequence[Take]) -> None:
    """Sets ``pool`` of https requests: two requests that ever used one connection have the same pool.

    If the requests of a host fall into more than two groups, they keep the pools from the markup.
    """
    predicted = {key(each["method"], each["url"]): int(each["pool"]) for each in part.graph()["resources"]}
    for groups in _groups(part, takes):
        if len(groups) > 2:
            continue
        share = [sum(predicted.get(part.key(n), 0) for n in group) / len(group) for group in groups]
        if len(groups) == 2:
            # If the elements leave it open, the group with the earliest request has credentials.
            pools = [int(share[0] > share[1]), int(share[0] <= share[1])]
        else:
            pools = [round(share[0])]
        for group, pool in zip(groups, pools, strict=True):
            for number in group:
                if rehearsed := part.resources[number].rehearsed:
                    rehearsed.pool = pool


def _groups(part: Part, takes: Sequence[Take]) -> list[list[list[int]]]:
    """For each host, groups of its resources that shared connections; the earliest requests first."""
    shared: dict[tuple[int, int | None], list[int]] = defaultdict(list)
    for place, take in enumerate(takes):
        for number, request in take.first.items():
            if request.connection is not None and urlsplit(request.url).scheme == "https":
                shared[place, request.connection].append(number)
    group: dict[int, set[int]] = {}
    for together in shared.values():
        joined = set(together).union(*(group[number] for number in together if number in group))
        for number in joined:
            group[number] = joined
    hosts: dict[str, list[list[int]]] = defaultdict(list)
    for number in sorted(group, key=lambda number: _asked(part, number)):
        if number == min(group[number], key=lambda other: _asked(part, other)):
            hosts[urlsplit(part.resources[number].url).netloc].append(sorted(group[number]))
    return list(hosts.values())


def _asked(part: Part, number: int) -> tuple[float, int]:
    rehearsed = part.resources[number].rehearsed
    return (rehearsed.start_ms or 0.0 if rehearsed else 0.0), number
