"""What a browser's cache holds of a page, by the headers of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from wirepaint.pages import freshness

DATE = "Mon, 24 Oct 2016 12:00:00 GMT"
EARLIER = "Mon, 24 Oct 2016 11:00:00 GMT"
LATER = "Mon, 24 Oct 2016 12:10:00 GMT"


def headers(**fields: str) -> list[list[str]]:
    return [[name.replace("_", "-"), value] for name, value in fields.items()]


LIFETIMES = [
    (200, headers(Cache_Control="public, max-age=86400"), 86_400),
    (200, headers(Cache_Control="max-age=600, s-maxage=0, private"), 600),
    (200, headers(Cache_Control="max-age=600", Age="100"), 500),
    (200, headers(Cache_Control="max-age=600, no-cache"), 0),
    (200, headers(Cache_Control="max-age=600", Vary="*"), 0),
    (200, headers(Cache_Control="max-age=x"), 0),
    (200, headers(Pragma="no-cache", Last_Modified=EARLIER, Date=DATE), 0),
    (200, headers(Expires=LATER, Date=DATE), 600),
    (200, headers(Expires=EARLIER, Date=DATE), 0),
    (200, headers(Expires="0", Date=DATE), 0),
    (200, headers(Expires=LATER), 0),
    (200, headers(Last_Modified=EARLIER, Date=DATE), 360),
    (200, headers(Last_Modified=EARLIER, Date=DATE, Cache_Control="must-revalidate"), 0),
    (200, headers(Last_Modified=EARLIER), freshness.FOREVER_S),
    (404, headers(Last_Modified=EARLIER, Date=DATE), 0),
    (301, headers(), freshness.FOREVER_S),
    (302, headers(), 0),
    (200, headers(), 0),
]


@pytest.mark.parametrize(("status", "fields", "seconds"), LIFETIMES)
def test_lifetimes_are_those_of_rfc_9111_in_a_private_cache(
    status: int, fields: list[list[str]], seconds: float
) -> None:
    assert freshness.lifetime_s(status, fields) == seconds


def resource(
    method: str = "GET", status: int = 200, url: str = "https://a.test/", **fields: str
) -> dict[str, Any]:
    return {"method": method, "status": status, "url": url, "headers": headers(**fields)}


HELD = [
    (resource(Cache_Control="max-age=60"), 10, "fresh"),
    (resource(Cache_Control="max-age=60"), 60, None),
    (resource(Cache_Control="max-age=60", ETag='"1"'), 60, "stale"),
    (resource(Cache_Control="no-cache", Last_Modified=EARLIER), 0, "stale"),
    (resource(Cache_Control="no-store, max-age=60"), 0, None),
    (resource("POST", Cache_Control="max-age=60"), 0, None),
    (resource(status=206, Cache_Control="max-age=60"), 0, None),
    (resource(status=302, Last_Modified=EARLIER), 0, None),
    (resource(), 0, None),
]


@pytest.mark.parametrize(("of", "age_s", "held"), HELD)
def test_the_cache_holds_what_is_fresh_or_can_be_validated(
    of: dict[str, Any], age_s: float, held: str | None
) -> None:
    assert freshness.cached(of, age_s) == held


def test_a_graph_says_it_of_the_addresses_that_were_fetched() -> None:
    style = resource(
        url="https://a.test/s.css#x", Cache_Control="no-cache", ETag='"1"', Content_Type="text/css"
    )
    image = resource(url="https://a.test/i.png", Cache_Control="max-age=60")
    other = resource(url="https://a.test/other", Cache_Control="max-age=60")
    graph = {"origins": [], "resources": [style, image, other]}
    ages = {"https://a.test/s.css": 0.0, "https://a.test/i.png": 0.0}
    found = freshness.warmed(graph, ages.get)["resources"]
    assert [one.get("cached") for one in found] == ["stale", "fresh", None]
    # What the server's 304 has.
    assert found[0]["headers"] == [["Cache-Control", "no-cache"], ["ETag", '"1"']]
    assert found[1]["headers"] == image["headers"] and "cached" not in style
