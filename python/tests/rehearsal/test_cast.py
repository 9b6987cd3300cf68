"""Unrecorded requests get a stored answer, and varying addresses a pattern."""

from __future__ import annotations

import pytest

from wirepaint.pages.model import Cause, Page, Resource
from wirepaint.rehearsal.cast import Cast, pattern_of

from .takes import URL, request, take


def a_page(*urls: str) -> Page:
    kinds = ["html", *["js"] * (len(urls) - 1)]
    resources = [
        Resource(
            id=number,
            url=url,
            type=kind,  # type: ignore[arg-type]
            wire_bytes=10,
            decoded_bytes=10,
            cause=Cause(by=None if number == 0 else 0, kind="navigation" if number == 0 else "other"),
        )
        for number, (url, kind) in enumerate(zip(urls, kinds, strict=True))
    ]
    return Page(name="sample", url=urls[0], resources=resources)


def a_cast(*urls: str) -> Cast:
    page = a_page(*urls)
    answers = [{"method": "GET", "url": url, "status": 200, "headers": [], "body": None} for url in urls]
    return Cast(page, answers)


def test_what_was_not_recorded_gets_a_stored_answer_that_every_origin_may_read():
    cast = a_cast(URL)
    unknown = request(None, 20, 30, url="https://other.test/api", type="data")
    assert cast.learn(take([request(0, 0, 10), unknown])) == 1
    stand_in = cast.resources[1]
    assert (stand_in.stand_in, stand_in.status, stand_in.type) == (True, 404, "data")
    assert ("https", "other.test", 443) in cast.origins
    responses, answering = cast.answers({1: 250.0})
    assert answering == [0, 1]
    assert responses[1]["think_ns"] == 250_000_000
    assert dict(responses[1]["headers"])["access-control-allow-credentials"] == "true"
    assert cast.learn(take([request(0, 0, 10), unknown])) == 0


def test_an_address_with_another_time_in_it_becomes_a_pattern():
    cast = a_cast(URL, f"{URL}beacon?a=1&_=1600000000000")
    other = request(1, 20, 30, url=f"{URL}beacon?a=1&_=1600000000777")
    assert cast.learn(take([request(0, 0, 10), other])) == 1
    assert cast.resources[1].patterns == [f"{URL}beacon?a=1&_=*"]
    assert cast.learn(take([request(0, 0, 10), other])) == 0


def test_a_stand_in_takes_the_next_random_path_too():
    cast = a_cast(URL)
    cast.learn(take([request(None, 20, 30, url=f"{URL}hit/123?x=1")]))
    cast.learn(take([request(None, 20, 30, url=f"{URL}hit/987?x=2")]))
    assert len(cast.resources) == 2
    assert cast.resources[1].patterns == [f"{URL}hit/*?x=*"]


def test_a_preflight_is_in_the_page_but_answered_by_the_server_itself():
    cast = a_cast(URL)
    cast.learn(take([request(None, 20, 30, method="OPTIONS", url=f"{URL}api")]))
    assert (cast.resources[1].method, cast.resources[1].status) == ("OPTIONS", 204)
    assert cast.answers({})[1] == [0]


@pytest.mark.parametrize(
    ("one", "other", "pattern"),
    [
        ("https://a.test/x?u=1&t=5", "https://a.test/x?u=1&t=6", "https://a.test/x?u=1&t=*"),
        ("https://a.test/x?u=1", "https://a.test/x?v=1", "https://a.test/x?*"),
        ("https://a.test/x", "https://a.test/x?v=1", "https://a.test/x*"),
        ("https://a.test/1/x", "https://a.test/2/x", "https://a.test/*/x"),
        ("https://a.test/one/x", "https://a.test/two/x", "https://a.test/one/x"),
        ("https://a.test/x", "https://b.test/x", "https://a.test/x"),
        ("https://a.test/x/y", "https://a.test/x", "https://a.test/x/y"),
    ],
)
def test_a_pattern_keeps_all_that_two_addresses_share(one: str, other: str, pattern: str):
    assert pattern_of(one, other) == pattern
