"""Makes the page's description from rehearsals: requests, their causes, and the simulator's error.

The first hypothesis comes from documents and style sheets. The simulator runs it with the delays of each
rehearsal. If its time of a request differs from the browser's although the times of the causes are right,
the request gets the fitted set of causes instead (:mod:`wirepaint.rehearsal.causes`).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from wirepaint import browsers
from wirepaint.pages.loading import DocumentReader, body_text, load_graph
from wirepaint.pages.model import Cause, Follows, Rehearsed, Resource, own_document
from wirepaint.pages.prepare import PreparedPage
from wirepaint.rehearsal import handlers
from wirepaint.rehearsal.causes import EARLY_MS, Causes, Fitted
from wirepaint.rehearsal.prediction import Predicted, key, predict
from wirepaint.rehearsal.takes import Request, Take

ROUNDS = 6
SPREAD_MS = 12.0
"""Allowed spread of the simulator's times of a request around the browser's, from a busy machine."""
SHIFT_MS = 40.0
"""Allowed constant shift of these times, from computing."""
_GAIN = 0.6
"""A fitted set replaces the page's own causes if it leaves at most this share of the differences. These
three are chosen by outcome: on the shipped pages and those of docs/decisions/0010."""
PAINT_MS = 200.0
"""The longest time from the last cause of a paint to the paint: a layout with its fonts, an image's decoding.
A longer one is a timer. Chosen by outcome, as the three above."""
WORSE = 0.003
"""A fitted set may leave the page load time so much further off, as a share of it. Chosen by outcome on pages
of docs/decisions/0010."""
_STILL_MS = 1.0
"""A request that moves by less does not count as moved for its effects."""
PRIORITIES = ("VeryLow", "Low", "Medium", "High", "VeryHigh")


@dataclass
class Part:
    """A page whose resources are being described; stand-ins follow those of ``prepared``."""

    prepared: PreparedPage
    resources: list[Resource]
    origins: list[tuple[str, str, int]]
    viewport: tuple[int, int]
    paints: dict[str, Follows | None] = field(default_factory=dict)
    processor_ms: float | None = None
    """Speed of the machine that rehearses it (``rehearsal.speed``)."""

    def graph(self) -> dict[str, Any]:
        """The load graph for the page model, as described so far."""
        dumped = [resource.model_dump(mode="json") for resource in self.resources]
        # Sizes and headers are the served ones.
        for own, served in zip(dumped, self.prepared.resources, strict=False):
            own |= {name: served[name] for name in ("headers", "wire_bytes", "decoded_bytes")}
        known = self.prepared.responses
        paints = {name: paint.model_dump() if paint else None for name, paint in self.paints.items()}
        prepared = replace(
            self.prepared,
            origins=self.origins,
            responses=[*known, *({"body": None} for _ in self.resources[len(known) :])],
            resources=dumped,
            paints=paints,
            processor_ms=self.processor_ms,
        )
        return load_graph(prepared, self.viewport)

    def text(self, number: int) -> str:
        """The decoded body of a resource; positions are byte positions."""
        return body_text(self.prepared, number) if number < len(self.prepared.responses) else ""

    def inline_scripts(self, number: int) -> list[int]:
        """Positions of the inline scripts in a document's text."""
        return DocumentReader(self.text(number), self.resources[number].url).inline_scripts

    def module_roots(self) -> list[str]:
        """Addresses of the modules that the page's documents name, in order of the text."""
        known = _by_key(self, self.graph())
        places = [
            (each["cause"]["by"], each["cause"]["at"], self.resources[number].url)
            for number, each in known.items()
            if _kind(each) == "markup" and each["cause"]["element"] in ("deferred_script", "async_script")
        ]
        return [url for _, _, url in sorted(places)]

    def key(self, number: int) -> str:
        """Method and address of a resource."""
        resource = self.resources[number]
        return key(resource.method, resource.url)


def describe(part: Part, quiet: Take, takes: Sequence[Take]) -> None:
    """Describes each resource by the rehearsals; ``quiet`` is a take without delays."""
    everyone = [quiet, *takes]
    _lead_on(part, quiet)
    for number, resource in enumerate(part.resources):
        seen = [take.first[number] for take in everyone if number in take.first]
        if not seen:
            resource.rehearsed = None
            continue
        types = Counter(request.type for request in seen if request.type != "other")
        if types and not resource.synthetic:
            # The rehearsal shows how the page uses an answer; the importer has to guess.
            resource.type = types.most_common(1)[0][0]  # type: ignore[assignment]
        before = [take.first[number].start < take.load for take in everyone if number in take.first]
        outlasted = (_outlasted(take.first[number], take) for take in everyone if number in take.first)
        at = quiet.first.get(number)
        resource.rehearsed = Rehearsed(
            asked=round(len(seen) / len(everyone), 3),
            start_ms=_ms(at.start if at else statistics.median(request.start for request in seen)),
            end_ms=_ms(at.end) if at and at.end is not None else None,
            priority=_priority(seen),
            aborted=any(request.failed for request in seen),
            load="before" if all(before) else "either" if any(before) else "after",
            holds_load=not any(outlasted),
        )


