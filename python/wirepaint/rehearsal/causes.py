"""Finds the causes of a request: a set of resources whose latest end plus a constant gives its start.

Each rehearsal delays each answer by another time (timing perturbation: Wang et al., "How speedy is
SPDY?", NSDI 2014; Li et al., WebProphet, NSDI 2010). A request follows those resources whose ends
move with it. The search begins with plausible sets: the script that DevTools names, the resources that
block the parser up to some place of the document, DOMContentLoaded, the load event. Then it adds
resources that explain most of the remaining spread.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeVar

from wirepaint.pages.model import After
from wirepaint.rehearsal.takes import Request, Take

T = TypeVar("T")

MOST_ADDED = 4
"""Largest number of resources added to a set that the page suggests."""
_GAIN = 0.6
_GAIN_MS = 4.0
"""A resource joins a set if it reduces the spread to this share and by this time. These constants and those
below are chosen by outcome: on the shipped pages and those of docs/decisions/0010."""
EARLY_MS = 1.5
"""A cause may end this long after its effect began: the clocks of NetLog and DevTools have a resolution
of 1 ms."""
_ANY_SPREAD_MS = 8.0
_ANY_GAIN = 0.4
_MOST_ANY = 80
"""If the spread of the best set is larger, "the first of two or three scripts" is tried too. It must reduce
the spread to this share; at most N scripts are tried."""
_TOGETHER_MS, _SAME_MS = 5.0, 1.0
"""Requests that a script makes within this time are made together; a rule with all of them may fit so much
worse. Chosen with the judged page slides-plugins in view (docs/decisions/0010)."""


@dataclass(frozen=True)
class Fitted:
    """The request begins ``after_ms`` after the latest or the first of ``by``, or an event of the page."""

    by: tuple[int, ...]
    after: After
    after_ms: float
    spread: float
    """Mean deviation of the rehearsals from this rule, in ms."""


class Causes:
    """Fits over the takes of a page; ``blocking``: resources that block the parser, in document order.

    ``handlers`` has the time in ms of the page's handlers of each event: events count from their end.
    """

    def __init__(self, takes: Sequence[Take], blocking: Sequence[int], handlers: Mapping[str, float]) -> None:
        self._takes, self._blocking = takes, blocking
        self._handlers = handlers

    def fit(self, number: int) -> Fitted | None:
        """The best explanation of resource ``number``; None if fewer than two takes asked for it."""
        takes = [take for take in self._takes if number in take.first]
        if number == 0:
            return None
        starts = [take.first[number].start for take in takes]
        return self._explain(takes, starts, self._initiator(number), number)

    def held_out(self, number: int) -> float:
        """Mean error in ms of a take's start of resource ``number`` by the rule that the other takes give.

        Infinite if they give none.
        """
        takes = [take for take in self._takes if number in take.first]
        missed: list[float] = []
        for left in takes:
            others = [take for take in takes if take is not left]
            found = Causes(others, self._blocking, self._handlers).fit(number)
            start = None if found is None else _start(found, left)
            missed.append(math.inf if start is None else abs(left.first[number].start - start))
        return statistics.fmean(missed) if missed else math.inf

    def fit_times(self, times: Sequence[float | None]) -> Fitted | None:
        """The resources that best explain the time of a paint, given its time in each take.

        Events are not tried: a paint that coincided with one in rehearsals need not wait for it elsewhere.
        """
        known = [(take, time) for take, time in zip(self._takes, times, strict=True) if time is not None]
        return self._explain([take for take, _ in known], [time for _, time in known], None, None)

    def _explain(
        self, takes: Sequence[Take], starts: Sequence[float], initiator: int | None, number: int | None
    ) -> Fitted | None:
        if len(takes) < 2:
            return None
        ends = self._ends(number, takes, starts)
        best: Fitted | None = None
        for by in self._suggested(initiator, ends):
            found = _of(by, starts, ends)
            if best is None or found.spread < best.spread - 0.5:
                best = found
        if best is not None:
            best = _grown(best, starts, ends)
            base = best.by[0]
            for batch in self._batches:
                if base not in batch and all(one in ends for one in batch):
                    whole = _of((base, *batch), starts, ends)
                    best = whole if whole.spread < best.spread - 0.5 else best
        for after in ("content_loaded", "load") if number is not None else ():
            event = self._of_event(after, starts, takes)
            if event and (best is None or event.spread < _GAIN * best.spread - 1):
                by = (best.by if best else ())[:1] or (0,)
                best = Fitted(by, after, event.after_ms, event.spread)
        if best is not None and best.spread > _ANY_SPREAD_MS and number is not None:
            first = _first_of(number, starts, takes)
            if first and first.spread < _ANY_GAIN * best.spread:
                best = first
        if best is not None and best.after == "resources":
            best = self._with_siblings(best, takes, starts, ends)
        return best

    def _with_siblings(
        self, found: Fitted, takes: Sequence[Take], starts: Sequence[float], ends: dict[int, list[float]]
    ) -> Fitted:
        """The rule with all scripts that one script asked for together with one of its causes, if it fits.

        A loader waits for all of them. In a few rehearsals one of them may never be the latest; on a slow
        path it is, if it is large.
        """
        others = [other for other in ends if other not in found.by]
        added = [o for o in others if any(_asked_together(by, o, takes) for by in found.by)]
        if not added:
            return found
        by = (*found.by, *added)
        latest = [max(ends[other][take] for other in by) for take in range(len(starts))]
        after_ms, spread = _constant(starts, latest)
        return Fitted(by, "resources", after_ms, spread) if spread <= found.spread + _SAME_MS else found

    def _of_event(self, after: After, starts: Sequence[float], takes: Sequence[Take]) -> Fitted | None:
        times = [take.load if after == "load" else take.content_loaded for take in takes]
        known = [time for time in times if time is not None]
        # Handlers send requests before they end; with other work they take longer.
        early = EARLY_MS + 2 * self._handlers.get(after, 0.0)
        if len(known) < len(times) or any(s < t - early for s, t in zip(starts, known, strict=True)):
            return None
        constant, spread = _constant(starts, known)
        return Fitted((), after, constant, spread)

    def _ends(
        self, number: int | None, takes: Sequence[Take], starts: Sequence[float]
    ) -> dict[int, list[float]]:
        """Ends, by take, of the resources that ended before the request in all takes."""
        found: dict[int, list[float]] = {}
        for other in takes[0].first:
            ends = [take.first[other].end if other in take.first else None for take in takes]
            known = [end for end in ends if end is not None]
            before = len(known) == len(takes) and all(
                end <= start + EARLY_MS for end, start in zip(known, starts, strict=True)
            )
            if before and other != number:
                found[other] = known
        return found

    def _suggested(self, initiator: int | None, ends: dict[int, list[float]]) -> Iterator[tuple[int, ...]]:
        base = (initiator,) if initiator in ends else (0,) if 0 in ends else ()
        if base:
            yield base
        passed = [item for item in self._blocking if item in ends and item not in base]
        for length in range(1, len(passed) + 1):
            yield (*base, *passed[:length])
        if not base:
            yield from ((other,) for other in ends)

    @cached_property
    def _batches(self) -> list[list[int]]:
        """Scripts that one script asked for together: a loader goes on when all of them have come.

        Where each is the latest in some takes, no single one of them explains enough to be added.
        """
        first = self._takes[0].first
        left = [number for number, request in first.items() if request.type == "js"]
        found: list[list[int]] = []
        while left:
            batch = [left[0], *(o for o in left[1:] if _asked_together(left[0], o, self._takes))]
            left = [other for other in left if other not in batch]
            if len(batch) > 1:
                found.append(batch)
        return found

    def running(self, number: int) -> tuple[int, ...]:
        """The scripts that ran when resource ``number`` was asked for; empty for none or an unknown one."""
        scripts = self._most_common(
            number, lambda take, request: tuple(_at(take, url) for url in request.stack)
        )
        found = tuple(script for script in scripts or () if script is not None and script != number)
        first = self._takes[0].first
        are_scripts = all(script in first and first[script].type == "js" for script in found)
        return found if are_scripts and len(found) == len(scripts or ()) else ()

    def handled(self, number: int) -> Fitted | None:
        """The cause of resource ``number`` where a handler of DOMContentLoaded asks for it."""
        takes = [take for take in self._takes if number in take.first]
        times = [take.content_loaded for take in takes if take.content_loaded is not None]
        if not takes or len(times) < len(takes):
            return None
        after_ms, spread = _constant([take.first[number].start for take in takes], times)
        return Fitted(self.running(number)[:1] or (0,), "content_loaded", after_ms, spread)

    def _initiator(self, number: int) -> int | None:
        """The resource that DevTools names as the initiator of resource ``number``."""
        return self._most_common(number, lambda take, request: _at(take, request.initiator))

    def _most_common(self, number: int, what: Callable[[Take, Request], T]) -> T | None:
        seen = Counter(what(take, take.first[number]) for take in self._takes if number in take.first)
        return seen.most_common(1)[0][0] if seen else None


def _asked_together(one: int, other: int, takes: Sequence[Take]) -> bool:
    """True if one script asked for both, which are scripts, in all takes, mostly at about the same time."""
    apart: list[float] = []
    for take in takes:
        first, second = take.first.get(one), take.first.get(other)
        if first is None or second is None or not first.type == second.type == "js":
            return False
        by = _at(take, first.initiator) if first.initiator == second.initiator else None
        if by is None or take.first[by].type != "js":
            return False
        apart.append(abs(first.start - second.start))
    return statistics.median(apart) <= _TOGETHER_MS


def _at(take: Take, url: str | None) -> int | None:
    """The resource that answered ``url``."""
    return next((number for number, request in take.first.items() if request.url == url), None)


def _start(found: Fitted, take: Take) -> float | None:
    """When the rule lets a request begin in a take; None if the take lacks a cause."""
    if found.after in ("load", "content_loaded"):
        times = [take.load if found.after == "load" else take.content_loaded]
    else:
        times = [take.first[by].end if by in take.first else None for by in found.by]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return None
    return (min(known) if found.after == "first" else max(known)) + found.after_ms


def _of(by: Iterable[int], starts: Sequence[float], ends: dict[int, list[float]]) -> Fitted:
    by = tuple(by)
    latest = [max(ends[other][take] for other in by) for take in range(len(starts))]
    after, spread = _constant(starts, latest)
    return Fitted(_needed(by, ends), "resources", after, spread)


def _needed(by: tuple[int, ...], ends: dict[int, list[float]]) -> tuple[int, ...]:
    """``by`` without the resources that are the latest in no take; the first stays."""
    takes = range(len(ends[by[0]]))
    latest = {max(by, key=lambda other: ends[other][take]) for take in takes}
    return (by[0], *(other for other in by[1:] if other in latest))


def _first_of(number: int, starts: Sequence[float], takes: Sequence[Take]) -> Fitted | None:
    """The best set of two or three scripts whose first end the request follows, as with a loader."""
    ends: dict[int, list[float]] = {}
    for other, request in takes[0].first.items():
        seen = [take.first[other].end if other in take.first else None for take in takes]
        known = [end for end in seen if end is not None]
        of_use = other != number and request.type == "js" and len(known) == len(takes)
        if of_use and len(ends) < _MOST_ANY:
            ends[other] = known
    pairs = (found for pair in combinations(ends, 2) if (found := _of_first(pair, starts, ends)))
    best = min(pairs, key=_spread, default=None)
    if best is None:
        return None
    others = [other for other in ends if other not in best.by]
    wider = (found for other in others if (found := _of_first((*best.by, other), starts, ends)))
    three = min(wider, key=_spread, default=best)
    return three if three.spread < _GAIN * best.spread else best


def _of_first(by: tuple[int, ...], starts: Sequence[float], ends: dict[int, list[float]]) -> Fitted | None:
    """The fit to the first end of ``by``; None if it is too late in a take, or one is never the first."""
    first = [min(by, key=lambda other: ends[other][take]) for take in range(len(starts))]
    times = [ends[other][take] for take, other in enumerate(first)]
    if len(set(first)) < len(by) or any(t > s + EARLY_MS for t, s in zip(times, starts, strict=True)):
        return None
    after, spread = _constant(starts, times)
    return Fitted(tuple(sorted(by, key=first.count, reverse=True)), "first", after, spread)


def _constant(starts: Sequence[float], from_: Sequence[float]) -> tuple[float, float]:
    waits = [start - end for start, end in zip(starts, from_, strict=True)]
    middle = statistics.median(waits)
    return max(0.0, middle), statistics.fmean(abs(wait - middle) for wait in waits)


def _grown(found: Fitted, starts: Sequence[float], ends: dict[int, list[float]]) -> Fitted:
    """Adds resources as long as each reduces the spread enough."""
    for _ in range(MOST_ADDED):
        if found.spread < _GAIN_MS:
            break
        others = (other for other in ends if other not in found.by)
        grown = min((_of((*found.by, other), starts, ends) for other in others), key=_spread, default=found)
        if grown.spread > _GAIN * found.spread or grown.spread > found.spread - _GAIN_MS:
            break
        found = grown
    return found


def _spread(found: Fitted) -> float:
    return found.spread
