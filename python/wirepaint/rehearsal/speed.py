"""Measures the speed of this machine's processor by a fixed piece of work.

The computing times of a page are those of the machine that rehearsed it. The simulated browser computes at
that machine's speed, too (``processor_ns`` in the catalogue's browsers).
"""

from __future__ import annotations

import functools

from wirepaint import dataplane

APART = 1.5
"""A machine that is faster or slower by this factor rehearses a page again: a page load that is half
computing would be 20 % off."""


@functools.cache
def processor_ms() -> float:
    """CPU milliseconds that the work takes here, about 10, as measured once in this process.

    So often, since on a virtual machine whose neighbour computes, ten in a row may all be 1.4 times as slow.
    """
    return measured_ms(30)


def measured_ms(times: int) -> float:
    """The same, measured now: the shortest of several times.

    Raises ``MachineLacks`` without the data plane.
    """
    return round(dataplane.call("speed", str(times)) / 1e6, 2)


def is_alike(then_ms: float | None) -> bool:
    """True if a machine with the time ``then_ms`` is about as fast as this one, or unknown (None)."""
    return then_ms is None or 1 / APART < processor_ms() / then_ms < APART
