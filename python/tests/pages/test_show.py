"""A page for people at a terminal, and for programs."""

from __future__ import annotations

import json

from wirepaint.pages import show
from wirepaint.pages.model import Cause, Page, Recorded, Rehearsal, Rehearsed, Resource
from wirepaint.rehearsal import in_words

SITE = "https://a.test"


def resource(number: int, path: str, by: int | None = 0, kind: str = "parser", **more: object) -> Resource:
    url = path if "://" in path else f"{SITE}{path}"
    known = {"type": "image", "wire_bytes": 1_000, "decoded_bytes": 1_000} | more
    return Resource.model_validate({"id": number, "url": url, "cause": Cause(by=by, kind=kind), **known})


def found(start: float, end: float | None = None, **more: object) -> Rehearsed:
    return Rehearsed.model_validate({"asked": 1, "start_ms": start, "end_ms": end or start + 10, **more})


def rehearsed(**more: object) -> Page:
    """One page with one of each."""
    late = found(120, load="after", after="load", by=[0], after_ms=3)
    resources = [
        resource(0, "/", None, "navigation", type="html", rehearsed=found(0)),
        resource(1, "/a.css", type="css", rehearsed=found(12)),
        resource(2, "/late.js", type="js", rehearsed=found(40, by=[0, 1], after_ms=12.4)),
        resource(3, "https://b.test/f.woff2", 1, "css", type="font", rehearsed=found(30, 90, asked=0.5)),
        resource(4, "/never.png"),
        resource(5, "/x?t=1", 2, "script", patterns=[f"{SITE}/x?t=*"], rehearsed=late),
        resource(6, "/gone", rehearsed=found(50, aborted=True), stand_in=True, wire_bytes=0, status=404),
        resource(7, "/to", 6, "redirect", rehearsed=found(60)),
    ]  # fmt: skip
    known = {"verdict": "replays without", "left_out": 1, "reason": "1 recorded request", "error": 0.021}
    known |= {"browser": "Chromium 1", "maker": "1", "loads": 9, "seconds": 7.2, "load_ms": 100, "judged": 2}
    rehearsal = Rehearsal.model_validate(known | more)
    return Page(
        name="a", title="A page", url=f"{SITE}/", resources=resources, rehearsal=rehearsal, notes=["Odd."]
    )


def test_the_verdict_and_the_simulators_error_are_said() -> None:
    text = show.lines(rehearsed(), 100)
    assert text[:4] == [
        "a: A page",
        "https://a.test/",
        "7 requests, 2 hosts, 6.0 kB on the wire",
        "replays without 1 request; simulator 2.1 % off in 2 rehearsals kept out of the fit",
    ]
    assert "9 loads in 7 s at 1280x800, Chromium 1, load event after 100 ms" in text


def test_a_share_has_a_space_before_its_sign() -> None:
    assert in_words(rehearsed()) == (
        "a: replays without 1 request, simulator 2.1 % off in rehearsals; 9 loads, 7 s"
    )
    assert any("https://b.test/f.woff2 (50 %)" in line for line in show.lines(rehearsed(), 100))


def test_a_rehearsal_on_a_busy_machine_is_said() -> None:
    page = rehearsed()
    assert page.rehearsal is not None
    for others, said in ((0.82, True), (0.03, False)):
        of_it = page.rehearsal.model_copy(update={"others_cpu": others})
        text = show.lines(page.model_copy(update={"rehearsal": of_it}), 100)
        assert ("others had 82 % of the CPU time: rehearse it again on a calm machine" in text) is said


def test_a_page_that_was_never_rehearsed_says_that_the_recorded_causes_serve() -> None:
    page = Page(
        name="a",
        url=f"{SITE}/",
        resources=[
            resource(0, "/", None, "navigation", type="html", recorded=Recorded(wait_ms=5, receive_ms=3)),
            resource(1, "/x.js", type="js", recorded=Recorded(start_ms=9, after_load=True)),
            resource(2, "/y", 1, "script"),
            resource(3, "/z", 0, "other", file="listed"),
        ],
    )
    text = show.lines(page, 100)
    assert text[2:4] == [
        "3 requests, 1 host, 3.0 kB on the wire",
        "never rehearsed: the recorded causes serve",
    ]
    assert "lying in the folder, named by nothing: 1" in text
    assert show.facts(page)["after_load"]["requests"] == 1
    causes = {row["id"]: row["cause"] for row in show.facts(page)["waterfall"]}
    assert causes == {0: "navigation", 1: "markup: 0", 2: "after: 1 + 0 ms"}
    assert (show.facts(page)["waterfall"][0]["end_ms"], show.facts(page)["simulator"]) == (8, None)


def test_each_request_says_what_it_follows() -> None:
    rows = show.facts(rehearsed())["waterfall"]
    assert [row["id"] for row in rows] == [0, 1, 3, 2, 6, 7, 5]
    assert [row["cause"] for row in rows] == [
        "navigation",
        "markup: 0",
        "style: 1",
        "after: 0, 1 + 12 ms",
        "markup: 0",
        "redirect: 6",
        "after: load event + 3 ms",
    ]


def test_programs_get_everything() -> None:
    known = json.loads(json.dumps(show.facts(rehearsed())))
    assert known["left_out"] == [f"{SITE}/never.png"]
    assert known["stand_ins"] == known["aborted"] == [f"{SITE}/gone"]
    assert known["patterns"] == {f"{SITE}/x?t=1": [f"{SITE}/x?t=*"]}
    assert known["sometimes"] == {"https://b.test/f.woff2": 0.5}
    assert known["hosts"]["b.test"] == {"requests": 1, "wire_bytes": 1_000, "decoded_bytes": 1_000}
    assert (known["before_load"]["requests"], known["after_load"]["requests"]) == (6, 1)
    assert known["rehearsal"]["error"] == 0.021


def test_bars_are_as_wide_as_the_terminal_allows_and_one_column_marks_the_load_event() -> None:
    for width in (80, 120, 200):
        text = show.lines(rehearsed(), width)
        rows = text[
            text.index("waterfall of the rehearsal with every answer at once, in ms; | is the load event")
            + 2 :
        ]
        assert len(rows) == 7
        assert max(map(len, rows)) <= width
        assert {row.index("|") for row in rows if "|" in row} == {rows[0].index("|")}
        starts = [row.index("=") for row in rows]
        assert starts == sorted(starts)


def test_a_long_page_is_abridged_unless_all_of_it_is_asked_for() -> None:
    page = rehearsed()
    page.resources += [resource(n, f"/{n}.png", rehearsed=found(n)) for n in range(8, 200)]
    page.resources += [resource(n, f"/{n}.png") for n in range(200, 220)]
    text, whole = show.lines(page, 100), show.lines(page, 100, whole=True)
    assert text[-1] == "and 159 more (--all shows them)"
    assert "  and 16 more" in text
    assert len(whole) == len(text) + 159 - 1 + 16 - 1
    assert not any("more" in line for line in whole)


def test_only_bars_and_the_verdict_are_painted() -> None:
    plain = show.lines(rehearsed(), 100)
    text = show.lines(rehearsed(), 100, paint=lambda text, word: f"<{word}:{text}>")
    assert text[3].startswith("<replays without:replays without 1 request>;")
    assert sum("<" in line for line in text) == 8
    assert "<css:==" in text[-6]
    assert len(text) == len(plain)


def test_a_page_that_does_not_replay_says_why() -> None:
    page = rehearsed(verdict="does not", reason="it asks for other things each time", error=None, loads=0)
    text = show.lines(page, 100)
    assert text[3:5] == ["does not replay", "it asks for other things each time"]
