"""How many visits an evaluation needs, and when it may end: known before the first visit.

The tests compare ranks (docs/guide/statistics.md), so the number of visits alone says how small a p can
become. With several comparisons each needs a smaller one (Holm): with too few visits no data could decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from wirepaint.reading import Table

SIGNIFICANCE = 0.05
ENOUGH = 8
"""Visits of a page in a scenario, unless the evaluation says otherwise or needs more."""
MOST = 64
"""Visits of a page in a scenario until all is decided, unless the evaluation says otherwise."""
_NOT_COMPARED = ("page", "user_agent", "backend")


class Until(Table):
    """Goes on visiting until each primary comparison is decided, or ``most`` visits are made.

    The comparisons are judged after the user agent's ``visits``, after twice as many, and so on, last after
    ``most``. These numbers are fixed before the first visit, and each look has an equal part of the 5 % of
    error: all looks together are wrong no more often than one would be.
    """

    verdict: Literal["decided"] = "decided"
    most: int = Field(MOST, ge=3, le=10_000)

    def looks(self, first: int) -> tuple[int, ...]:
        """Numbers of visits after which the comparisons are judged."""
        found = [min(first, self.most)]
        while found[-1] < self.most:
            found.append(min(2 * found[-1], self.most))
        return tuple(found)


def smallest_p(pages: int, visits: int) -> float:
    """Smallest p of a rank test over ``pages`` pages with ``visits`` visits of each at each level."""
    if visits == 1 and pages > 1:
        return min(1.0, 2 / 2**pages)
    return min(1.0, 2 / math.comb(2 * visits, visits) ** pages)


def fewest_visits(level: float, pages: int = 1) -> int:
    """Fewest visits of each page at each level at which p can be at most ``level``."""
    visits = 1
    while smallest_p(pages, visits) > level:
        visits += 1
    return visits


@dataclass(frozen=True)
class Question:
    """What one factor asks: ``comparisons`` over all ``pages`` of each primary metric, at once."""

    factor: str
    comparisons: int
    pages: int

    @property
    def of_pages(self) -> int:
        """Comparisons of single pages."""
        return self.comparisons * self.pages


def questions(levels: Mapping[str, int], pages: int, primary: int = 1) -> list[Question]:
    """The questions of an evaluation, from the number of levels of each axis.

    Networks are conditions; they are a question only where nothing else differs.
    """
    found = []
    factors = [axis for axis, several in levels.items() if several > 1 and axis not in _NOT_COMPARED]
    for factor in factors:
        if factor != "network" or len(factors) == 1:
            several = levels[factor]
            conditions = math.prod(n for axis, n in levels.items() if axis != factor)
            rows = conditions + (conditions > 1)  # the last over all conditions
            found.append(Question(factor, (several - 1) * rows * primary, max(1, pages)))
    return found


def enough(asked: Sequence[Question], looks: int = 1) -> int:
    """Default number of visits: with it each single page can be decided."""
    hardest = max((question.of_pages for question in asked), default=1)
    return max(ENOUGH, fewest_visits(SIGNIFICANCE / looks / hardest))


def prospects(asked: Sequence[Question], visits: int, looks: Sequence[int] = ()) -> list[str]:
    """What this number of visits can decide, a sentence for each question and one on the looks."""
    said = []
    level = SIGNIFICANCE / max(1, len(looks))
    for question in asked:
        needed = level / question.comparisons
        possible = smallest_p(question.pages, visits)
        relation = "can decide" if possible <= needed else "cannot decide, whatever they show,"
        comparisons = _count(question.comparisons, "comparison")
        text = f"{_count(visits, 'visit')} of each page {relation} {comparisons} of {question.factor}"
        text += f": smallest possible p {possible:.2g}, needed {needed:.2g}"
        if possible > needed:
            text += f"; {fewest_visits(needed, question.pages)} visits or more can"
        elif question.pages > 1 and smallest_p(1, visits) > level / question.of_pages:
            text += f"; single pages need {fewest_visits(level / question.of_pages)} visits"
        said.append(text + ".")
    if len(looks) > 1 and asked:
        numbers = ", ".join(map(str, looks))
        said.append(f"Judged after {numbers} visits, and ended as soon as all is decided.")
    return said


def _count(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of}s"
