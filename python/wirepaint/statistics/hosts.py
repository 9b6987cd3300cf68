"""Results of several testbeds: a host is a block. Says how much hosts differ, and what is not compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from wirepaint import metrics as measured
from wirepaint.results import Results
from wirepaint.statistics.intervals import CONFIDENCE, Interval
from wirepaint.statistics.verdicts import shift_rel
from wirepaint.statistics.wording import bounds, count, percent

HOST = "host"


@dataclass(frozen=True)
class Apart:
    """How the visits on a host differ from those on another under the same conditions.

    ``shift`` is the Hodges-Lehmann shift of the metric as a share, within ``conditions`` that both hosts had,
    pages included.
    """

    metric: str
    title: str
    baseline: str
    host: str
    shift: Interval
    conditions: int

    @property
    def sentence(self) -> str:
        """``lab-b against lab-a: page load time +1.2 % (+0.8 to +1.6), over 12 conditions; ...``"""
        return (
            f"{self.host} against {self.baseline}: {self.title.lower()} {percent(self.shift.value)} % "
            f"({bounds(self.shift, percent)}), over {count(self.conditions, 'condition')}; "
            "visits are compared within a host only."
        )


def named(frame: pl.DataFrame, factor: str) -> pl.DataFrame:
    """The table with a name in each cell of ``host``: empty for visits that no testbed carried out.

    All are empty if ``factor`` is the back end: simulated visits have no host.
    """
    host = pl.col(HOST).fill_null("") if HOST in frame.columns and factor != "backend" else pl.lit("")
    return frame.with_columns(host.alias(HOST))


def parted(frame: pl.DataFrame, factor: str, baseline: str, *more: str) -> list[str]:
    """A sentence for each level of ``factor`` that shares no host with ``baseline`` under some conditions.

    Such visits are not compared. ``frame`` and ``more`` are those of :func:`apart`.
    """
    known = named(frame.filter(~pl.col("warmup")), factor)
    if known[HOST].n_unique() < 2:
        return []
    axes = [axis for axis in dict.fromkeys((*measured.AXES, *more)) if axis in frame.columns]
    axes = [axis for axis in axes if axis != factor]
    varying = [axis for axis in axes if axis in ("network", "page") or known[axis].n_unique() > 1]
    of: dict[str, dict[tuple[str, ...], list[str]]] = {}
    on = known.group_by(factor, *varying, maintain_order=True).agg(pl.col(HOST).unique().sort())
    for level, *key, names in on.iter_rows():
        of.setdefault(str(level), {})[tuple(map(str, key))] = names
    first = of.pop(str(baseline), {})
    found = []
    for level, strata in of.items():
        both = [key for key in strata if key in first]
        if not (without := [key for key in both if not set(first[key]) & set(strata[key])]):
            continue
        example = without[0]
        found.append(
            f"No host has visits with both {baseline} and {level} in {len(without)} of "
            f"{count(len(both), 'condition')} ({' / '.join(example)}: {baseline} on "
            f"{', '.join(first[example])}, {level} on {', '.join(strata[example])}), "
            "so they are not compared."
        )
    return found


def of_results(results: Results, metric: str, verdicts: Sequence[str]) -> list[Apart]:
    """:func:`apart` over the runs of a results folder with one of ``verdicts``."""
    if results.compact("done")[HOST].drop_nulls().n_unique() < 2:
        return []
    return apart(measured.table(results, verdicts, [metric]), metric)


def apart(frame: pl.DataFrame, metric: str, *more: str) -> list[Apart]:
    """Each host against the one with most visits; empty for one host.

    ``frame`` is :func:`wirepaint.metrics.table`; ``more`` are axes that it has in addition.
    """
    of = measured.get(metric)
    axes = [axis for axis in dict.fromkeys((*measured.AXES, *more)) if axis in frame.columns]
    visits = frame.filter(~pl.col("warmup")).drop_nulls([HOST, of.column]).filter(pl.col(of.column) > 0)
    hosts = visits[HOST].value_counts(sort=True).sort("count", HOST, descending=[True, False])[HOST].to_list()
    found: dict[tuple[object, ...], dict[str, np.ndarray]] = {}
    for *key, host, values in visits.group_by([*axes, HOST], maintain_order=True).agg(of.column).iter_rows():
        found.setdefault(tuple(key), {})[host] = np.array(values)
    rows = []
    for host in hosts[1:]:
        strata = [(cell[hosts[0]], cell[host]) for cell in found.values() if {hosts[0], host} <= cell.keys()]
        if strata:
            rows.append(Apart(of.name, of.title, hosts[0], host, shift_rel(strata, CONFIDENCE), len(strata)))
    return rows
