"""What service classes get of a link while all of them have packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def rates(classes: Sequence[Mapping[str, Any]], rate: float) -> list[float]:
    """Wire rate of each class in bit/s; ``classes`` as in the run description, ``rate`` of the link.

    A level has all that the levels before it leave. Within one, classes share by weight; what a ceiling
    leaves goes to the others of its level, then to the next one.
    """
    found = [0.0] * len(classes)
    left = rate
    for level in sorted({each.get("priority", 0) for each in classes}):
        waiting = [i for i, each in enumerate(classes) if each.get("priority", 0) == level]
        while waiting and left > 0:
            weight = sum(classes[i].get("weight", 1) for i in waiting)
            share = {i: left * classes[i].get("weight", 1) / weight for i in waiting}
            capped = [i for i in waiting if (classes[i].get("ceiling_bit_per_s") or float("inf")) <= share[i]]
            for i in capped or waiting:
                found[i] = min(share[i], classes[i].get("ceiling_bit_per_s") or float("inf"))
            left -= sum(found[i] for i in capped or waiting)
            waiting = [i for i in waiting if i not in capped] if capped else []
    return found