def _lead_on(part: Part, take: Take) -> None:
    """Makes a document a redirect if a script or ``<meta>`` of the one before navigates to it."""
    before = 0
    frame = take.requests[0].frame
    for number, request in take.first.items():
        if number > before and request.type == "html" and request.frame == frame:
            part.resources[number].cause = Cause(by=before, kind="redirect")
            before = number


def _outlasted(request: Request, take: Take) -> bool:
    """True if the load event did not wait for a request that began before it."""
    return request.start < take.load and (request.end or 0.0) > take.load + EARLY_MS


def fit(part: Part, takes: Sequence[Take], http: str = "h2") -> None:
    """Finds the causes that are not in documents and style sheets; changes the resources in place.

    The first take has the trace.
    """
    graph = part.graph()
    known = _by_key(part, graph)
    causes = Causes(takes, _blocking(part, graph, known), _handlers(part))
    settled: set[int] = set()
    first, handled = takes[0].first, handlers.requested(takes[0].trace)
    for number in range(len(part.resources)):
        if _kind(known.get(number)) != "script":
            continue
        if number in first and first[number].url in handled and (found := causes.handled(number)):
            _take(part, number, found)
        elif scripts := causes.running(number):
            _take(part, number, Fitted(scripts, "run", 0.0, 0.0))
        else:
            settled.add(number)
            _take(part, number, causes.fit(number))

    def missed_at_load() -> float:
        return _load_missed(predict(part.graph(), delays(part, takes), http), takes)

    for _ in range(ROUNDS):
        graph = part.graph()
        predicted = predict(graph, delays(part, takes), http)
        at_load = _load_missed(predicted, takes)
        known = _by_key(part, graph)
        apart = _apart(part, known, predicted, takes)
        bad = {number for number, each in apart.items() if _is_bad(each)}
        parents = _parents(part, graph, known)
        moved: set[int] = set()
        better: dict[int, Fitted] = {}
        for number in sorted(apart, key=lambda number: _start(part, number)):
            changes = moved | better.keys()
            waits = any(by in changes or (by in bad and by not in settled) for by in parents[number])
            if number in settled or waits:
                continue
            missed, is_long = _wait_for_run(part, number, apart[number], moved)
            if not _is_bad(missed) and not is_long:
                continue
            settled.add(number)
            found = causes.fit(number)
            most = _missed(missed)
            if not found or found.by == (0,) or found.spread >= (1.0 if is_long else _GAIN) * most:
                continue
            if is_long or causes.held_out(number) < most:
                better[number] = found
        moved |= _taken(part, better, at_load, missed_at_load)
        if not moved:
            break
    _fit_paints(part, causes, takes, http)


def _taken(part: Part, better: Mapping[int, Fitted], at_load: float, missed: Callable[[], float]) -> set[int]:
    """Gives resources better causes; returns those that have them now.

    ``missed`` gives the error of the page load time, ``at_load`` is that before. The causes may not make it
    worse: all together, since in a chain of requests one alone may, else one by one.
    """
    taken: set[int] = set()
    for some in ([*better], *([number] for number in better)):
        if not some or taken.issuperset(better):
            break
        before = {number: copy(part.resources[number].rehearsed) for number in some}
        for number in some:
            _take(part, number, better[number])
        now = missed()
        if now <= at_load + WORSE:
            at_load = now
            taken.update(some)
        else:
            for number, rehearsed in before.items():
                part.resources[number].rehearsed = rehearsed
    return taken


def _load_missed(predicted: Sequence[Predicted], takes: Sequence[Take]) -> float:
    """Median error of the simulated page load time, as a share; infinite if it does not load in one."""
    missed = [
        math.inf if p.load is None else abs(p.load / take.load - 1)
        for p, take in zip(predicted, takes, strict=True)
    ]
    return statistics.median(missed)


