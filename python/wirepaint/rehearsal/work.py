"""What the page's own scripts, styles and layouts take, from Chromium's trace of a rehearsal."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from urllib.parse import urldefrag

from wirepaint.rehearsal.fitting import Part
from wirepaint.rehearsal.takes import Take

CATEGORIES = ("devtools.timeline", "v8")
_RUNS = ("EvaluateScript", "v8.compile", "v8.compileModule", "v8.evaluateModule")
_LAYOUT = ("UpdateLayoutTree", "Layout", "PrePaint", "Paint", "Layerize", "Commit", "HitTest")
_SHEET, _CALL = "ParseAuthorStyleSheet", "FunctionCall"


def describe(part: Part, quiet: Take) -> None:
    """Says of each script, style sheet and document how long the main thread was at it, in CPU time."""
    events = _main_thread(quiet.trace)
    scripts = _by_address(events, _RUNS)
    used = {"js": scripts, "css": _by_address(events, (_SHEET,))}
    callbacks = sum(event.get("tdur", 0) for event in events if event["name"] == _CALL) / 1000
    laid_out = sum(event.get("tdur", 0) for event in events if event["name"] in _LAYOUT) / 1000
    base = next((n for n, r in enumerate(part.resources) if r.type == "html" and r.status < 300), None)
    for number, resource in enumerate(part.resources):
        request = quiet.first.get(number)
        if request is None or resource.rehearsed is None:
            continue
        if resource.type == "html" and request.url in scripts:
            resource.rehearsed.inline_ms = round(scripts[request.url], 3)
        if number == base and laid_out:
            resource.rehearsed.compute_ms = round(laid_out, 3)
            resource.rehearsed.callbacks_ms = round(callbacks, 3)
        elif request.url in used.get(resource.type, {}):
            resource.rehearsed.compute_ms = round(used[resource.type][request.url], 3)


def _main_thread(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the page's main thread did until the load event, without what is part of other such work."""
    loads = [event for event in events if event["name"] == "MarkLoad"]
    main = [event for event in loads if event["args"]["data"].get("isOutermostMainFrame")]
    if not main:
        return []
    thread, end = (main[-1]["pid"], main[-1]["tid"]), main[-1]["ts"]
    spans = (event for event in events if event.get("ph") == "X" and event["ts"] < end)
    known = {*_RUNS, *_LAYOUT, _SHEET, _CALL}
    own = (e for e in spans if (e["pid"], e["tid"]) == thread and e["name"] in known)
    outermost: list[dict[str, Any]] = []
    until = 0.0
    for event in sorted(own, key=lambda event: (event["ts"], -event.get("dur", 0))):
        if event["ts"] >= until:
            until = event["ts"] + event.get("dur", 0)
            outermost.append(event)
    return outermost


def _by_address(events: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, float]:
    """CPU time in ms of the events of these names, by the address that they name."""
    used: dict[str, float] = defaultdict(float)
    for event in events:
        if event["name"] in names:
            data = event["args"].get("data") or event["args"]
            url = data.get("url") or data.get("styleSheetUrl") or event["args"].get("fileName") or ""
            if url:
                used[urldefrag(url).url] += event.get("tdur", 0) / 1000
    return used
