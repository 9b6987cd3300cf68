"""Checks claims against the measurements.

Two series are compared seed by seed, in evaluations visit by visit: their difference as a share of the
mean of both at that point (in percentage points if the column is in per cent), with Student's 95 %
interval of its mean. Pairing narrows the interval where both have the same random draws: in all runs that a
study describes itself, and in visits of an evaluation that differ only in congestion control, HTTP version or
proxy. Each network and each user agent has draws of its own. A claim of a kind is reproduced

``more``    if the whole interval of the mean over all points lies beyond the margin, so does that of
            more than half of the points, and none lies beyond the margin on the other side; undecided
            if no point contradicts it and more runs could still show all that, as the intervals that stand
            against it contain the margin. "Many more" has a ``factor``: the difference is then the first
            minus ``factor`` times the second
``same``    if the interval of the mean over all points lies within the margin, and that of no point
            outside it; undecided if it is wider
``about``   if the whole interval of the mean of the first, over all points, lies within the margin around the
            published ``value``; undecided if it contains one of the margin's ends. With ``at_every_point``
            the mean at each point of the sweep has to
``rises``   if the whole interval of the growth from the smallest to the largest x lies beyond the margin,
            and the means never fall by more than the margin; undecided if they do not and the
            interval contains the margin (``falls``: the other way)
``incomparable``  never: the claim says why there is nothing to compare
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import polars as pl

from wirepaint.statistics import Interval, mean
from wirepaint.studies.model import Claim, Derived, Selection, Study, Sweep

OTHERS = {"lowest other": False, "highest other": True}
"""Names in place of ``first`` or ``second``: at each x, that of all other series with the lowest or highest
mean over the seeds. The value says whether it is the highest."""
Sweeps = Mapping[str, pl.DataFrame]
"""Rows of sweeps by name: measured ones, or points with ``seed`` of runs that do not count (``lost``)."""
Word = Literal["reproduced", "not reproduced", "undecided", "not comparable"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim; ``ours`` is our result in words."""

    id: str
    item: str
    says: str
    published: str
    ours: str
    word: Word
    remark: str = ""
    is_counted: bool = True
    """False if it follows from claims that are counted, or another one tests the same fact."""


def judge(study: Study, sweeps: Sweeps, lost: Sweeps | None = None) -> list[Verdict]:
    """A verdict for each claim, then for each statement that follows from claims."""
    verdicts = {claim.id: _claim(claim, study, sweeps, lost or {}) for claim in study.claims}
    return [*verdicts.values(), *(_derived(statement, verdicts) for statement in study.derived)]


def judge_today(study: Study, sweeps: Sweeps, lost: Sweeps | None = None) -> list[Verdict]:
    """A verdict for each of the paper's questions that is asked of today."""
    return [_claim(claim, study, sweeps, lost or {}) for claim in study.today]


def select(selection: Selection, sweeps: Sweeps) -> pl.DataFrame:
    """The rows of a figure or claim; none if no run of its sweep counts."""
    if selection.sweep not in sweeps:
        return pl.DataFrame()
    rows = sweeps[selection.sweep]
    tests = [pl.col(column) == value for column, value in selection.where.items()]
    tests += [pl.col(column).is_between(*bounds) for column, bounds in selection.between.items()]
    return rows.filter(*tests)


def averaged(column: str) -> pl.Expr:
    """The mean of a column over rows that are taken together, such as pages.

    What is saved is a share of the mean load time. So it is not the mean of the shares of each row, which
    counts half of a short page like half of a long one.
    """
    if column == "saved_percent":
        return (100 * (1 - pl.col("load_s").mean() / pl.col("beside_s").mean())).alias(column)
    return pl.col(column).mean()


