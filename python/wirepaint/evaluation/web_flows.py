"""Web traffic without pages: short flows whose sizes were measured, at random times.

Flows begin as a Poisson process, each over a connection of its own: the client asks, the server answers.
The sizes follow a table of percentiles (catalog/flow-sizes), between two of them evenly in the logarithm.
"""

from __future__ import annotations

import csv
import math
import random
from functools import cache
from importlib import resources
from typing import Any

REQUEST_BYTES = 500
"""Bytes of a request: those of a browser's first one on a connection."""
_STEPS = 10_000
"""For the mean of a table."""


@cache
def sizes(name: str = "web") -> tuple[tuple[float, int], ...]:
    """Shares of the flows, and the bytes that so many do not exceed, in order."""
    file = resources.files("wirepaint").joinpath(f"catalog/flow-sizes/{name}.csv")
    lines = file.read_text("utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return tuple((float(row["percentile"]) / 100, int(row["bytes"])) for row in rows)


def size(share: float, name: str = "web") -> int:
    """The bytes that this share of the flows does not exceed."""
    table = sizes(name)
    below = (0.0, table[0][1])
    for above in table:
        if share <= above[0]:
            part = (share - below[0]) / (above[0] - below[0])
            return round(math.exp(math.log(below[1]) + part * math.log(above[1] / below[1])))
        below = above
    return table[-1][1]


@cache
def mean(name: str = "web") -> float:
    """Mean size of a flow in bytes."""
    return sum(size((step + 0.5) / _STEPS, name) for step in range(_STEPS)) / _STEPS


def drawn(load_bit_per_s: int, until_ns: int, seed: str) -> list[tuple[int, dict[str, Any]]]:
    """Start in ns, and what it transfers, of each flow of one run; the same for the same seed."""
    chance = random.Random(seed)
    between_ns = 8e9 * mean() / load_bit_per_s
    found: list[tuple[int, dict[str, Any]]] = []
    at = chance.expovariate(1 / between_ns)
    while at < until_ns:
        answer = {"response_bytes": size(chance.random()), "count": 1, "pause_ns": 0}
        found.append((round(at), {"kind": "request_response", "request_bytes": REQUEST_BYTES, **answer}))
        at += chance.expovariate(1 / between_ns)
    return found
