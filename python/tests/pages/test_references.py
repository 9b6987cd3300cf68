"""Addresses as a browser asks for them."""

from __future__ import annotations

import pytest

from wirepaint.pages import references


@pytest.mark.parametrize(
    ("base", "url", "asked"),
    [
        ("https://a.test/x/y", "q//r.js", "https://a.test/x/q//r.js"),
        ("https://a.test/x/y", "/p//q", "https://a.test/p//q"),
        ("https://a.test/x/y", "//b.test//c///d.js", "https://b.test//c///d.js"),
        ("https://a.test/x//z/y", "r.js", "https://a.test/x//z/r.js"),
        ("https://a.test/x//y", "../r.js", "https://a.test/x/r.js"),
        (
            "https://a.test/x//y/z",
            "./r.js?to=http://c.test//d",
            "https://a.test/x//y/r.js?to=http://c.test//d",
        ),
        ("https://a.test/x/y", "../../r.js#part", "https://a.test/r.js"),
    ],
)
def test_an_address_keeps_the_empty_segments_of_its_path(base: str, url: str, asked: str) -> None:
    assert references.absolute(url, base) == asked