def _claim(claim: Claim, study: Study, sweeps: Sweeps, lost: Sweeps) -> Verdict:
    if claim.kind == "incomparable":
        word, ours = _not_comparable(claim.why)
    else:
        rows, sweep = select(claim, sweeps), study.sweeps[claim.sweep]
        gone = _needed(claim, sweep, lost[claim.sweep]) if claim.sweep in lost else pl.DataFrame()
        word, ours = _without(gone, claim, sweep, rows) if gone.height else _judged(claim, sweep, rows)
    remark = claim.remark
    if claim.same_as:
        [other] = (one for one in study.claims if one.id == claim.same_as)
        remark = f"{remark} Not counted: {other.item} “{other.says}” tests the same fact.".strip()
    counted = claim.same_as is None
    return Verdict(claim.id, claim.item, claim.says, claim.published, ours, word, remark, counted)


def _not_comparable(why: str) -> tuple[Word, str]:
    return "not comparable", why


def _needed(claim: Claim, sweep: Sweep, points: pl.DataFrame) -> pl.DataFrame:
    """Those of the points that the claim compares."""
    found = select(claim, {claim.sweep: points})
    named = {claim.first, claim.second}
    if sweep.series is None or named & OTHERS.keys():
        return found
    if claim.y == "saved_percent" and sweep.against:
        named.add(sweep.against)
    return found.filter(pl.col(sweep.series).cast(pl.String).is_in(named))


def _without(lost: pl.DataFrame, claim: Claim, sweep: Sweep, rows: pl.DataFrame) -> tuple[Word, str]:
    """The verdict without the visits of the runs ``lost``; every x of the claim must keep one.

    A visit is left out at its x, or at every x where these are compared.
    """
    by = ["seed"] if claim.x is None or claim.kind in ("rises", "falls") else [claim.x, "seed"]
    gone = lost.select(by).unique()
    kept = rows.join(gone, on=by, how="anti") if rows.height else rows
    if kept.is_empty():
        return _not_comparable("no visit counts at all of its points")
    if claim.x:
        asked = _needed(claim, sweep, pl.DataFrame(sweep.points()))[claim.x]
        if lacking := sorted(set(asked) - set(kept[claim.x])):
            at = ", ".join(f"{x:g}" for x in lacking)
            return _not_comparable(f"no visit counts at all of its points with {claim.x} = {at}")
    word, ours = _judged(claim, sweep, kept)
    return word, f"{ours}; visits left out: {gone.height}"


def _judged(claim: Claim, sweep: Sweep, selected: pl.DataFrame) -> tuple[Word, str]:
    rows = _with_others(claim, selected.drop_nulls(claim.y))
    if missing := {claim.first, claim.second} - {""} - set(rows["series"]):
        return _not_comparable(f"nothing was delivered: no value of {', '.join(sorted(missing))}")
    if claim.kind in ("rises", "falls"):
        return _trend(claim, rows)
    if claim.kind == "about":
        return _about_each(claim, sweep, rows) if claim.at_every_point else _about(claim, rows)
    points = _differences(claim, rows)
    if lacking := [f"{x:g}" for x, values in points.items() if None in values]:
        return _not_comparable(f"not every seed has both values at {claim.x} = {', '.join(lacking)}")
    overall = mean(*_differences(claim, rows, claim.factor).values())
    each = {x: mean(values) for x, values in points.items()}
    above = [x for x, interval in each.items() if _above(interval, claim.margin)]
    below = [x for x, interval in each.items() if _below(interval, claim.margin)]
    if claim.kind == "more":
        possible = [x for x, interval in each.items() if not _within(interval, claim.margin)]
        word: Word = "not reproduced"
        if not below and _above(overall, claim.margin) and 2 * len(above) > len(each):
            word = "reproduced"
        elif not below and not _within(overall, claim.margin) and 2 * len(possible) > len(each):
            word = "undecided"
    elif above or below or overall.outside(claim.margin):
        word = "not reproduced"
    else:
        word = "reproduced" if overall.inside(claim.margin) else "undecided"
    return word, _in_words(claim, rows, overall, len(each), above, below)


