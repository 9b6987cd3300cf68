"""The declaration of a metric."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import polars as pl

Frame: TypeAlias = pl.DataFrame
Trace: TypeAlias = Callable[[str], pl.DataFrame]
"""A run's tables by name, times in ns since the run's epoch; a table that the run lacks is empty."""

Better: TypeAlias = Literal["lower", "higher"]
Over: TypeAlias = Literal["visit", "run", "flow"]

OF_VISITS = ("page", "object", "chunk", "connection", "frame", "cpu")
"""Tables whose rows say by their column ``visit`` which visit of the run they belong to (null: the first)."""


def of_visit(trace: Trace, visit: int) -> Trace:
    """The trace of one visit: its rows of :data:`OF_VISITS`, and all other tables as they are."""
    if visit == 0 and trace("page").height == 1 and trace("page")["visit"][0] in (0, None):
        return trace

    def table(name: str) -> pl.DataFrame:
        if name not in OF_VISITS:
            return trace(name)
        found = _by_visit(trace, name).get(visit)
        return trace(name).clear() if found is None else found

    return table


_split: WeakKeyDictionary[Trace, dict[str, dict[int, Frame]]] = WeakKeyDictionary()
"""The tables of runs, by name and visit."""


def _by_visit(trace: Trace, name: str) -> dict[int, Frame]:
    """A table by visit, split once for all visits of the run."""
    tables = _split.setdefault(trace, {})
    if name not in tables:
        numbered = trace(name).with_columns(pl.col("visit").fill_null(0).alias("number"))
        parts = numbered.partition_by("number", maintain_order=True, include_key=False, as_dict=True)
        tables[name] = {visit: part for (visit,), part in parts.items()}
    return tables[name]


def rows(frame: Frame, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The rows of some columns as Python values. A table of one run is small: an expression of Polars costs
    200 µs of CPU whatever its size, a column of 100 rows as a list 5 µs."""
    return zip(*(frame.get_column(column).to_list() for column in columns), strict=True)


def group_of(column: str) -> pl.Expr:
    """Names of a column without the number that equal flows or users have: those of their tables."""
    return pl.col(column).str.split(".").list.first()


EVERY_FLOW = "every flow"
"""In the trace of a flow: the table ``flow`` of the whole run."""


def of_flows(trace: Trace, group: str) -> Trace:
    """The trace of the flows of one name: no visit; of ``flow`` and ``message`` their rows."""

    def table(name: str) -> pl.DataFrame:
        if name == EVERY_FLOW:
            return trace("flow")
        frame = trace(name)
        if name in ("flow", "message"):
            return frame.filter(group_of("flow") == group)
        return frame.clear() if name in OF_VISITS else frame

    return table


class Missing(Exception):
    """The trace does not determine the metric; the message says what it lacks."""


Read = TypeVar("Read")
Items = TypeVar("Items", bound=Callable[[Trace], Sequence[tuple[Any, ...]]])


def shared(reading: Callable[[Trace], Read]) -> Callable[[Trace], Read]:
    """Decorator: a reading that several metrics need is made once for each trace."""
    known: WeakKeyDictionary[Trace, Read | Missing] = WeakKeyDictionary()

    @wraps(reading)
    def read(trace: Trace) -> Read:
        found = known.get(trace)
        if found is None:
            try:
                found = reading(trace)
            except Missing as missing:
                found = Missing(*missing.args)
            known[trace] = found
        if isinstance(found, Missing):
            # A new one each time: the traceback of one that is kept would keep the trace.
            raise Missing(*found.args)
        return found

    return read


@dataclass(frozen=True)
class Reading:
    """One metric of one run: a value, or the reason why there is none."""

    value: float | str | None
    reason: str | None = None


@dataclass(eq=False)
class Metric:
    """One metric; made by :func:`metric`.

    A metric over a visit is given the trace of one visit (:func:`of_visit`), one over flows that of
    equal flows (:func:`of_flows`), one over a run the run's, which may hold several. ``function`` raises
    :class:`Missing` if the trace does not determine the value.
    ``by_item`` gives the distribution inside one visit: a row for each item, with the columns ``of_item``.
    The last of them is ``value``; the others split it.
    """

    name: str
    title: str
    unit: str
    better: Better | None
    source: str
    needs: tuple[str, ...]
    summary: str
    label: bool
    over: Over
    function: Callable[[Trace], float | str]
    by_item: Callable[[Trace], Sequence[tuple[Any, ...]]] | None = None
    of_item: Mapping[str, Any] = field(default_factory=dict)
    """Names and types of Polars of an item's columns."""
    file: str | None = None
    """Name of the user's file that declares it; None for a metric of wirepaint."""
    sha256: str | None = None
    """Of that file's text; where it is not trusted, with a word that says so: its nulls are no values."""

    @cached_property
    def column(self) -> str:
        """Name of the metric's column in a table."""
        return self.name.replace("-", "_")

    def read(self, trace: Trace, visit: int = 0, flows: str | None = None) -> Reading:
        """The metric of a run, of one of its visits, or of its flows of one name.

        The trace of flows has no visit. So of the metrics over a visit it has those of the link.
        """
        return self.read_of(trace, of_visit(trace, visit) if flows is None else of_flows(trace, flows), flows)

    def read_of(self, trace: Trace, of_one: Trace, flows: str | None) -> Reading:
        """The same, from the trace of the run and that of the visit or flows."""
        if flows is None and self.over == "flow":
            return Reading(None, "a metric of flows")
        try:
            return Reading(self.function(trace if self.over == "run" else of_one))
        except Missing as missing:
            return Reading(None, str(missing))

    def distribution(self, **columns: Any) -> Callable[[Items], Items]:
        """Decorator: the function gives the values inside one visit that the metric summarises, as rows of
        these columns."""

        def declare(function: Items) -> Items:
            self.by_item, self.of_item = function, columns
            return function

        return declare


def metric(
    *,
    title: str,
    unit: str,
    needs: tuple[str, ...],
    source: str = "",
    better: Better | None = None,
    label: bool = False,
    over: Over = "visit",
) -> Callable[[Callable[[Trace], float | str]], Metric]:
    """Declares the decorated function as the metric of its file.

    ``unit`` is "1" for a bare number and "" for a label; ``better`` is the direction that users
    prefer, None if there is none; ``source`` is the paper and section, or the standard,
    that defines the metric, and may be left out in a file of one's own; ``needs`` are the tables it
    reads; ``over`` is what it is a number of: one visit, a run with all that is in it, or equal flows.
    The function has the name of the file; its docstring is the summary.
    """

    def declare(function: Callable[[Trace], float | str]) -> Metric:
        summary = " ".join((inspect.getdoc(function) or "").split())
        name = function.__name__.replace("_", "-")
        return Metric(name, title, unit, better, source, needs, summary, label, over, function)

    return declare
