"""The answer in words: the verdicts on one metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wirepaint.report import words
from wirepaint.statistics import Comparison, Interval
from wirepaint.statistics.comparison import MIXED, TOO_FEW

MOST_CLAUSES = 4
"""With more conditions, those with the same verdict share a clause."""
MOST_NAMED, NAMED_OF_MORE = 8, 3
"""Conditions of a clause that are all named, and those that are of more."""


@dataclass(frozen=True)
class Part:
    """A piece of a sentence: plain text, a level of the factor, emphasised text, or numbers."""

    kind: Literal["text", "level", "strong", "evidence"]
    text: str


@dataclass(frozen=True)
class Clause:
    """One verdict on one or several conditions, with its numbers."""

    verdict: str
    amount: str
    place: str
    evidence: str

    @property
    def short(self) -> str:
        return f"{self.amount}{self.place}"


def clauses(comparisons: Sequence[Comparison]) -> list[Clause]:
    """One clause per condition, differences first, one for all that are the same; of many one per verdict.

    ``comparisons`` are all rows of one metric and candidate.
    """
    over_pages = [row for row in comparisons if row.page is None]
    rows = [row for row in over_pages if row.conditions] or over_pages
    if len(rows) <= MOST_CLAUSES:
        same = [row for row in rows if row.verdict == "same"]
        made = [clause(row) for row in rows if row.verdict != "same"]
        made += [together(same)] if len(same) > 1 else [clause(row) for row in same]
    else:
        verdicts = dict.fromkeys(row.verdict for row in rows)
        made = [together([row for row in rows if row.verdict == verdict]) for verdict in verdicts]
    order = {"same": 1, MIXED: 2, TOO_FEW: 3}
    return sorted(made, key=lambda one: order.get(one.verdict, 0))


def clause(row: Comparison) -> Clause:
    where = place([row])
    if row.verdict == "same":
        return Clause(row.verdict, "no different", where, f"interval within ±{100 * row.margin:g} %")
    relative = evidence(row.shift_rel, "share") if row.shift_rel else evidence(row.shift, row.unit)
    if not row.is_decided:
        return Clause(row.verdict, "not told apart", where, relative)
    amount = f"{percent(row.shift_rel)} {row.verdict}" if row.shift_rel else row.verdict
    return Clause(row.verdict, amount, where, evidence(row.shift, row.unit))


def together(rows: Sequence[Comparison]) -> Clause:
    """Several conditions with the same verdict."""
    verdict, where = rows[0].verdict, place(rows)
    if verdict == "same":
        return Clause(verdict, "no different", where, f"interval within ±{100 * rows[0].margin:g} %")
    if verdict in (MIXED, TOO_FEW):
        return Clause(verdict, "not told apart", where, "")
    known = sorted((row.shift_rel for row in rows if row.shift_rel), key=lambda shift: abs(shift.value))
    # Equal texts only once.
    ends = dict.fromkeys(percent(shift) for shift in known[:1] + known[-1:])
    return Clause(verdict, f"{' to '.join(ends)} {verdict}".lstrip(), where, "")


@dataclass(frozen=True)
class Deed:
    """What a level does, in the sentences of the answer."""

    does: str
    does_more: str
    numbers: str


LOADS = Deed("loads these pages", "loads these pages faster", "page load times")
SERVES = Deed("serves these flows", "serves these flows better", "goodputs")
SHOWS_LOADS = Deed("shows these pages", "shows these pages faster", "page load times")
SHOWS_SERVES = Deed("shows these flows", "shows these flows better", "goodputs")
"""Of a back end, which changes nothing: it shows what happens."""


def sentence(candidate: str, baseline: str, said: Sequence[Clause], deed: Deed = LOADS) -> list[Part]:
    """The decided clauses as a sentence, then one for mixed conditions, one for too few visits."""
    if not said:
        return [Part("text", f"The {deed.numbers} cannot be compared.")]
    parts: list[Part] = []
    decided = [one for one in said if one.verdict not in (MIXED, TOO_FEW)]
    for one in decided:
        parts += (
            [Part("text", ", and ")] if parts else [Part("level", candidate), Part("text", f" {deed.does} ")]
        )
        parts.append(Part("strong", "no differently" if one.verdict == "same" else one.amount))
        if one is decided[0]:
            parts += [Part("text", " than "), Part("level", baseline)]
        parts += _where(one)
    for verdict, who, what in ((MIXED, "The pages ", "disagree"), (TOO_FEW, "The visits ", "do not tell")):
        for number, one in enumerate(one for one in said if one.verdict == verdict):
            if number:
                parts.append(Part("text", " and"))
            else:
                about_both = not parts
                parts += [Part("text", f". {who}" if parts else who), Part("strong", what)]
                if about_both:
                    parts += [Part("text", " whether "), Part("level", candidate)]
                    parts += [Part("text", f" {deed.does_more} than "), Part("level", baseline)]
            parts += _where(one)
    return [*parts, Part("text", ".")]


def plain(level: str, times: Mapping[str, Interval]) -> list[Part]:
    """A sentence on the load times of a single series by condition, in ms."""
    parts = [Part("level", level), Part("text", " loads these pages in ")]
    for number, (condition, time) in enumerate(times.items()):
        parts += [Part("text", ", ")] if number else []
        parts += [Part("strong", words.quantity(time.value, "ms")), Part("text", f" on {condition}")]
        if time.low is not None and time.high is not None:
            bounds = f"{words.quantity(time.low, 'ms')} … {words.quantity(time.high, 'ms')}"
            parts.append(Part("evidence", f" (95 % interval {bounds})"))
    return [*parts, Part("text", ".")]


def _where(one: Clause) -> Iterator[Part]:
    yield Part("text", one.place)
    if one.evidence:
        yield Part("evidence", f" ({one.evidence})")


def evidence(shift: Interval, unit: str) -> str:
    """The difference with its unit, and its interval."""
    if shift.low is None:
        return f"{words.change(shift, unit)}, {words.span(shift, unit)} for an interval"
    return f"{words.change(shift, unit)}, interval {words.span(shift, unit)}"


def percent(shift: Interval) -> str:
    """The size of a relative difference: whole percent, or with a decimal below 3 %."""
    share = abs(100 * shift.value)
    return f"{share:.0f} %" if share >= 2.95 else f"{share:.1f} %"


def place(rows: Sequence[Comparison]) -> str:
    named = [row.stratum for row in rows if row.conditions]
    if len(named) > MOST_NAMED:
        named = [*named[:NAMED_OF_MORE], f"{len(named) - NAMED_OF_MORE} more"]
    return f" on {words.listed(named)}" if named else ""