def _with_others(claim: Claim, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, and those of the series ``lowest other`` or ``highest other`` if the claim names it.

    The series is chosen at each x by its mean over the seeds. If it were chosen for each seed, noise alone
    would make it better than any series is.
    """
    by = [claim.x] if claim.x else []
    found = [rows]
    for name, own in ((claim.first, claim.second), (claim.second, claim.first)):
        if name in OTHERS:
            others = rows.filter(pl.col("series") != own)
            ranked = others.group_by(*by, "series").agg(averaged(claim.y).alias("mean")).sort("series")
            ranked = ranked.sort("mean", descending=OTHERS[name], maintain_order=True)
            best = ranked.unique(by, keep="first", maintain_order=True) if by else ranked.head(1)
            found.append(others.join(best, on=[*by, "series"], how="semi").with_columns(series=pl.lit(name)))
    return pl.concat(found, how="diagonal")


def _differences(claim: Claim, rows: pl.DataFrame, factor: float = 1.0) -> dict[float, list[float]]:
    """First minus ``factor`` times second by point and seed, as shares; for per cent, points / 100."""
    by = [claim.x] if claim.x else []
    wide = (
        rows.group_by(*by, "seed", "series")
        .agg(averaged(claim.y))
        .pivot("series", index=[*by, "seed"], values=claim.y)
        .sort(*by, "seed")
    )
    first, second = pl.col(claim.first), factor * pl.col(claim.second)
    both = (first + second).mean() / 2
    scale = pl.lit(100.0) if _in_points(claim) else (both.over(by) if by else both)
    shares = wide.select(*by, share=(first - second) / scale)
    if not claim.x:
        return {0.0: shares["share"].to_list()}
    return {x: part["share"].to_list() for (x,), part in shares.group_by(claim.x, maintain_order=True)}


def _above(interval: Interval, margin: float) -> bool:
    return interval.low is not None and interval.low > margin


def _below(interval: Interval, margin: float) -> bool:
    return interval.high is not None and interval.high < -margin


def _within(interval: Interval, margin: float) -> bool:
    return interval.high is not None and interval.high <= margin


def _in_words(
    claim: Claim,
    rows: pl.DataFrame,
    overall: Interval,
    points: int,
    above: list[float],
    below: list[float],
) -> str:
    means = dict(rows.group_by("series").agg(averaged(claim.y)).iter_rows())
    text = ", ".join(f"{name}: {_number(means[name])}" for name in (claim.first, claim.second)) + "; "
    text += "difference " if claim.factor == 1 else f"difference from {claim.factor:g} times {claim.second} "
    text += _change(claim, overall)
    for side, where in (("above", above), ("below", below)):
        if where and points > 1:
            at = ", ".join(f"{x:g}" for x in where)
            text += f"; {side} at every point" if len(where) == points else f"; {side} at {claim.x} = {at}"
    return text


def _trend(claim: Claim, rows: pl.DataFrame) -> tuple[Word, str]:
    assert claim.x is not None
    sign = 1 if claim.kind == "rises" else -1
    own = rows.filter(pl.col("series") == claim.first).group_by(claim.x, "seed").agg(averaged(claim.y))
    means = own.group_by(claim.x).agg(pl.col(claim.y).mean()).sort(claim.x)
    ends = own.filter(pl.col(claim.x).is_in([means[claim.x][0], means[claim.x][-1]]))
    wide = ends.pivot(claim.x, index="seed", values=claim.y, sort_columns=True).sort("seed")
    if wide.null_count().sum_horizontal().item():
        return _not_comparable(f"not every seed has a value at both ends of {claim.x}")
    scale = 100.0 if _in_points(claim) else (means[claim.y][0] + means[claim.y][-1]) / 2 or 1.0
    growth = mean([sign * (last - first) / scale for first, last in wide[:, [1, -1]].iter_rows()])
    turns = any(sign * (after - before) / scale < -claim.margin for before, after in pairwise(means[claim.y]))
    word: Word = "not reproduced"
    if not turns and _above(growth, claim.margin):
        word = "reproduced"
    elif not turns and not _within(growth, claim.margin):
        word = "undecided"
    text = f"{claim.first}: from {_number(means[claim.y][0])} to {_number(means[claim.y][-1])}"
    return word, f"{text}; {'growth' if sign > 0 else 'fall'} {_change(claim, growth)}"


def _about(claim: Claim, rows: pl.DataFrame) -> tuple[Word, str]:
    own = rows.filter(pl.col("series") == claim.first)
    parts = own.partition_by(claim.x, maintain_order=True) if claim.x else [own]
    found = mean(*(part.group_by("seed").agg(averaged(claim.y))[claim.y].to_list() for part in parts))
    low, high = _accepted(claim)
    text = f"{claim.first}: {_number(found.value)}"
    if found.low is not None and found.high is not None:
        text += f" [{_number(found.low)}, {_number(found.high)}]"
    return _lies_between(found, low, high), f"{text}; accepted {_number(low)} to {_number(high)}"


def _about_each(claim: Claim, sweep: Sweep, rows: pl.DataFrame) -> tuple[Word, str]:
    over = [key for key in sweep.over if key not in (*claim.where, sweep.series)]
    low, high = _accepted(claim)
    found: list[tuple[float, str]] = []
    words: set[Word] = set()
    for point, part in rows.filter(pl.col("series") == claim.first).group_by(over, maintain_order=True):
        interval = mean(part.group_by("seed").agg(averaged(claim.y))[claim.y].to_list())
        words.add(_lies_between(interval, low, high))
        at = ", ".join(f"{key} = {value}" for key, value in zip(over, point, strict=True))
        found.append((interval.value, at))
    asked = _needed(claim, sweep, pl.DataFrame(sweep.points())).select(over).unique().height
    if len(found) < asked:
        return _not_comparable(f"{asked - len(found)} of its {asked} points have no value")
    order: tuple[Word, ...] = ("not reproduced", "undecided", "reproduced")
    (least, at), (most, _) = min(found), max(found)
    text = f"{claim.first}: from {_number(least)} at {at} to {_number(most)}"
    text += f"; accepted {_number(low)} to {_number(high)}"
    return next(word for word in order if word in words), text


def _accepted(claim: Claim) -> tuple[float, float]:
    """Smallest and largest accepted value."""
    assert claim.value is not None
    margin = claim.margin * (100 if _in_points(claim) else abs(claim.value))
    return claim.value - margin, claim.value + margin


def _lies_between(found: Interval, low: float, high: float) -> Word:
    if found.low is None or found.high is None:
        return "undecided"
    if low <= found.low and found.high <= high:
        return "reproduced"
    return "not reproduced" if found.high < low or high < found.low else "undecided"


def _derived(statement: Derived, verdicts: Mapping[str, Verdict]) -> Verdict:
    behind = [verdicts[claim] for claim in statement.claims]
    failed = [f"{one.item} is {one.word}" for one in behind if one.word != "reproduced"]
    items = ", ".join(dict.fromkeys(one.item for one in behind))
    words = {one.word for one in behind}
    order: tuple[Word, ...] = ("not reproduced", "not comparable", "undecided", "reproduced")
    return Verdict(
        statement.id,
        statement.item,
        statement.says,
        "in words",
        f"follows from {items}" if not failed else "; ".join(failed),
        next(word for word in order if word in words),
        is_counted=False,
    )


def _in_points(claim: Claim) -> bool:
    """Whether differences are percentage points: the column is in per cent."""
    return claim.y.endswith("_percent")


def _change(claim: Claim, interval: Interval) -> str:
    text = f"{_percent(interval.value)}{' points' if _in_points(claim) else ' %'}"
    if interval.low is not None and interval.high is not None:
        text += f" [{_percent(interval.low)}, {_percent(interval.high)}]"
    return text


def _percent(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # + 0.0: no negative zero


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
