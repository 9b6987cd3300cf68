"""What handlers of DOMContentLoaded ask for, from a trace."""

from __future__ import annotations

from typing import Any

from wirepaint.rehearsal import handlers
from wirepaint.rehearsal.causes import Causes, Fitted
from wirepaint.rehearsal.takes import Take

from .takes import URL, request, take
from .test_work import MAIN, event, mark


def asks(address: str, at: float, **thread: int) -> dict[str, Any]:
    sent = {"name": "ResourceSendRequest", "ph": "I", "ts": at * 1000, "args": {"data": {"url": address}}}
    return sent | MAIN | thread


def timer(name: str, number: int, at: float, took: float = 0.0) -> dict[str, Any]:
    return event(name, at, took, data={"timerId": number})


DISPATCH = event("EventDispatch", 150, 6.0, data={"type": "DOMContentLoaded"})
TRACE = [
    timer("TimerInstall", 1, 90),
    asks(f"{URL}before", 100),
    # Chromium gives an event when it ends, so not in the order of beginnings.
    asks(f"{URL}handler#part", 152),
    timer("TimerInstall", 2, 153),
    asks(f"{URL}frame", 154, tid=9),
    DISPATCH,
    mark("MarkDOMContent", 156),
    asks(f"{URL}after", 157),
    asks(f"{URL}other-timer", 161),
    timer("TimerFire", 1, 160, 2.0),
    timer("TimerInstall", 3, 166),
    asks(f"{URL}timer", 165.5),
    timer("TimerFire", 2, 165, 2.0),
    asks(f"{URL}second-timer", 171),
    timer("TimerFire", 3, 170, 2.0),
]


def test_requests_in_the_dispatch_and_in_the_timers_that_it_set_are_its_own() -> None:
    assert handlers.requested(TRACE) == {f"{URL}handler", f"{URL}timer", f"{URL}second-timer"}


def test_a_frame_of_the_same_process_has_an_event_of_its_own() -> None:
    later = [event("EventDispatch", 180, 3.0, data={"type": "DOMContentLoaded"}), asks(f"{URL}inner", 181)]
    assert f"{URL}inner" not in handlers.requested([*TRACE, *later])


def test_without_handlers_nothing_was_asked_by_them() -> None:
    assert handlers.requested([each for each in TRACE if each is not DISPATCH]) == frozenset()
    assert handlers.requested([]) == frozenset()


def test_a_handled_request_follows_the_event_and_the_script_that_ran() -> None:
    def seen(event_at: float, stack: tuple[str, ...]) -> Take:
        asked = request(2, event_at + 7, event_at + 50, type="image", stack=stack)
        everything = [request(0, 0, 50, type="html"), request(1, 10, 60), asked]
        return take(everything, content_loaded=event_at)

    script = (f"{URL}1",)
    by_script = Causes([seen(100, script), seen(300, script)], [], {})
    assert by_script.handled(2) == Fitted((1,), "content_loaded", 7.0, 0.0)
    by_text = Causes([seen(100, ()), seen(300, ())], [], {})
    assert by_text.handled(2) == Fitted((0,), "content_loaded", 7.0, 0.0)
    unknown = take([request(0, 0, 50, type="html"), request(2, 9, 20)], content_loaded=None)
    assert Causes([seen(100, script), unknown], [], {}).handled(2) is None
