"""Readings of the bottleneck towards the client (table ``link``, direction ``down``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from wirepaint.metrics._flow import flows
from wirepaint.metrics._metric import Frame, Missing, Trace, shared
from wirepaint.metrics._page import NS_PER_MS, known, visit


class Samples(NamedTuple):
    """Some rows of the table ``link``, in the order of their times."""

    link: Frame
    places: np.ndarray

    def column(self, name: str) -> np.ndarray:
        """The values of a column; NaN where they are null."""
        return self.link[name].to_numpy()[self.places]


@shared
def samples(trace: Trace) -> Samples:
    """Samples of the page load: the last one before navigation start to the first after the load event.

    In a run of flows, or for its flows: from the first start of a flow to the last sample of one.
    Counters run from the start of the run; take differences of samples.
    """
    link = trace("link")
    segments, every = link.get_column("segment"), link.get_column("time").to_numpy()
    # The scenario's network is the first segment (``results.trace.main_link``).
    main = _holds(segments, segments[0] if link.height else None)
    down = np.flatnonzero(main & _holds(link.get_column("direction"), "down"))
    down = down[np.argsort(every[down], kind="stable")]
    begin, end = _span(trace)
    times = every[down]
    first = max(int(np.searchsorted(times, begin, "right")) - 1, 0)
    last = int(np.searchsorted(times, end, "left"))
    part = down[first : last + 1]
    if part.size < 2:
        raise Missing("the link was not sampled during the page load")
    return Samples(link, part)


def _holds(column: pl.Series, value: str | None) -> np.ndarray:
    """Where a column has a value. ``eq_missing`` takes 200 µs."""
    return (column.is_null() if value is None else column == value).to_numpy().astype(bool)


def _span(trace: Trace) -> tuple[int, int]:
    if trace("page").is_empty() and not trace("flow").is_empty():
        found = flows(trace)
        return int(found["started"].min()), int(found["last"].max())  # type: ignore[arg-type]
    row = visit(trace)
    return known(row, "navigation_start"), known(row, "load_event")


def increase(part: Samples, column: str) -> int:
    """Growth of a counter over the samples."""
    values = part.link.get_column(column)
    if values.has_nulls() and np.isnan(part.column(column)).any():
        raise Missing(f"the link has no {column}")
    return values[int(part.places[-1])] - values[int(part.places[0])]


@shared
def queueing_delays(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """For each sample the time in ms that the bottleneck needs for the queue, and the packets that arrived
    since the sample before."""
    part = samples(trace)
    if increase(part, "capacity_bytes") <= 0:
        raise Missing("the link could carry nothing during the page load")
    columns = ("time", "capacity_bytes", "queue_bytes", "offered_packets")
    times, capacity, queued, offered = (part.column(name).astype(float) for name in columns)
    # Beyond the last sample, the capacity continues at its mean.
    rate = (capacity[-1] - capacity[0]) / (times[-1] - times[0])
    wanted = capacity + queued
    carried = np.where(
        wanted <= capacity[-1],
        np.interp(wanted, capacity, times),
        times[-1] + (wanted - capacity[-1]) / rate,
    )
    # During an outage the capacity does not grow, but an empty queue still has no delay.
    values = np.where(queued > 0, np.maximum(carried - times, 0), 0) / NS_PER_MS
    arrived = np.zeros_like(offered)
    np.subtract(offered[1:], offered[:-1], out=arrived[1:])
    arrived[np.isnan(arrived)] = 0
    return values, arrived


def delay_percentile(trace: Trace, share: float) -> float:
    """Percentile (``share`` of 1) of the queueing delay in ms, weighted by arriving packets."""
    values, arrived = _ordered(trace)
    return float(values[np.searchsorted(arrived, share * arrived[-1])])


@shared
def _ordered(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Delays of samples at which packets arrived, from the smallest, and the packets up to each."""
    values, packets = queueing_delays(trace)
    order = np.argsort(values, kind="stable")
    order = order[packets[order] > 0]
    if not order.size:
        raise Missing("no packet arrived at the bottleneck during the page load")
    return values[order], packets[order].cumsum()
