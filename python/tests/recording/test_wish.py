"""Accepted and refused options of ``page record``."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.recording import read

URL = "https://www.site.test/start?x=1"


def test_an_address_loses_its_fragment_and_gains_a_path() -> None:
    assert read("https://site.test#part").url == "https://site.test/"
    assert read(URL).url == URL


@pytest.mark.parametrize(
    "url", ["site.test", "ftp://site.test/", "https://", "https://a:99999/", "https://a b/", "x"]
)
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="accepted: an address such as"):
        read(url)


def test_a_password_in_the_address_is_refused_without_repeating_it() -> None:
    with pytest.raises(UsageError) as refused:
        read("https://me:pa55word@site.test/")
    assert "pa55word" not in str(refused.value) and "--header 'Authorization" in str(refused.value)


def test_own_hosts_are_that_of_the_address_and_those_below_it() -> None:
    wish = read(URL)
    own = ("https://site.test/", "http://www.site.test:8080/x", "https://api.site.test/")
    assert all(map(wish.own, own))
    assert not any(
        map(wish.own, ("https://site.test.evil/", "https://mysite.test/", "https://other.test/?site.test"))
    )


def test_headers_are_read_and_cookies_among_them_go_to_the_jar() -> None:
    wish = read(URL, header=["X-A:  b: c ", "cookie: a=1; b=x=y", "User-Agent: me"])
    assert wish.headers == (("X-A", "b: c"), ("User-Agent", "me")) and wish.user_agent == "me"
    assert [(c["name"], c["value"], c["url"]) for c in wish.cookies] == [("a", "1", URL), ("b", "x=y", URL)]


@pytest.mark.parametrize(
    "header", ["none", "two words: x", ": x", "Host: a", "Content-Length: 1", "X-A: a\r\nX-B: b"]
)
def test_a_header_that_cannot_be_sent_is_refused(header: str) -> None:
    with pytest.raises(UsageError, match="--header"):
        read(URL, header=[header])


def test_a_cookie_file_of_curl_is_read(tmp_path: Path) -> None:
    later = int(time.time()) + 1000
    jar = tmp_path / "cookies.txt"
    jar.write_text(
        "# Netscape HTTP Cookie File\n\n"
        f".site.test\tTRUE\t/\tTRUE\t{later}\tall\tone\n"
        "#HttpOnly_www.site.test\tFALSE\t/a\tFALSE\t0\tsid\ttwo\n"
        "site.test\tFALSE\t/\tFALSE\t1\texpired\tthree\n"
        "site.test\tFALSE\t/\tTRUE\t0\tempty\n"
    )
    every, one, empty = read(URL, cookie_file=jar).cookies
    assert every["domain"] == ".site.test" and every["secure"] and every["expires"] == later
    assert one["url"] == "http://www.site.test/a" and one["httpOnly"] and "domain" not in one
    assert empty["value"] == "" and empty["url"] == "https://site.test/"


@pytest.mark.parametrize(
    "line", ["a b c", "site.test\tTRUE\t/\tTRUE\tsoon\tn\tv", "{}", "\tTRUE\t/\tTRUE\t0\tn\tv"]
)
def test_a_line_that_is_no_cookie_is_named_by_its_number(line: str, tmp_path: Path) -> None:
    jar = tmp_path / "cookies.txt"
    jar.write_text(f"# comment\n{line}\n")
    with pytest.raises(UsageError, match=r"cookies\.txt: line 2: found"):
        read(URL, cookie_file=jar)


def test_a_cookie_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none: found No such file"):
        read(URL, cookie_file=tmp_path / "none")
    (tmp_path / "jar").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="no UTF-8 text"):
        read(URL, cookie_file=tmp_path / "jar")


def test_the_viewport_is_a_screens_a_phones_or_the_one_given() -> None:
    assert read(URL).viewport == (1280, 800)
    assert read(URL, mobile=True).viewport == (412, 823)
    assert read(URL, mobile=True, viewport="360x640").viewport == (360, 640)


@pytest.mark.parametrize("viewport", ["800", "0x0", "10x800", "9999x800", "800 x 600", "800x600px"])
def test_a_viewport_that_is_none_is_refused(viewport: str) -> None:
    with pytest.raises(UsageError, match="--viewport"):
        read(URL, viewport=viewport)


def test_resolve_is_curls() -> None:
    given = ["a.test:443:127.0.0.1", "b.test:80:[::1]", "c.test:443:10.0.0.1:8443"]
    assert read(URL, resolve=given).resolve == {
        "a.test:443": "127.0.0.1:443",
        "b.test:80": "[::1]:80",
        "c.test:443": "10.0.0.1:8443",
    }


@pytest.mark.parametrize(
    "place", ["a.test", "a.test:443", "a.test:443:b.test", "a:0:127.0.0.1", "a,b:443:127.0.0.1"]
)
def test_a_place_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="--resolve"):
        read(URL, resolve=[place])


@pytest.mark.parametrize(
    "options", [{"wait": -1.0}, {"wait": float("nan")}, {"timeout": 0.0}, {"timeout": 1e9}]
)
def test_times_have_bounds(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="seconds"):
        read(URL, **options)  # type: ignore[arg-type]
