"""Findings of rehearsals on each request, and their random delays."""

from __future__ import annotations

import math

import pytest

from wirepaint.pages import PreparedPage
from wirepaint.pages.model import Page, own_document
from wirepaint.rehearsal.fitting import Part, describe, image_painted, paint_missed
from wirepaint.rehearsal.rehearse import DELAY_MS, FITTED, JUDGED, delay, middle_error

from .takes import URL, request, take


def described(*seen: tuple[float, float], load: float = 300) -> tuple[str, bool]:
    """Of a request that began and ended so in each of some takes."""
    listed = [(URL, "html", None, "navigation"), (f"{URL}1", "js", 0, "script")]
    resources = [
        {"id": n, "url": url, "type": kind, "cause": {"by": by, "kind": cause}}
        | {"wire_bytes": 100, "decoded_bytes": 100}
        for n, (url, kind, by, cause) in enumerate(listed)
    ]
    page = Page.model_validate({"name": "page", "url": URL, "resources": resources})
    part = Part(PreparedPage("page", URL, [], [], []), page.resources, [], (1280, 800))
    takes = [take([request(0, 0, 10), request(1, *times)], load=load) for times in seen]
    describe(part, takes[0], takes[1:])
    found = page.resources[1].rehearsed
    assert found is not None
    return found.load, found.holds_load


def test_the_load_event_waits_for_what_it_never_came_before():
    assert described((20, 120), (20, 250), (20, 299)) == ("before", True)


def test_one_answer_after_the_load_event_shows_that_it_did_not_wait():
    assert described((20, 120), (20, 350)) == ("before", False)


def test_what_begins_after_the_load_event_says_nothing_of_it():
    assert described((310, 420), (320, 380)) == ("after", True)
    assert described((20, 120), (320, 380)) == ("either", True)


def test_a_document_that_a_script_leads_on_to_is_a_redirect_and_a_frame_is_not():
    resources = [
        {"id": n, "url": f"{URL}{n or ''}", "type": "html", "wire_bytes": 100, "decoded_bytes": 100}
        | {"cause": {"by": None if n == 0 else 0, "kind": "script" if n else "navigation"}}
        for n in range(3)
    ]
    page = Page.model_validate({"name": "page", "url": URL, "resources": resources})
    part = Part(PreparedPage("page", URL, [], [], []), page.resources, [], (1280, 800))
    frame = request(1, 20, 90, type="html", frame="G")
    seen = take([request(0, 0, 10, type="html"), frame, request(2, 30, 40, type="html")])
    describe(part, seen, [seen])
    assert [resource.cause.kind for resource in page.resources] == ["navigation", "script", "redirect"]
    assert own_document(page.resources).id == 2


def test_over_all_loads_a_resource_takes_each_part_of_the_range_of_delays():
    loads = FITTED + JUDGED
    for resource in range(5):
        drawn = [delay(f"1 {URL}", resource, load) for load in range(loads)]
        assert sorted(int(late * loads / DELAY_MS) for late in drawn) == list(range(loads))
        assert drawn != [delay("2 other", resource, load) for load in range(loads)]


@pytest.mark.parametrize(
    ("errors", "middle"), [([0.1, -0.3, 0.2], 0.2), ([0.01, -0.05], 0.05), ([0.1, None], None), ([-0.2], 0.2)]
)
def test_the_own_figure_is_the_larger_middle_error_and_none_where_the_simulator_does_not_load(errors, middle):
    assert middle_error(errors) == middle


def painted(*seen: tuple[float, float, str]) -> tuple[list[int], float] | None:
    """The cause of the largest paint; each take has the end of image 1, the largest paint and its address."""
    takes = []
    for end, largest, shown in seen:
        one = take([request(0, 0, 10), request(1, 20, end), request(2, 20, 60)])
        one.largest_contentful_paint, one.largest_url = largest, shown
        takes.append(one)
    found = image_painted(takes)
    return None if found is None else (found.by, found.after_ms)


def test_the_largest_paint_follows_the_image_that_it_shows():
    assert painted((500, 530, f"{URL}1"), (640, 672, f"{URL}1"), (700, 730, f"{URL}1")) == ([1], 30)


@pytest.mark.parametrize(
    ("seen", "wait"),
    [
        ([(90, 410), (150, 414)], 40),  # as the browser of the catalogue paints
        ([(90, 410), (390, 414)], 24),  # it was faster once
        ([(90, 410), (150, 414), (500, 570)], 70),
        ([(90, 410), (500, 530), (600, 690), (640, 700)], 60),
        ([(500, 1_700), (600, 1_800)], 200),
    ],
    ids=["never late", "never late, soon", "late once", "late thrice", "a timer"],
)
def test_an_image_that_came_before_the_first_paint_says_little_of_its_wait(
    seen: list[tuple[float, float]], wait: float
):
    assert painted(*((end, largest, f"{URL}1") for end, largest in seen)) == ([1], wait)


@pytest.mark.parametrize(
    "other",
    [(500, 530, ""), (500, 530, f"{URL}2"), (500, 530, f"{URL}elsewhere")],
    ids=["text", "another image", "no image of the page"],
)
def test_no_image_serves_that_is_not_the_largest_paint_of_all_takes(other: tuple[float, float, str]):
    assert painted((500, 530, f"{URL}1"), (600, 630, f"{URL}1"), other) is None


def test_an_explanation_of_a_paint_is_asked_for_where_the_simulator_has_none_or_a_bad_one():
    assert paint_missed([]) == math.inf
    assert paint_missed([3.0, -2.0, 4.0]) == 0
    assert paint_missed([-600.0, -602.0, -598.0]) > 500
