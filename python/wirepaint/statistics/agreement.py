"""Agreement of simulator and testbed: the two back ends of one evaluation, metric by metric.

A *point* is one page in one set of conditions (network, congestion control, ...), with the median
over its visits on each back end. Over the points:

- *rank correlation*: Spearman's rho. It shows whether the simulator puts pages and conditions into
  the testbed's order. A visit that timed out ranks behind all that loaded. If the median of a point is
  such a visit, the point has a rank and no error.
- *relative error* of a point: (simulator - testbed) / testbed. Median and 90th percentile of its absolute
  value, and its signed median, the bias.
- *direction*: the differences between two levels of a compared axis that the testbed decided
  (p at most 0.05, uncorrected); the share of them in which the simulator's difference has that sign.
"""

from __future__ import annotations

import json as jsonlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from wirepaint import metrics as measured
from wirepaint.errors import UsageError
from wirepaint.evaluation.axes import axes
from wirepaint.evaluation.visits import SIGNIFICANCE
from wirepaint.results import Results, examined
from wirepaint.statistics import losses, ranks
from wirepaint.statistics.compare import headline, of_single_pages
from wirepaint.statistics.intervals import CONFIDENCE
from wirepaint.statistics.verdicts import shift_rel
from wirepaint.statistics.wording import MINUS, number

REAL, SIMULATED = "testbed", "simulator"
NOTHING = "\N{EN DASH}"
LARGE = 0.02
"""A difference is large from this share of the baseline on: the margin of compare."""
FEWEST_POINTS = 5
"""Fewer points have no rank correlation: of four in random order, one in 24 has exactly the testbed's."""
LEAST_RANGE = 0.05
"""Share by which the testbed's largest value must exceed its smallest. Chance orders nearer points: two sets
of visits on the testbed differ by 3.4 % in the 90th percentile (docs/guide/simulator.md)."""


@dataclass(frozen=True)
class Agreement:
    """One metric over all points. Errors are shares of the testbed's value.

    ``rho`` is None with fewer than ``FEWEST_POINTS``, if the testbed's are nearer than ``LEAST_RANGE``, or
    if the simulator's are constant. ``left_out`` counts points without a relative error (testbed value 0),
    ``one_sided`` points with values of only one back end (failed or invalid runs), ``timed_out`` points whose
    median timed out on a back end; only ``rho`` includes these. ``decided`` and ``same_sign`` count
    differences between levels of compared axes, ``large`` and ``large_same_sign`` those of 2 % or more.
    """

    metric: str
    title: str
    unit: str
    points: int
    left_out: int
    one_sided: int
    rho: float | None
    median_error: float | None
    p90_error: float | None
    bias: float | None
    decided: int
    same_sign: int
    large: int = 0
    large_same_sign: int = 0
    timed_out: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        """Points, rank correlation, errors, bias and direction as text."""

        def share(value: float | None, sign: str = "") -> str:
            return NOTHING if value is None else f"{100 * value:{sign}.1f} %".replace("-", MINUS)

        return (
            str(self.points),
            NOTHING if self.rho is None else number(self.rho),
            share(self.median_error),
            share(self.p90_error),
            share(self.bias, "+"),
            f"{self.same_sign} of {self.decided}" if self.decided else NOTHING,
        )

    @property
    def sentence(self) -> str:
        """The agreement in words, without unknown values."""
        points, rho, median, p90, _, sign = self.cells
        said = [f"Simulator beside testbed over {points} points, {self.title.lower()}"]
        if self.median_error is not None:
            said.append(f"{median} off in the median, {p90} in the 90th percentile")
        if self.rho is not None:
            said.append(f"Spearman {rho}")
        if self.decided:
            said.append(f"the same sign in {sign} differences that the testbed decided")
        return f"{said[0]}: {'; '.join(said[1:]) or 'nothing to compare'}."


