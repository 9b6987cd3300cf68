"""How the visits of each level ended: how many count, and why the others do not.

The counted visits are a fair sample only if the levels lost equal shares. If slow visits of a congestion
control time out, it looks fast by the remaining ones. So levels that lost different shares are named, and in
ranks a visit that timed out is longer than its limit (``compare``, ``agreement``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wirepaint import metrics as measured
from wirepaint.results import Results, journal

LIMIT = "timed_out_ms"
"""Column of a table of visits: the limit that a visit exceeded, in ms; null for a visit that loaded."""
UNTIL_LOAD = frozenset({"page-load-time"})
"""Metrics that end with the load event: for a visit that timed out they exceed the limit. Its paints are
unknown; they may have come early."""
UNEVEN_SHARE, UNEVEN_VISITS = 0.10, 2
"""Losses are uneven if the shares differ by this much, and by this many visits. A test has no power with
the few visits of an evaluation: Fisher's exact test does not find 4 of 15 against 0 of 15 (p = 0.10), yet the
median of the remaining 11 may be the 6th fastest of 15, not the 8th."""
_ENDS = ("timed out", "failed", "suspect", "invalid", "cannot count")
_OPEN = ("planned", "running", "skipped")
"""Not carried out yet, or not needed: no loss."""


@dataclass(frozen=True)
class Losses:
    """How the visits of one level ended, without visits that are not carried out or not needed.

    ``left_out`` has the numbers of suspect and invalid visits, and of visits of pages that cannot count.
    """

    level: str
    counted: int
    timed_out: int
    failed: int
    left_out: dict[str, int]

    @property
    def lost(self) -> int:
        return self.timed_out + self.failed + sum(self.left_out.values())

    @property
    def ended(self) -> int:
        return self.counted + self.lost

    @property
    def causes(self) -> str:
        """Why visits were lost, such as ``2 timed out, 1 invalid``; empty if none was."""
        numbers = {"timed out": self.timed_out, "failed": self.failed} | self.left_out
        return ", ".join(f"{number} {name}" for name, number in numbers.items() if number)

    @property
    def sentence(self) -> str:
        return f"{self.level}: {self.counted:,} of {self.ended:,} visits count" + (
            f"; {self.causes}." if self.lost else "."
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "lost": self.lost, "ended": self.ended}


def of(level: str, ends: Mapping[str, int]) -> Losses:
    """The losses of a level, from numbers of visits by end (``visits``)."""
    left_out = {name: ends.get(name, 0) for name in _ENDS[2:] if ends.get(name)}
    return Losses(level, ends.get("counted", 0), ends.get("timed out", 0), ends.get("failed", 0), left_out)


def visits(results: Results, verdicts: Sequence[str]) -> pl.DataFrame:
    """One row per visit that ended: its scenario and axes, and ``end``: ``counted`` or why it does not count.

    Without warm-ups and visits that are not carried out yet or not needed. Texts are categoricals.
    """
    frame = _ends(measured.apart(results, results.compact().filter(~pl.col("warmup"))), verdicts)
    return frame.filter(~pl.col("end").is_in(_OPEN))


def asked(results: Results, verdicts: Sequence[str]) -> pl.DataFrame:
    """One row per visit, and one per name of flows in each run, that the evaluation asks for, ended or not.

    The rows that :func:`wirepaint.metrics.table` has if every run counts, with ``of_flows`` and ``end``; that
    may also be the state of a visit still to come or not needed.
    """
    runs = results.runs().filter(~pl.col("warmup"))
    evaluation = results.manifest["evaluation"]
    names = list(dict.fromkeys(measured.group(flow["name"]) for flow in evaluation["flows"]))
    of_flows = runs.drop("page").join(pl.DataFrame({"page": names}, {"page": pl.String}), how="cross")
    of_visits = measured.apart(results, runs) if evaluation["user_agents"] else runs.clear()
    return pl.concat(
        _ends(rows, verdicts).with_columns(of_flows=pl.lit(which))
        for which, rows in ((False, of_visits), (True, of_flows))
    )


def _ends(runs: pl.DataFrame, verdicts: Sequence[str]) -> pl.DataFrame:
    of_end = ["state", "verdict", "cause", "kind"]
    known = runs.select(of_end).unique(maintain_order=True)
    standings = [journal.standing(*row) for row in known.iter_rows()]
    ends = ["counted" if standing in verdicts else standing for standing in standings]
    known = known.with_columns(pl.Series("end", ends, dtype=pl.Categorical()))
    return runs.join(known, on=of_end, how="left", nulls_equal=True, maintain_order="left").select(
        "scenario", *measured.AXES, "end"
    )


def with_timeouts(results: Results, table: pl.DataFrame) -> pl.DataFrame:
    """:func:`wirepaint.metrics.table` with a row for each visit that timed out: ``LIMIT``, and no metric."""
    late = results.compact("failed").filter(pl.col("kind") == "timeout").drop("kind")
    # Of users together one timed out; the loads of the others are not known.
    groups = [agent["group"] for agent in results.manifest["evaluation"]["user_agents"] if agent["group"]]
    late = late.filter(~pl.col("user_agent").is_in(groups))
    limit = results.manifest["evaluation"]["timeout"] / 1e6
    late = late.select(pl.col(name).cast(of) for name, of in table.schema.items() if name in late.columns)
    return pl.concat([table, late.with_columns(pl.lit(limit).alias(LIMIT))], how="diagonal_relaxed")


def by_level(visits: pl.DataFrame, factor: str, order: Sequence[str]) -> list[Losses]:
    """The losses of each level of ``factor`` in ``order``; separately for each of several back ends."""
    axes = [factor]
    if factor != "backend" and visits["backend"].n_unique() > 1:
        axes.append("backend")
    ends: dict[tuple[str, ...], Counter[str]] = {}
    numbers = visits.group_by([*axes, "end"], maintain_order=True).len()
    for *key, end, number in numbers.iter_rows():
        ends.setdefault(tuple(map(str, key)), Counter())[end] += number
    keys = sorted(ends, key=lambda key: (order.index(key[0]) if key[0] in order else len(order), key))
    return [of(", ".join(key), ends[key]) for key in keys]


def uneven(first: Losses, second: Losses) -> bool:
    """True if the lost shares differ so much that the remaining visits may not be comparable."""
    if not first.ended or not second.ended:
        return False
    shares = first.lost / first.ended - second.lost / second.ended
    return abs(shares) >= UNEVEN_SHARE and abs(first.lost - second.lost) >= UNEVEN_VISITS


def sentence(first: Losses, second: Losses, where: str = "") -> str:
    """A sentence that two levels lost different shares."""

    def part(one: Losses) -> str:
        return f"{one.level} lost {one.lost:,} of {one.ended:,} visits" + (
            f" ({one.causes})" if one.lost else ""
        )

    said = f"{part(first)} and {part(second)}: those that are left may not be alike."
    return f"{where}: {said}" if where else said


def unevenly(found: Iterable[Losses]) -> list[str]:
    """A sentence for each level that lost another share than the first."""
    levels = list(found)
    return [sentence(levels[0], other) for other in levels[1:] if uneven(levels[0], other)]
