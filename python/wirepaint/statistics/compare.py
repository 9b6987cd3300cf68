"""Compares two levels of a factor, everything else equal: a verdict and its numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from json import dumps as to_json
from pathlib import Path

import numpy as np
import polars as pl

from wirepaint import metrics as measured
from wirepaint.errors import UsageError
from wirepaint.results import Results
from wirepaint.statistics import losses, ranks
from wirepaint.statistics.comparison import Comparison, Level
from wirepaint.statistics.intervals import Interval, mean, median
from wirepaint.statistics.losses import Losses

MARGIN = 0.02
SIGNIFICANCE = 0.05


def compare(
    frame: pl.DataFrame,
    factor: str,
    metrics: Sequence[str],
    baseline: str | None = None,
    *,
    margin: float = MARGIN,
    by_page: bool = True,
    visits: pl.DataFrame | None = None,
) -> list[Comparison]:
    """Compares every level of ``factor`` with the baseline level, for each metric.

    ``frame`` is :func:`wirepaint.metrics.table`; warm-up visits are left out. The default baseline
    is the first level in the frame. Per metric and level there is a row for each
    combination of the other axes over all pages, one over all combinations if there are
    several, and with ``by_page`` one for each page. Only pages with values at both levels are used.
    Two levels count as the same within the share ``margin``. Rows with ``losses.LIMIT`` are visits
    that timed out; ``visits`` (``losses.visits``) gives the lost visits.

    Holm's correction has one family of all rows over all pages, and one per metric of its rows of
    single pages. Measured and simulated rows are always separate families.
    """
    frame = frame.filter(~pl.col("warmup")) if "warmup" in frame.columns else frame
    axes = [axis for axis in measured.AXES if axis in frame.columns]
    if factor not in axes or factor == "page":
        raise UsageError("factor", repr(factor), ", ".join(axis for axis in axes if axis != "page"))
    frame = frame.with_columns(pl.col(axes).cast(pl.String))
    levels = frame[factor].drop_nulls().unique(maintain_order=True).to_list()
    if len(levels) < 2:
        found = f"the one level {levels[0]!r}" if levels else "no run"
        raise UsageError(f"factor {factor}", found, "results with two levels or more that have usable runs")
    if baseline is not None and baseline not in levels:
        raise UsageError(f"baseline of {factor}", f"{baseline!r} with no usable run", ", ".join(levels))
    if not 0 <= margin < 1:
        raise UsageError("margin", f"{margin:g}", "a share from 0 to less than 1")
    first = baseline or levels[0]
    others = [
        axis
        for axis in axes
        if axis not in (factor, "page") and (axis == "network" or frame[axis].n_unique() > 1)
    ]
    others.sort(key=lambda axis: axis != "network")
    ends = _ends(visits, factor, others) if visits is not None else None
    rows = []
    for name in metrics:
        metric = measured.get(name)
        if metric.label:
            raise UsageError("metric", repr(name), "a metric that is a number")
        for candidate in levels:
            if candidate != first:
                rows += _Pair(metric, factor, first, candidate, others, frame, margin, ends).rows(by_page)
    return _judged(rows)


_Key = tuple[str, ...]
"""A stratum: the levels of the other axes, then the page."""
_Ends = Mapping[tuple[str, _Key, str | None], Counter[str]]
"""Numbers of visits by end, for a level, levels of the other axes (or all), and a page (or all)."""


def _ends(visits: pl.DataFrame, factor: str, others: Sequence[str]) -> _Ends:
    found: dict[tuple[str, _Key, str | None], Counter[str]] = {}
    columns = visits.select(pl.col([factor, *others, "page"]).cast(pl.String), "end")
    for level, *group, page, end in columns.iter_rows():
        for key in {(level, tuple(group), page), (level, tuple(group), None), (level, (), None)}:
            found.setdefault(key, Counter())[end] += 1
    return found


class _Pair:
    """One metric at two levels of the factor, by stratum."""

    def __init__(
        self,
        metric: measured.Metric,
        factor: str,
        baseline: str,
        candidate: str,
        others: Sequence[str],
        frame: pl.DataFrame,
        margin: float,
        ends: _Ends | None,
    ) -> None:
        self.metric, self.factor, self.others, self.margin = metric, factor, others, margin
        self.levels, self.ends = (baseline, candidate), ends
        self.values = [self._by_stratum(frame, level, metric.column) for level in self.levels]
        self.late: list[dict[_Key, tuple[float, ...]]] = [{}, {}]
        if metric.name in losses.UNTIL_LOAD and losses.LIMIT in frame.columns:
            self.late = [self._by_stratum(frame, level, losses.LIMIT) for level in self.levels]
        lower, upper = ({**values, **late} for values, late in zip(self.values, self.late, strict=True))
        self.both = [key for key in lower if key in upper]
        self.one = [key for key in {**lower, **upper} if key not in self.both]

    def _by_stratum(self, frame: pl.DataFrame, level: str, column: str) -> dict[_Key, tuple[float, ...]]:
        part = frame.filter(pl.col(self.factor) == level).drop_nulls(column)
        grouped = part.group_by([*self.others, "page"], maintain_order=True).agg(pl.col(column))
        return {tuple(row[:-1]): tuple(row[-1]) for row in grouped.iter_rows()}

    def rows(self, by_page: bool) -> Iterator[Comparison]:
        """A row for each set of conditions, with rows of its pages; then one for all conditions."""
        groups = list(dict.fromkeys(key[:-1] for key in self.both))
        for group in groups:
            keys = [key for key in self.both if key[:-1] == group]
            conditions = dict(zip(self.others, group, strict=True))
            yield self._row(keys, conditions)
            if by_page and len(keys) > 1:
                yield from (self._row([key], conditions, page=key[-1]) for key in keys)
        if len(groups) > 1 and "backend" not in self.others:
            yield self._row(self.both, {})

    def _row(self, keys: Sequence[_Key], conditions: dict[str, str], page: str | None = None) -> Comparison:
        """The comparison over these strata, still without a verdict."""

        def label(key: _Key) -> str:
            return key[-1] if conditions else " / ".join(key)

        lower, upper = ({label(key): values[key] for key in keys if key in values} for values in self.values)
        late = [{label(key): late.get(key, ()) for key in keys} for late in self.late]
        strata = {
            name: (
                np.array(lower.get(name, ()) + late[0][name]), np.array(upper.get(name, ()) + late[1][name])
            )
            for name in map(label, keys)
        }  # fmt: skip
        arrays = list(strata.values())
        shared = [name for name in lower if name in upper]
        positive = all((a > 0).all() and (b > 0).all() for a, b in arrays)
        estimate = _relative if positive else ranks.shift
        test = ranks.rank_test(arrays)
        left_out = [key for key in self.one if not conditions or key[:-1] == tuple(conditions.values())]
        return Comparison(
            metric=self.metric.name,
            title=self.metric.title,
            unit=self.metric.unit,
            factor=self.factor,
            conditions=conditions,
            network=conditions.get("network"),
            page=page,
            pages=tuple(dict.fromkeys(key[-1] for key in keys)),
            left_out=() if page else tuple(map(label, left_out)),
            baseline=_level(self.levels[0], lower, shared, late[0]),
            candidate=_level(self.levels[1], upper, shared, late[1]),
            shift=ranks.shift(arrays),
            shift_rel=_relative(arrays) if positive else None,
            by_stratum={name: estimate([pair]) for name, pair in strata.items()},
            test=test.name,
            p=test.p,
            p_holm=math.nan,
            family=0,
            effect=test.effect,
            margin=self.margin,
            verdict="",
            dissent=(),
            losses=self._losses(conditions, page),
        )

    def _losses(self, conditions: dict[str, str], page: str | None) -> tuple[Losses, Losses] | None:
        if self.ends is None:
            return None
        ends = [self.ends.get((level, tuple(conditions.values()), page), {}) for level in self.levels]
        first, second = (losses.of(level, found) for level, found in zip(self.levels, ends, strict=True))
        return first, second


def _level(
    level: str,
    values: dict[str, tuple[float, ...]],
    shared: Sequence[str],
    late: Mapping[str, tuple[float, ...]],
) -> Level:
    strata = [values[name] for name in shared or values]
    return Level(
        level,
        n=sum(map(len, values.values())),
        median=median(*strata) if strata else None,
        mean=mean(*strata) if strata else None,
        values=values,
        timed_out=sum(map(len, late.values())),
    )


def _relative(strata: Sequence[ranks.Stratum]) -> Interval:
    """The shift of the logarithms, as a share of the baseline."""
    logs = ranks.shift([(np.log(baseline), np.log(candidate)) for baseline, candidate in strata])
    return Interval(
        math.expm1(logs.value),
        None if logs.low is None else math.expm1(logs.low),
        None if logs.high is None else math.expm1(logs.high),
    )


def _judged(rows: list[Comparison]) -> list[Comparison]:
    """The rows with corrected p values and verdicts."""
    families: dict[tuple[str | None, str | None], list[int]] = {}
    for index, row in enumerate(rows):
        family = row.metric if row.page else None, row.conditions.get("backend")
        families.setdefault(family, []).append(index)
    judged = list(rows)
    for members in families.values():
        corrected = holm([rows[index].p for index in members])
        for index, p in zip(members, corrected, strict=True):
            row = replace(rows[index], p_holm=p, family=len(members))
            verdict, dissent = _verdict(row)
            judged[index] = replace(row, verdict=verdict, dissent=dissent)
    return judged


def holm(p: Sequence[float]) -> list[float]:
    """P values corrected for multiple tests by Holm's step-down method (Holm 1979)."""
    corrected, largest = [1.0] * len(p), 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[index]))
        corrected[index] = largest
    return corrected