def _wait_for_run(
    part: Part, number: int, apart: tuple[float, float], moved: set[int]
) -> tuple[tuple[float, float], bool]:
    """Sets the observed wait of a request that follows the run of scripts.

    Returns the remaining differences, and whether the wait is so long that another cause is likely.
    """
    rehearsed, (shift, spread) = part.resources[number].rehearsed, apart
    if rehearsed is None or rehearsed.after != "run":
        return apart, False
    before = rehearsed.after_ms
    rehearsed.after_ms = round(max(0.0, before - shift), 3)
    if abs(rehearsed.after_ms - before) > _STILL_MS:
        moved.add(number)
    return (shift - before + rehearsed.after_ms, spread), rehearsed.after_ms > SHIFT_MS


def _fit_paints(part: Part, causes: Causes, takes: Sequence[Take], http: str) -> None:
    """Sets the causes of the paints if they fit better than the simulator's own estimate."""
    part.paints["largest"] = image_painted(takes)
    predicted = predict(part.graph(), delays(part, takes), http)
    for name, attribute in (("first", "first_contentful_paint"), ("largest", "largest_contentful_paint")):
        seen = [getattr(take, attribute) for take in takes]
        most = _GAIN * paint_missed(_differences(predicted, attribute, seen))
        if part.paints.get(name) or not most:
            continue
        found = causes.fit_times(seen)
        if found is None or found.after_ms > PAINT_MS:  # A longer wait is no layout.
            part.paints[name] = _after_runs(part, takes, seen, most, http)
        elif found.spread < most:
            part.paints[name] = Follows(by=list(found.by) or [0], after_ms=found.after_ms)


def paint_missed(apart: Sequence[float]) -> float:
    """Error of the simulator's own estimate of a paint, in ms, given its differences in each take: 0
    if it is good, infinite if there is no estimate."""
    if not apart:
        return math.inf
    own = _spread(apart)
    return _missed(own) if _is_bad(own) else 0.0


def _after_runs(
    part: Part, takes: Sequence[Take], seen: Sequence[float | None], most: float, http: str
) -> Follows | None:
    """The last run of the scripts that had ended before a paint in all takes, if its spread around the times
    ``seen`` is below ``most`` ms: an application is painted once its scripts have built it."""
    scripts = [
        number
        for number, resource in enumerate(part.resources)
        if resource.type == "js" and _always_before(number, takes, seen)
    ]
    if not scripts:
        return None
    run = Follows(by=scripts, after="run", after_ms=0.0)
    predicted = predict(replace(part, paints={"first": run}).graph(), delays(part, takes), http)
    apart = _differences(predicted, "first_contentful_paint", seen)
    if not apart:
        return None
    late, spread = _spread(apart)
    if late > SHIFT_MS or spread >= most:
        return None
    return run.model_copy(update={"after_ms": round(max(0.0, -late), 3)})


def _always_before(number: int, takes: Sequence[Take], times: Sequence[float | None]) -> bool:
    """True if a resource had ended before the time in each take where the time is known."""
    ends = [take.first[number].end if number in take.first else None for take in takes]
    known = [(end, time) for end, time in zip(ends, times, strict=True) if time is not None]
    return bool(known) and all(end is not None and end < time for end, time in known)


def _differences(predicted: Sequence[Predicted], attribute: str, seen: Sequence[float | None]) -> list[float]:
    """Predicted minus seen times in ms, for takes with both."""
    pairs = zip((getattr(p, attribute) for p in predicted), seen, strict=True)
    return [p - time for p, time in pairs if p is not None and time is not None]


def image_painted(takes: Sequence[Take]) -> Follows | None:
    """The cause of the largest paint if it was the same image in all takes: the end of that image.

    Its wait is the median of the takes where it came after the first paint: an earlier image waits for that.
    If it never came later, the wait is that of the usual browser for a paint, or a shorter one that was seen.
    """
    waits: list[float] = []
    late: list[float] = []
    shown: set[int] = set()
    for take in takes:
        image = next((n for n, request in take.first.items() if request.url == take.largest_url), None)
        first, largest = take.first_contentful_paint, take.largest_contentful_paint
        end = take.first[image].end if image is not None else None
        if image is None or first is None or largest is None or end is None:
            return None
        shown.add(image)
        waits.append(largest - end)
        if end >= first:
            late.append(largest - end)
    if len(shown) != 1:
        return None
    usual = browsers.numbers(browsers.USUAL)["compute"]["paint_ns"] / 1e6
    wait = min(statistics.median(late), PAINT_MS) if late else min(*waits, usual)
    return Follows(by=sorted(shown), after_ms=round(max(wait, 0.0), 3))


