"""Which requests share connections, as the rehearsals showed.

Chromium opens other connections for requests without credentials. Elements say which those are; scripts
(`import()`, `fetch`) choose as they run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from urllib.parse import urlsplit

from wirepaint.rehearsal.fitting import Part
from wirepaint.rehearsal.prediction import key
from wirepaint.rehearsal.takes import Take


def describe(part: Part, takes: Sequence[Take]) -> None:
    """Sets ``pool`` of what is asked for by https: two requests that ever came over one connection share it.

    Hosts whose requests fall into more than two groups keep what elements say.
    """
    predicted = {key(each["method"], each["url"]): int(each["pool"]) for each in part.graph()["resources"]}
    for groups in _groups(part, takes):
        if len(groups) > 2:
            continue
        share = [sum(predicted.get(part.key(n), 0) for n in group) / len(group) for group in groups]
        if len(groups) == 2:
            # Where elements do not tell which is which, the page began with credentials.
            pools = [int(share[0] > share[1]), int(share[0] <= share[1])]
        else:
            pools = [round(share[0])]
        for group, pool in zip(groups, pools, strict=True):
            for number in group:
                if rehearsed := part.resources[number].rehearsed:
                    rehearsed.pool = pool


def _groups(part: Part, takes: Sequence[Take]) -> list[list[list[int]]]:
    """Of each host: its resources by what they shared a connection with, the earliest asked for first."""
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
