"""Many comparisons in a few lines: for each candidate level one line over all conditions.

A line counts the conditions of each verdict. It names those of the rarer verdicts, and all that go against a
verdict, so that what is decided is at least counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from wirepaint.evaluation.axes import axes
from wirepaint.statistics.comparison import MIXED, TOO_FEW, Comparison, about, difference, said, shown_shift
from wirepaint.statistics.wording import count

MOST_LINES = 4
"""Candidates of one factor, back end and metric that have a line of their own."""
MOST_NAMES = 3
"""Conditions that are named for one verdict."""
ORDER = (
    "faster",
    "slower",
    "better",
    "worse",
    "shorter",
    "longer",
    "lower",
    "higher",
    "same",
    MIXED,
    TOO_FEW,
)
_WORDS = {"same": "the same", TOO_FEW: "not told apart"}


def lines(rows: Sequence[Comparison], backend: str, every: str) -> Iterator[str]:
    """Lines for the comparisons of one factor; ``every`` is the command that shows each of them.

    ``backend`` is the back end of rows that do not name theirs.
    """
    of_metric: dict[tuple[str, str], dict[str, list[Comparison]]] = {}
    for row in rows:
        key = row.conditions.get("backend", backend), row.metric
        of_metric.setdefault(key, {}).setdefault(row.candidate.level, []).append(row)
    for (name, _), candidates in of_metric.items():
        groups = list(candidates.values())
        for group in groups[:MOST_LINES]:
            yield f"{name}: {_line(group)}."
        if rest := groups[MOST_LINES:]:
            found = "; ".join(f"{_level(group[0])} {_overall(group)}" for group in rest)
            yield f"{name}: and {len(rest)} more of {axes()[rows[0].factor].title}: {found}."
    told = sum(min(len(candidates), MOST_LINES) for candidates in of_metric.values())
    if len(rows) > told:
        which = f"each of these {len(rows)} comparisons" if len(rows) > 1 else "all of it"
        yield f"  {which}: {every}"


def _line(group: Sequence[Comparison]) -> str:
    """The comparisons of one candidate level."""
    if len(group) == 1:
        return group[0].sentence.removesuffix(".")
    first = group[0]
    scope = count(max(len(row.pages) for row in group), "page")
    head = f"{first.title}, {scope}: {_level(first)} against {said(first.factor, first.baseline.level)}"
    parts = [_verdicts(group)]
    if whole := _whole(group):
        parts.append(f"all conditions together {_word(whole.verdict)}, {difference(whole)}")
    against = [
        f"{_where(row)} / {name}"
        for row in group
        for name in row.dissent
        if row.verdict != MIXED and row.conditions
    ]
    if against:
        parts.append(f"against it: {_some(against)}")
    if needed := [row for row in group if row.visits_needed is not None]:
        how = "at least" if any(about(row.interval) == "at least" for row in needed) else "about"
        most = max(row.visits_needed or 0 for row in needed)
        parts.append(f"{how} {most} visits of each page tell all apart")
    late = sum(side.timed_out for row in _parts(group) for side in (row.baseline, row.candidate))
    if late:
        parts.append(f"{count(late, 'visit')} timed out, taken as longer than the limit")
    if alone := sum(row.unpaired for row in _parts(group)):
        parts.append(f"{alone} left out, alone on their host")
    return f"{head}: {'; '.join(parts)}"


def _verdicts(group: Sequence[Comparison]) -> str:
    """How many conditions have each verdict: "slower in 5 of 6 (+6.1 % to +9.0 %), mixed in 1 (lte)"."""
    rows = sorted(_parts(group), key=lambda row: ORDER.index(row.verdict))
    kinds = [(verdict, list(some)) for verdict, some in groupby(rows, key=lambda row: row.verdict)]
    found = []
    for verdict, some in kinds:
        share = f"{len(some)} of {len(rows)}" if not found else str(len(some))
        told = []
        if len(some) < max(len(each) for _, each in kinds) or len(rows) <= MOST_NAMES:
            told.append(_some([_where(row) for row in some]))
        if verdict == MIXED:
            told.append(_some(_apart(some)))
        elif verdict != TOO_FEW:
            told.append(_range(some[0], [row.interval.value for row in some]))
        found.append(f"{_word(verdict)} in {share}" + (f" ({': '.join(told)})" if told else ""))
    return ", ".join(found)


def _apart(rows: Sequence[Comparison]) -> list[str]:
    """The pages that disagree, each with its smallest and largest difference."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name in row.dissent:
            found.setdefault(name, []).append(row.by_stratum[name].value)
    return [f"{name} {_range(rows[0], values)}" for name, values in found.items()]


def _range(row: Comparison, values: Sequence[float]) -> str:
    """The nearest and the farthest of the shifts of rows like this one."""
    ends = (shown_shift(row, value) for value in (min(values, key=abs), max(values, key=abs)))
    return " to ".join(dict.fromkeys(ends))


def _parts(group: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons under one set of conditions each."""
    return [row for row in group if row.conditions] or list(group)


def _whole(group: Sequence[Comparison]) -> Comparison | None:
    """The comparison over all conditions."""
    return next((row for row in group if not row.conditions), None)


def _overall(group: Sequence[Comparison]) -> str:
    """Each verdict of a candidate that has no line of its own."""
    whole = _whole(group)
    return f"{_word(whole.verdict)} ({_verdicts(group)})" if whole and len(group) > 1 else _verdicts(group)


def _where(row: Comparison) -> str:
    """The conditions of a comparison without its back end, with which the line begins."""
    return " / ".join(said(*one) for one in row.conditions.items() if one[0] != "backend") or "all"


def _level(row: Comparison) -> str:
    return said(row.factor, row.candidate.level)


def _word(verdict: str) -> str:
    return _WORDS.get(verdict, verdict)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