def errors(part: Part, takes: Sequence[Take], http: str = "h2") -> list[float | None]:
    """Signed relative error of the simulator's page load time for each take; None if it does not
    load the page."""
    predicted = predict(part.graph(), delays(part, takes), http)
    return [
        p.load / take.load - 1 if p.load is not None else None
        for p, take in zip(predicted, takes, strict=True)
    ]


def delays(part: Part, takes: Sequence[Take]) -> list[dict[str, float]]:
    """The delay of each request's answer, by take, in the form for :func:`predict`."""
    return [{part.key(number): late for number, late in take.delays.items()} for take in takes]


def _take(part: Part, number: int, found: Fitted | None) -> None:
    rehearsed = part.resources[number].rehearsed
    if rehearsed is not None:
        by = list(found.by) if found else []
        rehearsed.by = by or [0]
        rehearsed.after = found.after if found else "resources"
        rehearsed.after_ms = round(found.after_ms, 3) if found else 0.0


def _apart(
    part: Part, known: dict[int, dict[str, Any]], predicted: Sequence[Predicted], takes: Sequence[Take]
) -> dict[int, tuple[float, float]]:
    """How much later than the browser the simulator sends each request: median and spread in ms."""
    found: dict[int, tuple[float, float]] = {}
    for number in known:
        name = part.key(number)
        apart = [
            p.start[name] - take.first[number].start
            for p, take in zip(predicted, takes, strict=True)
            if name in p.start and number in take.first
        ]
        if len(apart) >= 2 and number != 0 and _kind(known[number]) != "redirect":
            found[number] = _spread(apart)
    return found


def _spread(apart: Sequence[float]) -> tuple[float, float]:
    shift = statistics.median(apart)
    return shift, statistics.fmean(abs(each - shift) for each in apart)


def _is_bad(apart: tuple[float, float]) -> bool:
    """True if the differences in ms are larger than a busy machine explains."""
    shift, spread = apart
    return spread > SPREAD_MS or abs(shift) > SHIFT_MS


def _missed(apart: tuple[float, float]) -> float:
    shift, spread = apart
    return spread + max(0.0, abs(shift) - SHIFT_MS)


def _by_key(part: Part, graph: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The graph's resources by their number in the page."""
    numbers = {part.key(number): number for number in range(len(part.resources))}
    return {numbers[key(each["method"], each["url"])]: each for each in graph["resources"]}


def _parents(part: Part, graph: dict[str, Any], known: dict[int, dict[str, Any]]) -> dict[int, list[int]]:
    numbers = {part.key(number): number for number in known}
    ids = [numbers[key(each["method"], each["url"])] for each in graph["resources"]]
    return {
        number: [ids[by] for by in (each["cause"]["by"], *each.get("also", ()))] if "cause" in each else []
        for number, each in known.items()
    }


def _blocking(part: Part, graph: dict[str, Any], known: dict[int, dict[str, Any]]) -> list[int]:
    """The resources that block the parser of the page's own document, in order of the text."""
    numbers = {part.key(number): number for number in known}
    ids = [numbers[key(each["method"], each["url"])] for each in graph["resources"]]
    base = own_document(part.resources).id
    places = [
        (each["cause"]["at"], number)
        for number, each in known.items()
        if _kind(each) == "markup"
        and ids[each["cause"]["by"]] == base
        and each["cause"]["element"] in ("stylesheet", "script")
    ]
    onward = {ids[each["cause"]["by"]]: number for number, each in known.items() if _kind(each) == "redirect"}
    return [_end(number, onward) for _, number in sorted(places)]


def _handlers(part: Part) -> dict[str, float]:
    seen = [resource.rehearsed for resource in part.resources if resource.rehearsed]
    return {
        "content_loaded": max((each.content_loaded_ms or 0.0 for each in seen), default=0.0),
        "load": max((each.load_event_ms or 0.0 for each in seen), default=0.0),
    }


def _end(number: int, onward: dict[int, int]) -> int:
    """The last target of the redirects from ``number``."""
    while number in onward:
        number = onward[number]
    return number


def _kind(resource: dict[str, Any] | None) -> str | None:
    return ((resource or {}).get("cause") or {}).get("kind")


def _start(part: Part, number: int) -> float:
    rehearsed = part.resources[number].rehearsed
    return (rehearsed.start_ms or 0.0) if rehearsed else 0.0


def _priority(seen: Sequence[Request]) -> str | None:
    known = Counter(request.priority for request in seen if request.priority in PRIORITIES)
    return known.most_common(1)[0][0] if known else None


def _ms(value: float) -> float:
    return round(min(max(value, 0.0), 3_600_000.0), 3)
