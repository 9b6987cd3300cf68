"""Computing times of the page's scripts, styles and layouts, from Chromium's trace of a rehearsal.

They are the times that the main thread took, with its waits for a CPU: a visit waits for one, too. Of the
first style and layout the waits are apart, since layouts wait for the browser's own process.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from typing import Any
from urllib.parse import urldefrag

from wirepaint.pages.model import own_document
from wirepaint.rehearsal import handlers
from wirepaint.rehearsal.fitting import Part
from wirepaint.rehearsal.takes import Take

CATEGORIES = (handlers.CATEGORY, "v8", "v8.execute")
_RUNS = ("EvaluateScript", "v8.compile", "v8.compileModule", "v8.evaluateModule")
_STYLE = "UpdateLayoutTree"
_LAYOUT = ("Layout", "PrePaint", "Paint", "Layerize", "Commit", "HitTest")
_SHEET, _CALL, _COMPILED, _MODULE = (
    "ParseAuthorStyleSheet",
    "FunctionCall",
    "v8.compileModule",
    "v8.evaluateModule",
)
_PROMISED = "RunMicrotasks"
_LAYOUT_US = 1000
"""Shorter layouts are taken for those of a page that is still empty. Chosen by outcome, on the npm pages of
docs/decisions/0010."""
_SOON_US = 2000
"""Microtasks (promises) belong to a script that ended at most this long before."""


def describe(part: Part, quiet: Take) -> None:
    """Sets the main thread's time for each script, style sheet and document."""
    events = _main_thread(quiet.trace)
    scripts = _by_address(_named(events, part.module_roots()), (*_RUNS, _PROMISED))
    used = {"js": scripts, "css": _by_address(events, (_SHEET,))}
    callbacks = sum(event.get("dur", 0) for event in events if event["name"] == _CALL) / 1000
    first = _until_first_paint(events)
    styled, style_waited = _used_and_waited(first, (_STYLE,))
    laid_out, layout_waited = _used_and_waited(first, _LAYOUT)
    later = sum(_used_and_waited(events[len(first) :], (_STYLE, *_LAYOUT)))
    content_loaded_ms, load_event_ms = handlers.times(quiet.trace)
    base = own_document(part.resources).id
    for number, resource in enumerate(part.resources):
        request = quiet.first.get(number)
        if request is None or resource.rehearsed is None:
            continue
        if resource.type == "html" and request.url in scripts:
            resource.rehearsed.inline_ms = _inline(part, number, request.url, events)
        if number == base:
            resource.rehearsed.content_loaded_ms = content_loaded_ms
            resource.rehearsed.load_event_ms = load_event_ms
        if number == base and laid_out:
            resource.rehearsed.compute_ms = round(styled + laid_out, 3)
            resource.rehearsed.style_ms = round(styled, 3)
            resource.rehearsed.style_wait_ms = round(style_waited, 3)
            resource.rehearsed.layout_wait_ms = round(layout_waited, 3)
            resource.rehearsed.later_layouts_ms = round(later, 3)
            resource.rehearsed.callbacks_ms = round(callbacks, 3)
        elif request.url in used.get(resource.type, {}):
            resource.rehearsed.compute_ms = round(used[resource.type][request.url], 3)


def _named(events: list[dict[str, Any]], roots: list[str]) -> list[dict[str, Any]]:
    """The events, with the address of the script added if Chromium does not give it.

    A module that runs has no name in the trace. The modules in the document's text run first, in its order;
    any other module runs soon after it was compiled.
    """
    compiled = [_address(event) for event in events if event["name"] == _COMPILED]
    left = [root for root in roots if root in compiled]
    named, last, ended, latest = [], "", 0.0, ""
    for event in events:
        address = _address(event)
        if event["name"] == _COMPILED:
            latest = address
        elif event["name"] == _MODULE and not address:
            address = left.pop(0) if left else latest
        elif event["name"] == _PROMISED and event["ts"] < ended + _SOON_US:
            address = last
        named.append(event | {"args": {"data": {"url": address}}})
        if event["name"] in (*_RUNS, _PROMISED):
            last, ended = address, event["ts"] + event.get("dur", 0)
    return named


def _address(event: dict[str, Any]) -> str:
    data = event["args"].get("data") or event["args"]
    url = data.get("url") or data.get("styleSheetUrl") or event["args"].get("fileName") or ""
    return urldefrag(url).url


def _inline(part: Part, number: int, url: str, events: list[dict[str, Any]]) -> list[float]:
    """Time in ms of each script in a document's text, as far as the trace gives its position."""
    places = part.inline_scripts(number)
    lines = _line_starts(part.text(number))
    used = [0.0] * len(places)
    for event in events:
        data = event["args"].get("data") or {}
        if event["name"] == "EvaluateScript" and data.get("url") == url and used:
            line = min(max(data.get("lineNumber", 1), 1), len(lines))
            at = bisect_right(places, lines[line - 1] + data.get("columnNumber", 1)) - 1
            used[max(at, 0)] += event.get("dur", 0) / 1000
    return [round(each, 3) for each in used]


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer(r"\r\n?|\n", text))]


def _main_thread(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outermost known events of the page's main thread until the load event."""
    loads = [event for event in events if event["name"] == "MarkLoad"]
    main = [event for event in loads if event["args"]["data"].get("isOutermostMainFrame")]
    if not main:
        return []
    thread, end = (main[-1]["pid"], main[-1]["tid"]), main[-1]["ts"]
    spans = (event for event in events if event.get("ph") == "X" and event["ts"] < end)
    known = {*_RUNS, _STYLE, *_LAYOUT, _SHEET, _CALL, _PROMISED}
    own = (e for e in spans if (e["pid"], e["tid"]) == thread and e["name"] in known)
    outermost: list[dict[str, Any]] = []
    until = 0.0
    for event in sorted(own, key=lambda event: (event["ts"], -event.get("dur", 0))):
        if event["ts"] >= until:
            until = event["ts"] + event.get("dur", 0)
            outermost.append(event)
    return outermost


def _until_first_paint(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events up to the end of the first layout and its paint; all of them if the page has none."""
    laid_out = False
    for place, event in enumerate(events):
        laid_out = laid_out or (event["name"] == "Layout" and event.get("dur", 0) > _LAYOUT_US)
        if laid_out and event["name"] == "Paint":
            return events[: place + 1]
    return events


def _used_and_waited(events: list[dict[str, Any]], names: tuple[str, ...]) -> tuple[float, float]:
    """CPU time in ms of the events with these names, and the rest of their time."""
    some = [event for event in events if event["name"] in names]
    used = sum(event.get("tdur", 0) for event in some) / 1000
    return used, max(sum(event.get("dur", 0) for event in some) / 1000 - used, 0.0)


def _by_address(events: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, float]:
    """Time in ms of the events with these names, by their address."""
    used: dict[str, float] = defaultdict(float)
    for event in events:
        if event["name"] in names and (address := _address(event)):
            used[address] += event.get("dur", 0) / 1000
    return used