def _verdict(row: Comparison) -> tuple[str, tuple[str, ...]]:
    """The verdict, and the strata that contradict it.

    Same, if the whole interval lies within the margin and no stratum lies wholly outside it; else
    the direction, if the test finds one; else undecided.
    """
    share = row.shift_rel is not None
    middle = row.baseline.median
    limit = row.margin if share or middle is None else row.margin * abs(middle.value)
    whole = row.shift_rel or row.shift
    apart = tuple(name for name, shift in row.by_stratum.items() if shift.outside(limit))
    if whole.inside(limit):
        return ("undecided", apart) if apart and len(row.by_stratum) > 1 else ("same", ())
    if row.p_holm > SIGNIFICANCE or row.effect == 0:
        return "undecided", ()
    better = measured.get(row.metric).better
    words = ("lower", "higher")
    if better:
        words = ("faster", "slower") if row.unit == "ms" else ("better", "worse")
    word = words[(row.effect < 0) != (better != "higher")]
    return word, tuple(name for name in apart if (row.by_stratum[name].value < 0) != (row.effect < 0))


HEADLINE = (
    "page-load-time",
    "first-contentful-paint",
    "largest-contentful-paint",
    "base-page-latency",
    "page-net-transfer-time",
    "idle-time",
    "effective-concurrency",
    "connection-duration",
)
"""Metrics of visits that are compared by default."""
OF_FLOWS = (
    "goodput",
    "flow-completion-time",
    "message-delay-p50",
    "message-delay-p99",
    "flow-retransmissions",
    "flow-share",
)
"""Metrics of flows that are compared by default."""
OF_LINK = ("jain-index", "link-utilisation", "queueing-delay-p50", "drop-rate")
"""Metrics of a run of flows alone that are compared by default."""


