"""Readings of the bottleneck towards the client (table ``link``, direction ``down``)."""

from __future__ import annotations

import numpy as np
import polars as pl

from wirepaint.metrics._flow import flows
from wirepaint.metrics._metric import Frame, Missing, Trace, shared
from wirepaint.metrics._page import NS_PER_MS, known, visit
from wirepaint.results.trace import main_link


@shared
def samples(trace: Trace) -> Frame:
    """Samples of the page load: the last one before navigation start to the first after the load event.

    In a run of flows, or for its flows: from the first start of a flow to the last sample of one.
    Counters run from the start of the run; take differences of samples.
    """
    link = main_link(trace("link")).filter(pl.col("direction") == "down").sort("time")
    begin, end = _span(trace)
    times = link["time"].to_numpy()
    first = max(int(np.searchsorted(times, begin, "right")) - 1, 0)
    last = int(np.searchsorted(times, end, "left"))
    part = link.slice(first, last - first + 1)
    if part.height < 2:
        raise Missing("the link was not sampled during the page load")
    return part


def _span(trace: Trace) -> tuple[int, int]:
    if trace("page").is_empty() and not trace("flow").is_empty():
        found = flows(trace)
        return int(found["started"].min()), int(found["last"].max())  # type: ignore[arg-type]
    row = visit(trace)
    return known(row, "navigation_start"), known(row, "load_event")


def increase(part: Frame, column: str) -> int:
    """Growth of a counter over the samples."""
    if part[column].null_count():
        raise Missing(f"the link has no {column}")
    return part[column][-1] - part[column][0]


@shared
def queueing_delays(trace: Trace) -> Frame:
    """One row per sample: ``value`` in ms, and the ``packets`` that arrived since the sample before.

    ``value`` is the time that the bottleneck needs for the queue at the sample.
    """
    part = samples(trace)
    if increase(part, "capacity_bytes") <= 0:
        raise Missing("the link could carry nothing during the page load")
    times = part["time"].to_numpy().astype(float)
    capacity = part["capacity_bytes"].to_numpy().astype(float)
    # Beyond the last sample, the capacity continues at its mean.
    rate = (capacity[-1] - capacity[0]) / (times[-1] - times[0])
    queued = part["queue_bytes"].to_numpy()
    wanted = capacity + queued
    carried = np.where(
        wanted <= capacity[-1],
        np.interp(wanted, capacity, times),
        times[-1] + (wanted - capacity[-1]) / rate,
    )
    return pl.DataFrame(
        {
            "time": part["time"],
            # During an outage the capacity does not grow, but an empty queue still has no delay.
            "value": np.where(queued > 0, np.maximum(carried - times, 0), 0) / NS_PER_MS,
            "packets": part["offered_packets"].diff().fill_null(0),
        }
    )


def delay_percentile(trace: Trace, share: float) -> float:
    """Percentile (``share`` of 1) of the queueing delay in ms, weighted by arriving packets."""
    values, arrived = _ordered(trace)
    return float(values[np.searchsorted(arrived, share * arrived[-1])])


@shared
def _ordered(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Delays of samples at which packets arrived, from the smallest, and the packets up to each."""
    delays = queueing_delays(trace)
    values, packets = delays["value"].to_numpy(), delays["packets"].to_numpy()
    order = np.argsort(values, kind="stable")
    order = order[packets[order] > 0]
    if not order.size:
        raise Missing("no packet arrived at the bottleneck during the page load")
    return values[order], packets[order].cumsum()
