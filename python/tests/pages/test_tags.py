"""Tags of a document and where they stand."""

from __future__ import annotations

import pytest

from wirepaint.pages import references
from wirepaint.pages.tags import Tag, srcset, tokens, unescape

BASE = "https://a.test/"


def tags(text: str) -> list[str]:
    return [("/" if t.closing else "") + t.name for t in tokens(text) if isinstance(t, Tag)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<P a>x</P >", ["p", "/p"]),
        ("<!-- <b> --><i>", ["i"]),
        ("<!--><i>", ["i"]),
        ("<!-- <b>", []),
        ("<!doctype html><?xml <b?><i>", ["i"]),
        ("1 < 2 <i>", ["i"]),
        ("</ <b><i>", ["i"]),
        ("<a b='>'><i>", ["a", "i"]),
        ('<a b="><i>', []),
        ("<script>'<b>'</scripty></script ><i>", ["script", "/script", "i"]),
        ("<title><b></title><i>", ["title", "/title", "i"]),
        ("<noscript><img></noscript><i>", ["noscript", "/noscript", "i"]),
        ("<svg><title/><path/></svg><i>", ["svg", "title", "path", "/svg", "i"]),
        ("<plaintext><i>", ["plaintext"]),
        ("<style><i>", ["style"]),
    ],
)
def test_tags_are_those_that_a_browser_sees(text: str, found: list[str]) -> None:
    assert tags(text) == found


def test_attributes_have_their_first_value_and_its_place() -> None:
    text = "<a/b = c d='e&amp;f' D=g h i=\"\"x>"
    (tag,) = tokens(text)
    assert isinstance(tag, Tag)
    assert tag.attributes(text) == {"b": "c", "d": "e&f", "h": "", "i": "", "x": ""}
    assert [text[start:end] for _, start, end in tag.fields] == ["c", "e&amp;f", "g", "", "", ""]
    assert not tag.empty


def test_a_character_reference_of_thousands_of_digits_stays() -> None:
    text = "&#" + "9" * 5000 + ";"
    assert unescape(text) == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.jpg 1x, b.jpg 2x", ["a.jpg", "b.jpg"]),
        ("a,b.jpg, c.jpg", ["a,b.jpg", "c.jpg"]),
        (" ,, a.jpg (1,2), b.jpg", ["a.jpg", "b.jpg"]),
        (",,,", []),
        ("", []),
    ],
)
def test_a_srcset_names_its_candidates(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end, _ in srcset(text, 0, len(text))] == found


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("<style>a{b:url(x?a&b)}</style>", ["x?a&b"]),
        ("<p style='a:url(&quot;x&amp;y&quot;)'>", ["x&y"]),
        ("<base href=/d/><base href=/e/><img src=x>", ["d/x"]),
        ("<base href='http://['><img src=x>", ["x"]),
        ("<template><img src=x></template><img src=y>", ["y"]),
        ("<link rel=next href=x><link rel=icon href=y>", ["y"]),
        ("<img src='https://a.test:443/x#y'>", ["x"]),
    ],
)
def test_references_are_found_where_a_browser_asks_for_them(text: str, urls: list[str]) -> None:
    assert [r.url.removeprefix(BASE) for r in references.in_html(text, BASE)] == urls


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("@import'a';@import url( b ) screen;", ["a", "b"]),
        ("/* url(a) */ x{y:url(b)} /* url(c)", ["b"]),
        ("x{y:url('a b')} x{y:url(a b)}", ["a%20b"]),
        ("x{y:url(data:,x)} x{y:url(#z)} x{y:url()}", []),
    ],
)
def test_a_stylesheets_references_are_found(text: str, urls: list[str]) -> None:
    assert [r.url.removeprefix(BASE) for r in references.in_css(text, BASE)] == urls


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("HTTPS://A.test:443/x?#y", "https://a.test/x?"),
        ("http://a.test:80", "http://a.test/"),
        ("http://a.test:443/", "http://a.test:443/"),
        ("http://a.test:/", "http://a.test/"),
        ("data:,x", "data:,x"),
        ("http://[", "http://["),
    ],
)
def test_an_address_is_written_in_one_way(url: str, plain: str) -> None:
    assert references.plain(url) == plain