def headline(results: Results) -> tuple[str, ...]:
    """The metrics that are compared by default: of the visits, flows or both, and the evaluation's own."""
    evaluation = results.manifest["evaluation"]
    of_flows = OF_FLOWS if measured.all_flows(results) else ()
    usual = (*HEADLINE, *of_flows) if evaluation["user_agents"] else (*of_flows, *OF_LINK)
    return (*usual, *(name for name in measured.own(results) if not measured.get(name).label))


def compare_results(
    results: Results,
    factor: str = "congestion",
    metrics: Sequence[str] | None = None,
    baseline: str | None = None,
    *,
    margin: float = MARGIN,
    by_page: bool = True,
    suspect: bool = False,
) -> list[Comparison]:
    """:func:`compare` over the valid runs of a results folder, with ``suspect`` over suspect ones too.

    The default baseline is the first level in the evaluation file. ``metrics`` are names,
    ``["all"]`` for all numeric metrics, None for :func:`headline`.
    """
    measured.own(results)
    if metrics and "all" in metrics:
        metrics = [name for name, metric in measured.registry().items() if not metric.label]
    if baseline is None and factor in measured.AXES:
        baseline = measured.levels(results, factor)[0]
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    frame = measured.table(results, verdicts)
    if frame.is_empty():
        counted = results.runs("done").group_by("verdict").len().sort("verdict").iter_rows()
        found = ", ".join(f"{n} {verdict}" for verdict, n in counted) or "no run"
        found += "".join(f"; {page} cannot count ({why})" for page, why in results.cannot_count().items())
        accepted = "valid or suspect runs" if suspect else "valid runs (--suspect counts suspect ones too)"
        raise UsageError(str(results.folder), found, accepted)
    return compare(
        losses.with_timeouts(results, frame),
        factor,
        metrics or headline(results),
        baseline,
        margin=margin,
        by_page=by_page,
        visits=losses.visits(results, verdicts),
    )


def command(
    results_dir: Path,
    factor: str = "congestion",
    json: bool = False,
    *,
    metric: Sequence[str] | None = None,
    baseline: str | None = None,
    margin: float = MARGIN,
    by_page: bool = False,
    suspect: bool = False,
) -> None:
    """``wirepaint compare``: prints a table, or with ``json`` one JSON document, to stdout."""
    from wirepaint.statistics import terminal

    results = Results.open(results_dir)
    rows = compare_results(
        results, factor, metric, baseline, margin=margin, by_page=by_page or json, suspect=suspect
    )
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    lost = losses.by_level(losses.visits(results, verdicts), factor, measured.levels(results, factor))
    compared = {row.metric for row in rows}
    without = [
        name
        for name in (name.replace("_", "-") for name in metric or headline(results))
        if name not in compared | {"all"}
    ]
    if json:
        document = {
            "title": results.title,
            "factor": factor,
            "comparisons": [row.as_dict() for row in rows],
            "losses": [level.as_dict() for level in lost],
            "without_values": without,
            "cannot_count": results.cannot_count(),
            "fidelity": results.fidelity(),
        }
        print(to_json(document, indent=1, ensure_ascii=False))
    else:
        terminal.show(rows, without, results.cannot_count(), results.fidelity(), lost)
