"""The page's handlers of DOMContentLoaded and of the load event, in Chromium's trace of a rehearsal."""

from __future__ import annotations

from typing import Any
from urllib.parse import urldefrag

Event = dict[str, Any]
CATEGORY = "devtools.timeline"
_CONTENT_LOADED, _LOAD = ("MarkDOMContent", "DOMContentLoaded"), ("MarkLoad", "load")


def times(trace: list[Event]) -> tuple[float, float]:
    """Time in ms of the page's handlers of DOMContentLoaded and of the load event."""
    content_loaded, load = (_dispatch(trace, *event) for event in (_CONTENT_LOADED, _LOAD))
    return round(content_loaded.get("dur", 0) / 1000, 3), round(load.get("dur", 0) / 1000, 3)


def requested(trace: list[Event]) -> frozenset[str]:
    """Addresses that handlers of DOMContentLoaded asked for, or timers that these set, without fragments.

    jQuery calls its handlers by such a timer.
    """
    dispatch = _dispatch(trace, *_CONTENT_LOADED)
    if not dispatch:
        return frozenset()
    spans = [_span(dispatch)]
    timers: set[int] = set()
    found: set[str] = set()
    own = (event for event in trace if _thread(event) == _thread(dispatch) and "data" in event["args"])
    for event in sorted(own, key=lambda event: event["ts"]):
        name, data = event["name"], event["args"]["data"]
        if name == "TimerFire" and data.get("timerId") in timers:
            spans.append(_span(event))
        elif not any(begin <= event["ts"] <= end for begin, end in spans):
            continue
        elif name == "TimerInstall":
            timers.add(data["timerId"])
        elif name == "ResourceSendRequest":
            found.add(urldefrag(data["url"]).url)
    return frozenset(found)


def _dispatch(trace: list[Event], mark: str, kind: str) -> Event:
    """The event's dispatch to the handlers of the page's document; empty if it has none."""
    marks = [e for e in trace if e["name"] == mark and e["args"]["data"].get("isOutermostMainFrame")]
    before = [
        event
        for event in trace
        if marks
        and event["name"] == "EventDispatch"
        and _thread(event) == _thread(marks[-1])
        and event["args"]["data"].get("type") == kind
        and event["ts"] <= marks[-1]["ts"]
    ]
    # Chromium marks the event after its handlers have run.
    return max(before, key=lambda event: event["ts"], default={})


def _span(event: Event) -> tuple[float, float]:
    return event["ts"], event["ts"] + event.get("dur", 0)


def _thread(event: Event) -> tuple[int, int]:
    return event["pid"], event["tid"]