def pairs(frame: pl.DataFrame, metric: measured.Metric) -> pl.DataFrame:
    """The points of a metric. Columns: the axes except the back end; ``testbed`` and ``simulator`` (medians,
    null if missing or timed out); ``testbed_late`` and ``simulator_late`` (the median timed out);
    ``error`` (null if undefined)."""
    axes = [axis for axis in measured.AXES if axis != "backend"]
    value = pl.col(metric.column).cast(pl.Float64)
    if metric.name in losses.UNTIL_LOAD and losses.LIMIT in frame.columns:
        value = pl.when(pl.col(losses.LIMIT).is_not_null()).then(float("inf")).otherwise(value)
    known = frame.filter(~pl.col("warmup")).with_columns(value=value).drop_nulls("value")
    sides = [
        known.filter(pl.col("backend") == backend)
        .group_by(axes, maintain_order=True)
        .agg(pl.col("value").median().alias(backend))
        .with_columns(pl.col(backend).is_infinite().alias(f"{backend}_late"))
        .with_columns(pl.when(~pl.col(f"{backend}_late")).then(backend).alias(backend))
        for backend in (REAL, SIMULATED)
    ]
    both = sides[0].join(sides[1], on=axes, how="full", coalesce=True, maintain_order="left_right")
    error = (pl.col(SIMULATED) - pl.col(REAL)) / pl.col(REAL).abs()
    return both.with_columns(error=pl.when(pl.col(REAL) != 0).then(error))


