"""Takes of a page of plain http serve its https version."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from wirepaint.pages.model import Cause, Resource
from wirepaint.rehearsal.rehearse import _Rehearsals
from wirepaint.rehearsal.takes import Request, Take
from wirepaint.rehearsal.transfer import Plain, asked, by_https

from .takes import request

PLAIN = ["http://a.test/", "https://a.test/", "http://a.test:80/app.js", "http://a.test/late.png"]
SECURE = ["https://a.test/", "https://a.test/app.js", "https://a.test/late.png"]
KNOWN = {("GET", url): number for number, url in enumerate(SECURE)}


def resources() -> list[Resource]:
    navigation, other = Cause(by=None, kind="navigation"), Cause(by=0, kind="other")
    return [
        Resource(
            id=n,
            url=url,
            cause=other if n else navigation,
            type="html",
            wire_bytes=9,
            decoded_bytes=9,
        )
        for n, url in enumerate(PLAIN)
    ]


def plain_take(load: float = 300.0) -> Take:
    asked = [
        request(0, 0, 10, url=PLAIN[0], status=301),
        request(None, 5, 6, url="http://a.test/of-nobody"),
        request(1, 12, 30, url=PLAIN[1]),
        request(2, 40, 60, url=PLAIN[2], initiator=PLAIN[1], stack=(PLAIN[2],), connection=3),
        request(3, 320, 330, url=PLAIN[3]),
    ]
    delays = {0: 1.0, 1: 2.0, 2: 4.0, 3: 8.0}
    return Take(asked, load, 200.0, 90.0, 100.0, delays, "Chromium 1", largest_url=PLAIN[3])


def draft(*requests: Request) -> Take:
    return Take(list(requests), 280.0, 200.0, 90.0, 100.0, {}, "Chromium 1")


def test_redirects_to_https_go_and_their_delays_are_those_of_the_target() -> None:
    plain = Plain([plain_take(), plain_take(load=310.0)], resources(), 0.01)
    own = draft(request(0, 0, 10), request(None, 5, 6), request(1, 30, 50))
    mapped = by_https(plain, KNOWN, own)
    assert [take.load for take in mapped] == [300.0, 310.0]
    [_, first, script, late] = mapped[0].requests
    assert (first.resource, first.url, first.start, first.end) == (0, "https://a.test/", 0, 30)
    assert (script.resource, script.url, script.initiator) == (1, "https://a.test/app.js", "https://a.test/")
    assert script.stack == ("https://a.test/app.js",) and script.connection is None
    assert late.resource == 2 and mapped[0].largest_url == "https://a.test/late.png"
    assert mapped[0].delays == {0: 3.0, 1: 4.0, 2: 8.0}
    assert list(mapped[0].first) == [0, 1, 2]


@pytest.mark.parametrize(
    "own",
    [
        draft(request(0, 0, 10)),
        draft(request(0, 0, 10), request(None, 5, 6), request(1, 30, 50), request(2, 60, 70)),
        draft(request(0, 0, 10), request(1, 30, 50)),
    ],
    ids=["asks for less", "asks before its load event for what was late", "does not ask what nobody knows"],
)
def test_a_version_that_asks_for_other_things_gets_no_takes(own: Take) -> None:
    assert by_https(Plain([plain_take()], resources(), 0.01), KNOWN, own) == []
    assert by_https(Plain([], resources(), 0.01), KNOWN, own) == []


def test_the_first_load_of_the_version_waits_for_what_the_plain_page_asked_for() -> None:
    assert asked(plain_take()) == set(SECURE)


@pytest.mark.parametrize(
    ("error", "plain_error", "loads"),
    [
        (0.07, 0.01, [4, 5]),
        (0.12, 0.15, [4, 5]),
        (0.09, 0.01, [4, 5, 0, 1, 2, 3]),
        (None, 0.01, [4, 5, 0, 1, 2, 3]),
    ],
    ids=["good", "as good as by http", "off", "does not load"],
)
def test_the_version_is_rehearsed_whole_where_the_simulator_is_off(
    error: float | None, plain_error: float, loads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    fitted: list[int] = []

    def late(number: int, *_: Take) -> Take:
        made.append(number)
        return plain_take()

    def found(quiet: Take, takes: list[Take], judged: list[Take], pooled: list[Take]) -> object:
        fitted.append(len(takes))
        return SimpleNamespace(rehearsal=SimpleNamespace(error=error)), ""

    rehearsals = _Rehearsals.__new__(_Rehearsals)
    own = draft(request(0, 0, 10), request(None, 5, 6), request(1, 30, 50))
    for name, value in {"_drafts": lambda _: own, "_late": late, "_judging": late, "_found": found}.items():
        monkeypatch.setattr(rehearsals, name, value, raising=False)
    rehearsals._cast = SimpleNamespace(known=KNOWN)  # type: ignore[assignment]
    rehearsals.carry_out(Plain([plain_take()] * 5, resources(), plain_error))
    assert made == loads
    assert fitted == [4] * (1 if len(loads) == 2 else 2)
