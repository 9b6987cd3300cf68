"""Answers that a shared cache serves again."""

import pytest

from wirepaint.pages.shared_cache import is_served_again

CHANGED = ("Last-Modified", "Tue, 03 Mar 2020 10:00:00 GMT")


@pytest.mark.parametrize(
    "headers",
    [
        [("Cache-Control", "max-age=60")],
        [("cache-control", "public, MAX-AGE=31536000, immutable")],
        [("cache-control", "max-age=0, s-maxage=600")],
        [("cache-control", 'max-age="600"'), ("vary", "Accept-Encoding")],
        [CHANGED],
        [("cache-control", "must-revalidate"), CHANGED],
    ],
)
def test_a_fresh_answer_is_served_again(headers: list[tuple[str, str]]) -> None:
    assert is_served_again("GET", 200, headers)
    assert not is_served_again("POST", 200, headers)
    assert not is_served_again("GET", 404, headers)
    assert not is_served_again("GET", 206, headers)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("last-modified", "yesterday")],
        [("cache-control", "max-age=59"), CHANGED],
        [("cache-control", "max-age=600, s-maxage=0")],
        [("cache-control", "max-age=soon"), CHANGED],
        [("cache-control", "max-age=600"), ("cache-control", "private")],
        [("cache-control", "no-cache"), CHANGED],
        [("cache-control", "no-store, max-age=600")],
        [("cache-control", "max-age=600"), ("vary", "*")],
    ],
)
def test_an_answer_that_is_stale_or_private_is_asked_for_again(headers: list[tuple[str, str]]) -> None:
    assert not is_served_again("GET", 200, headers)


def test_a_temporary_redirect_needs_a_lifetime() -> None:
    assert is_served_again("GET", 302, [("cache-control", "max-age=600")])
    assert is_served_again("GET", 301, [CHANGED])
    assert not is_served_again("GET", 302, [CHANGED])
    assert not is_served_again("GET", 303, [("cache-control", "max-age=600")])
