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
    """A piece of a sentence: plain text, a level of the factor, another name, emphasised text, or numbers."""

    kind: Literal["text", "level", "name", "strong", "evidence"]
    text: str


@dataclass(frozen=True)
class Clause:
    """One verdict on one or several conditions, with its numbers."""

    verdict: str
    amount: str
    places: tuple[str, ...]
    evidence: str

    @property
    def short(self) -> str:
        return self.amount + "".join(part.text for part in _where(self.places))


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
    where = places([row])
    if row.verdict == "same":
        return Clause(row.verdict, "no different", where, _within(row.margin))
    if row.shift_rel is None:
        amount = row.verdict if row.is_decided else "not told apart"
        return Clause(row.verdict, amount, where, evidence(row.shift, row.unit))
    if not row.is_decided:
        return Clause(row.verdict, "not told apart", where, evidence(row.shift_rel, "share"))
    # The amount is relative, and so is the interval, from which the verdict follows.
    said = f"{words.change(row.shift, row.unit)}; {_interval(row.shift_rel, 'share')}"
    return Clause(row.verdict, f"{percent(row.shift_rel)} {row.verdict}", where, said)


def together(rows: Sequence[Comparison]) -> Clause:
    """Several conditions with the same verdict."""
    verdict, where = rows[0].verdict, places(rows)
    if verdict == "same":
        return Clause(verdict, "no different", where, _within(rows[0].margin))
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
    same: str = "no differently"


LOADS = Deed("loads these pages", "loads these pages faster", "page load times")
SERVES = Deed("serves these flows", "serves these flows better", "goodputs")
SHOWS_LOADS = Deed("shows these pages", "shows these pages faster", "page load times")
SHOWS_SERVES = Deed("shows these flows", "shows these flows better", "goodputs")
"""Of a back end, which changes nothing: it shows what happens."""


def with_metric(title: str) -> Deed:
    """Of a metric of visits that is not the page load time."""
    title = words.lower_first(title)
    does = f"loads these pages with a {title}"
    return Deed(does, f"loads these pages with another {title}", f"values of {title}", "no different")


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
        parts.append(Part("strong", deed.same if one.verdict == "same" else one.amount))
        if one is decided[0]:
            parts += [Part("text", " than "), Part("level", baseline)]
        parts += _known(one)
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
            parts += _known(one)
    return [*parts, Part("text", ".")]


def plain(level: str, times: Mapping[str, Interval]) -> list[Part]:
    """A sentence on the load times of a single series by condition, in ms."""
    parts = [Part("level", level), Part("text", " loads these pages in ")]
    for number, (condition, time) in enumerate(times.items()):
        parts += [Part("text", ", ")] if number else []
        parts += [Part("strong", words.quantity(time.value, "ms")), *_where([condition])]
        if time.low is not None and time.high is not None:
            bounds = [words.quantity(bound, "ms") for bound in (time.low, time.high)]
            said = f"95{words.THIN}% interval {words.ELLIPSIS.join(bounds)}"
            parts.append(Part("evidence", f" ({said.replace(' ', words.NO_BREAK)})"))
    return [*parts, Part("text", ".")]


def _known(one: Clause) -> Iterator[Part]:
    """Where the clause holds, and its numbers."""
    yield from _where(one.places)
    if one.evidence:
        yield Part("evidence", f" ({one.evidence})")


def _where(names: Sequence[str]) -> Iterator[Part]:
    """ " on A, B and C", each a name."""
    before = " on "
    for number, name in enumerate(names):
        yield Part("text", before)
        yield Part("name", name)
        before = " and " if number == len(names) - 2 else ", "


def evidence(shift: Interval, unit: str) -> str:
    """The difference and its interval, each with its unit; a line may end between the two."""
    return f"{words.change(shift, unit)}, {_interval(shift, unit)}"


def _interval(shift: Interval, unit: str) -> str:
    span = words.span(shift, unit, unit_too=True)
    return f"{span} for an interval" if shift.low is None else f"interval{words.NO_BREAK}{span}"


def _within(margin: float) -> str:
    return f"interval within ±{100 * margin:g}{words.THIN}%".replace(" ", words.NO_BREAK)


def percent(shift: Interval) -> str:
    """The size of a relative difference: whole percent, or with a decimal below 3 %."""
    share = abs(100 * shift.value)
    return f"{share:.0f}{words.THIN}%" if share >= 2.95 else f"{share:.1f}{words.THIN}%"


def places(rows: Sequence[Comparison]) -> tuple[str, ...]:
    """The conditions of the rows; of many some, and how many more."""
    named = [row.stratum for row in rows if row.conditions]
    if len(named) > MOST_NAMED:
        named = [*named[:NAMED_OF_MORE], f"{len(named) - NAMED_OF_MORE} more"]
    return tuple(named)