def read(
    results: Results,
    simulated: Results | None = None,
    verdicts: Sequence[str] = ("valid",),
    metrics: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The table of ``metrics`` for :func:`agree`, from one folder with both back ends.

    If ``simulated`` is given, the simulator's runs come from there: the same pages and conditions simulated
    again.
    """

    def table(of: Results) -> pl.DataFrame:
        return losses.with_timeouts(of, measured.table(of, verdicts, metrics))

    return _replaced(table(results), table(simulated) if simulated else None)


def ended(
    results: Results, simulated: Results | None = None, verdicts: Sequence[str] = ("valid",)
) -> list[losses.Losses]:
    """How the visits of each back end ended, in the folders of :func:`read`."""
    again = losses.visits(simulated, verdicts) if simulated else None
    return losses.by_level(_replaced(losses.visits(results, verdicts), again), "backend", (REAL, SIMULATED))


def _replaced(frame: pl.DataFrame, again: pl.DataFrame | None) -> pl.DataFrame:
    """``frame`` with its simulated rows replaced by those of ``again``."""
    if again is None:
        return frame
    kept, others = frame.filter(pl.col("backend") != SIMULATED), again.filter(pl.col("backend") == SIMULATED)
    return pl.concat([kept, others], how="diagonal_relaxed")


def agree(frame: pl.DataFrame, metrics: Sequence[str]) -> list[Agreement]:
    """The agreement of each metric that has points; ``frame`` is :func:`wirepaint.metrics.table`."""
    counted = frame.filter(pl.col(losses.LIMIT).is_null()) if losses.LIMIT in frame.columns else frame
    present = set(counted["backend"].drop_nulls())
    if not {REAL, SIMULATED} <= present:
        found = f"counted runs of the {present.pop()} only" if present else "no run that counts"
        accepted = (
            "valid runs of both back ends, as `wirepaint run --backend both` makes them as root "
            "(--suspect counts suspect ones too)"
        )
        raise UsageError("results", found, accepted)
    found = []
    for name in metrics:
        metric = measured.get(name)
        if metric.label:
            raise UsageError("metric", repr(name), "a metric that is a number")
        known = pairs(frame, metric)
        points = known.drop_nulls([REAL, SIMULATED])
        ranked = known.with_columns(
            pl.when(f"{side}_late").then(float("inf")).otherwise(side).alias(side)
            for side in (REAL, SIMULATED)
        ).drop_nulls([REAL, SIMULATED])
        if points.is_empty():
            continue
        errors = points["error"].drop_nulls().to_numpy()
        decided = directions(frame, name)
        found.append(
            Agreement(
                metric=name,
                title=metric.title,
                unit=metric.unit,
                points=points.height,
                left_out=points.height - errors.size,
                one_sided=known.height - ranked.height,
                timed_out=ranked.height - points.height,
                rho=_rho(ranked),
                median_error=float(np.median(np.abs(errors))) if errors.size else None,
                p90_error=float(np.quantile(np.abs(errors), 0.9)) if errors.size else None,
                bias=float(np.median(errors)) if errors.size else None,
                decided=len(decided),
                same_sign=sum(same for same, _ in decided),
                large=sum(large for _, large in decided),
                large_same_sign=sum(same and large for same, large in decided),
            )
        )
    return found


def _rho(points: pl.DataFrame) -> float | None:
    if points.height < FEWEST_POINTS or points[SIMULATED].n_unique() < 2:
        return None
    values = points[REAL].to_numpy()
    # A visit that timed out is infinitely long.
    if not np.isinf(values).any() and np.ptp(values) <= LEAST_RANGE * np.abs(values).min():
        return None
    real, simulated = (ranks.doubled_ranks(points[side].to_numpy()) for side in (REAL, SIMULATED))
    if np.ptp(real) == 0:
        return None
    return float(np.corrcoef(real, simulated)[1, 0])


def directions(frame: pl.DataFrame, metric: str, of: Sequence[str] | None = None) -> list[tuple[bool, bool]]:
    """For each page's difference that the testbed decided: does the simulator's have its sign, is it large.

    ``of`` are the compared axes; all but those of the path when left out. Levels without runs on one back
    end are left out, so that both compare with the same baseline.
    """
    same = []
    sides = [frame.filter(~pl.col("warmup") & (pl.col("backend") == each)) for each in (REAL, SIMULATED)]
    for factor in of or [name for name, axis in axes().items() if not axis.of_path]:
        levels = set.intersection(*(set(side[factor].drop_nulls()) for side in sides))
        if len(levels) < 2:
            continue
        first = next(level for level in sides[0][factor] if level in levels)
        real, simulated = (
            of_single_pages(side.filter(pl.col(factor).is_in(levels)), factor, metric, str(first))
            for side in sides
        )
        for key, values in real.items():
            if key in simulated and (sign := _sign(values)):
                same.append((sign * ranks.shift(simulated[key]).value > 0, _is_large(values)))
    return same


def _sign(values: Sequence[ranks.Stratum]) -> int:
    """1 or -1 by the direction of a difference that its test finds by itself, else 0."""
    shift = ranks.shift(values).value
    if shift == 0 or ranks.rank_test(values).p > SIGNIFICANCE:
        return 0
    return 1 if shift > 0 else -1


def _is_large(values: Sequence[ranks.Stratum]) -> bool:
    positive = all((side > 0).all() for pair in values for side in pair)
    return positive and abs(shift_rel(values, CONFIDENCE).value) >= LARGE


def command(
    folder: Path,
    metric: Sequence[str] | None = None,
    *,
    simulated: Path | None = None,
    suspect: bool = False,
    json: bool = False,
) -> None:
    """``wirepaint agree``: prints a table, or with ``json`` one JSON document with every point."""
    results = examined(folder)
    again = examined(simulated) if simulated else None
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    if metric and "all" in metric:
        metric = [name for name, each in measured.registry().items() if not each.label]
    names = list(metric or headline(results))
    frame, lost = read(results, again, verdicts, names), ended(results, again, verdicts)
    found = agree(frame, names)
    if json:
        points = {row.metric: pairs(frame, measured.get(row.metric)).to_dicts() for row in found}
        document = {"title": results.title, "agreement": [asdict(row) for row in found], "points": points}
        document |= {"losses": [each.as_dict() for each in lost], "uneven": losses.unevenly(lost)}
        print(jsonlib.dumps(document, indent=1, ensure_ascii=False))
        return
    show(found, lost)
    if fidelity := (again or results).fidelity():
        Console(width=None if Console().is_terminal else 100, highlight=False).print(fidelity, markup=False)


def show(found: Sequence[Agreement], lost: Sequence[losses.Losses] = ()) -> None:
    """Prints the agreement as a table on stdout, and how the visits of each back end ended."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("simulator against testbed")
    for name in ("points", "Spearman", "median error", "90th pct", "bias", "same sign"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found:
        table.add_row(row.title, *row.cells)
    console = Console(width=None if Console().is_terminal else 100, highlight=False)
    console.print(table)
    if said := missing(found):
        console.print(said, style="bold")
    for said in losses.unevenly(lost):
        console.print(f"! {said}", markup=False)
    for each in lost:
        console.print(each.sentence, markup=False)
    console.print(
        "A point is one page in one set of conditions: medians of its visits. Errors are shares of the "
        "testbed's value. Same sign: of the differences that the testbed decided.",
        style="dim",
    )


def missing(found: Sequence[Agreement]) -> str:
    """A sentence on points that are not counted, since one back end has no value or timed out; else empty."""
    points = max((row.one_sided for row in found), default=0)
    late = max((row.timed_out for row in found), default=0)
    said = []
    if points:
        said.append(f"Not counted: points of which one back end has no run that counts, {points} of them.")
    if late:
        said.append(f"Points that timed out in the median: {late}; they have a rank and no error.")
    return " ".join(said)
