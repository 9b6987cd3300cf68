"""Times in which objects are received: from the first to the last byte of each (FLD section 4)."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from wirepaint.metrics._metric import Missing, Trace, rows, shared
from wirepaint.metrics._page import known, visit


class Received(NamedTuple):
    """An object with the times of its first and last byte in ns; None where they are not known.

    They are those of its chunks where it has some. DevTools' own times are late by up to one TLS record. A
    failed object without a last byte ends at its first.
    """

    url: str
    connection: int | None
    failed: str | None
    first: int | None
    last: int | None


@shared
def objects(trace: Trace) -> list[Received]:
    """The objects of the visit."""
    chunks = [chunk for chunk in rows(trace("chunk"), "request", "time") if chunk[1] is not None]
    chunks.sort(key=itemgetter(1))
    begins, ends = dict(reversed(chunks)), dict(chunks)
    columns = ("request", "first_byte", "last_byte", "url", "connection", "failed")
    found = []
    for request, first, last, url, connection, failed in rows(trace("object"), *columns):
        end = first if last is None and failed is not None else last
        if request in ends:
            begin, end = begins[request], ends[request]
            first = begin if first is None else min(first, begin)
        found.append(Received(url, connection, failed, first, end))
    return found


class Interval(NamedTuple):
    """Times between which an object is being received through a connection, in ns."""

    connection: int
    start: int
    end: int


@shared
def receiving(trace: Trace) -> list[Interval]:
    """The interval of each object that was received through a connection.

    Cut to the page load, [navigation start, load event]. Objects from a cache do not count.
    """
    row = visit(trace)
    navigation, load = known(row, "navigation_start"), known(row, "load_event")
    intervals = []
    for url, connection, _, first, last in objects(trace):
        if connection is None or first is None or first >= load:
            continue
        if last is None:
            raise Missing(f"the last byte of {url} is not known")
        start, end = max(first, navigation), min(last, load)
        if end > start:
            intervals.append(Interval(connection, start, end))
    return intervals


def covered(intervals: Iterable[Interval]) -> int:
    """Length in ns of the union of intervals."""
    length = reached = 0
    for start, end in sorted((start, end) for _, start, end in intervals):
        if end > reached:
            length += end - (start if start > reached else reached)
            reached = end
    return length


@shared
def busy(trace: Trace) -> int:
    """Length in ns of the time in which at least one object is being received."""
    return covered(receiving(trace))


def load_duration(trace: Trace) -> int:
    """Length in ns of [navigation start, load event]."""
    row = visit(trace)
    return known(row, "load_event") - known(row, "navigation_start")


def received_bytes(trace: Trace, begin: int, end: int) -> int:
    """Bytes that the browser received in [``begin``, ``end``] ns."""
    chunks = trace("chunk")
    times = chunks["time"].to_numpy()
    return int(np.nansum(chunks["bytes"].to_numpy()[(begin <= times) & (times <= end)]))
