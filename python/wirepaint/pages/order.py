"""Orders a load graph for the page model: only wanted resources, each cause before its effects."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any


def ordered(
    resources: Sequence[dict[str, Any]], wanted: Sequence[bool], starts: Sequence[float]
) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """The wanted resources in order of ``starts`` (but causes first), and the new number of each.

    An unwanted cause is replaced by its own cause; a cause that would close a circle is replaced by the
    navigation.
    """
    wanted = [wanted[0] or True, *wanted[1:]]
    nearest: dict[int, int] = {}
    causes = [_causes(resources, number, wanted, nearest) for number in range(len(resources))]
    waiting = {n: set(causes[n]) for n, kept in enumerate(wanted) if kept}
    effects: dict[int, list[int]] = {n: [] for n in waiting}
    for number, by in waiting.items():
        for cause in by:
            effects[cause].append(number)
    ready = [(starts[n], n) for n, by in waiting.items() if not by]
    heapq.heapify(ready)
    order: list[int] = []
    while waiting:
        if not ready:  # a circle: the earliest of it follows the navigation
            number = min(waiting, key=lambda n: (starts[n], n))
            causes[number] = [0]
            waiting[number] = set()
            ready.append((starts[number], number))
        _, number = heapq.heappop(ready)
        if waiting.pop(number, None) is None:
            continue
        order.append(number)
        for effect in effects[number]:
            if effect in waiting:
                waiting[effect].discard(number)
                if not waiting[effect]:
                    heapq.heappush(ready, (starts[effect], effect))
    place = {number: position for position, number in enumerate(order)}
    return [_renumbered(resources[number], causes[number], place) for number in order], place


def _causes(
    resources: Sequence[dict[str, Any]], number: int, wanted: Sequence[bool], nearest: dict[int, int]
) -> list[int]:
    cause = resources[number].get("cause")
    if cause is None:
        return []
    named = (cause["by"], *resources[number].get("also", ()))
    found = [_nearest(resources, by, wanted, nearest) for by in named]
    return list(dict.fromkeys(by for by in found if by != number)) or [0]


def _nearest(
    resources: Sequence[dict[str, Any]], number: int, wanted: Sequence[bool], known: dict[int, int]
) -> int:
    """``number``, or its nearest wanted cause, 0 in a circle; cached in ``known``."""
    passed: dict[int, None] = {}
    while not wanted[number] and number not in known and number not in passed:
        passed[number] = None
        number = resources[number].get("cause", {}).get("by", 0)
    found = number if wanted[number] else known.get(number, 0)
    known |= dict.fromkeys(passed, found)
    return found


def _renumbered(resource: dict[str, Any], causes: list[int], place: dict[int, int]) -> dict[str, Any]:
    cause = resource.get("cause")
    if cause is None:
        return resource
    by, *also = (place[number] for number in causes)
    moved = cause | {"by": by}
    if causes[0] != cause["by"] and cause["kind"] != "script":
        # Its document or style sheet is unwanted or comes later: another resource causes it.
        moved = {"kind": "script", "by": by, "after_ns": 0}
    rest = {key: value for key, value in resource.items() if key != "also"}
    return rest | {"cause": moved} | ({"also": also} if also else {})
