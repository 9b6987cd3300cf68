"""The rows of a trace behind one number.

A metric does not say which rows it uses, so it is tried: it is computed again without each column and
without each row of the tables that it reads. It *reads* a column if it fails or gives another result without
it. A row *counts* if the number is another without it. So of two equal largest values neither counts.

In a table of more than ``SINGLY`` rows, blocks are left out, and halved where the number changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import polars as pl

from wirepaint.errors import UsageError
from wirepaint.metrics import _flow
from wirepaint.metrics._metric import EVERY_FLOW, Metric, Missing, Reading, Trace, of_flows, of_visit
from wirepaint.metrics._registry import get
from wirepaint.metrics._table import own
from wirepaint.metrics._visits import visits
from wirepaint.reading import hint
from wirepaint.results import Results

SINGLY, MOST_TRIALS = 1_000, 3_000
"""Rows left out one by one, and computations of the metric for the rows of one table."""

LAST = 3
"""Requests before a moment that are named."""


@dataclass(frozen=True)
class Used:
    """What a metric took from one table of a run."""

    table: str
    rows: int
    """Rows that the metric was given: those of its visit or flows."""
    columns: tuple[str, ...]
    """Columns that it reads."""
    counted: pl.DataFrame
    """The rows that count, whole, with their number in the run's table as ``row``."""
    untried: int
    """Rows that were not looked at: the table is too long."""


@dataclass(frozen=True)
class Explanation:
    """One number of one run, and what it was computed from."""

    metric: Metric
    run: str
    visit: int
    flows: str | None
    reading: Reading
    used: tuple[Used, ...]
    before: pl.DataFrame | None
    """Of a moment of a visit, such as a paint: the requests that ended last before it, with their ends in ms
    since the navigation (``ended_ms``). It may have waited for them. None for any other number."""


def explain(results: Results, name: str, run: str, visit: int = 0, flows: str | None = None) -> Explanation:
    """Says from what a metric of a run was computed; of ``visit``, or of the ``flows`` of one name.

    Of a metric over flows and a run with flows of one name, these are meant. Raises UsageError for an unknown
    metric, run without a result, visit or flows.
    """
    own(results)
    metric = get(name)
    done = results.runs("done")["run_key"].to_list()
    if run not in done:
        accepted = (
            f"the key of a run that is done, such as {done[0]}{hint(run, done)}" if done else "a done run"
        )
        raise UsageError(str(results.folder), f"no run {run} with a result", accepted)
    trace = cache(partial(results.trace, run))
    if metric.over == "flow" or flows is not None:
        flows = _named(flows, _flow.groups(trace), run)
    elif visit not in (numbers := [number for number, *_ in visits(trace)]) and metric.over == "visit":
        raise UsageError(run, f"no visit {visit}", ", ".join(map(str, numbers)) or "a run with a visit")
    given = _given(metric, lambda table: trace(table).with_row_index("row"), visit, flows)
    asked: dict[str, None] = {}

    def noted(table: str) -> pl.DataFrame:
        asked[table] = None
        return given(table).drop("row")

    reading = _read(metric, noted)
    used = tuple(_used(metric, given, table, reading) for table in asked)
    return Explanation(metric, run, visit, flows, reading, used, _ended_before(given, used))


def _ended_before(given: Trace, used: tuple[Used, ...]) -> pl.DataFrame | None:
    if [(one.table, one.columns[:1]) for one in used] != [("page", ("navigation_start",))]:
        return None
    _, *moments = used[0].columns
    if len(moments) != 1 or used[0].counted.is_empty():
        return None
    start, moment = used[0].counted.select("navigation_start", *moments).row(0)
    ended = given("object").filter(pl.col("last_byte").is_between(start, moment))
    last = ended.sort("last_byte", descending=True).head(LAST)
    return last.select("row", "url", "type", ended_ms=(pl.col("last_byte") - start) / 1e6)


def _named(flows: str | None, groups: list[str], run: str) -> str:
    if flows is None and len(groups) == 1:
        return groups[0]
    if flows not in groups:
        raise UsageError(
            run, f"flows {flows}" if flows else "no name of flows", ", ".join(groups) or "a run of flows"
        )
    return flows


def _given(metric: Metric, trace: Trace, visit: int, flows: str | None) -> Trace:
    """The trace that the metric is given (``Metric.read_of``)."""
    if metric.over == "run":
        return trace
    return of_visit(trace, visit) if flows is None else of_flows(trace, flows)


def _read(metric: Metric, trace: Trace) -> Reading:
    try:
        return Reading(metric.function(trace))
    except Missing as missing:
        return Reading(None, str(missing))


def _used(metric: Metric, given: Trace, table: str, reading: Reading) -> Used:
    frame = given(table)
    plain = frame.drop("row")

    def differs(instead: pl.DataFrame) -> bool:
        def changed(name: str) -> pl.DataFrame:
            return instead if name == table else given(name).drop("row")

        try:
            found = _read(metric, changed)
        except Exception:  # a function that lacks what it reads may fail in any way
            return True
        return not _equal(found, reading)

    columns = tuple(column for column in plain.columns if differs(plain.drop(column)))
    trials = iter(range(MOST_TRIALS))
    counted: list[int] = []
    untried = 0
    for begin, end, changes in _halved(plain, differs, trials):
        counted += [begin] if changes else []
        untried += 0 if changes else end - begin
    return Used("flow" if table == EVERY_FLOW else table, plain.height, columns, frame[counted], untried)


def _halved(
    frame: pl.DataFrame, differs: Callable[[pl.DataFrame], bool], trials: Iterator[int]
) -> Iterator[tuple[int, int, bool]]:
    """Single rows that change the number (True), and blocks for which no trial was left (False)."""
    length = math.ceil(frame.height / SINGLY) or 1
    blocks = [(at, min(at + length, frame.height)) for at in range(0, frame.height, length)][::-1]
    while blocks:
        begin, end = blocks.pop()
        if next(trials, None) is None:
            yield begin, end, False
        elif differs(pl.concat([frame[:begin], frame[end:]])):
            if end - begin == 1:
                yield begin, end, True
            else:
                middle = (begin + end) // 2
                blocks += [(middle, end), (begin, middle)]


def _equal(one: Reading, other: Reading) -> bool:
    if isinstance(one.value, int | float) and isinstance(other.value, int | float):
        # Sums of other orders differ in the last digits.
        return math.isclose(one.value, other.value, rel_tol=1e-9)
    return one == other
