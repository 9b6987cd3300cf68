"""Addresses as a browser asks for them."""

from __future__ import annotations

import pytest

from wirepaint.pages import references
from wirepaint.pages.tags import Tag, tokens


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


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<img src=a.png width=220>", {"src": "", "width": "220"}),
        ("<img src = a.png alt=x>", {"src": "", "alt": "x"}),
        ("<img src=a>", {"src": ""}),
        ("<img src='a.png' alt=x>", {"src": "", "alt": "x"}),
        ("<img srcset=a.png,b.png width=9>", {"srcset": "", "width": "9"}),
    ],
)
def test_a_blanked_address_leaves_the_other_attributes_alone(text: str, left: dict[str, str]) -> None:
    found = references.in_html(text, "https://a.test/")
    blanked, _ = references.blank(text, found, lambda url: False)
    assert len(blanked) == len(text)
    [tag] = [token for token in tokens(blanked) if isinstance(token, Tag)]
    assert {name: value.strip() for name, value in tag.attributes(blanked).items() if name in left} == left
