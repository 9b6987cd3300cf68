"""Which requests make a page, of what type they are, and by which address they are asked for."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from recording import entry, write

from wirepaint.pages import Page, import_har
from wirepaint.pages.hsts import LIST, preloaded

BASE = "https://site.test/"
DOCUMENT = "<!doctype html><p>x"


def imported(folder: Path, *entries: dict[str, Any], **options: Any) -> Page:
    return import_har(write(folder, *entries), folder / "page", **options)


def types(page: Page) -> dict[str, str]:
    return {r.url.removeprefix(BASE): r.type for r in page.resources}


def crawled(url: str, text: str | None, **keys: Any) -> dict[str, Any]:
    """HTML asked for as crawlers do: no header says what for."""
    return entry(BASE + url, text=text, asked={"User-Agent": "crawler", "Referer": BASE}, **keys)


def test_the_navigation_of_a_crawl_is_a_document(tmp_path: Path) -> None:
    page = imported(tmp_path, crawled("", DOCUMENT), entry(BASE + "a.png", at=9, mime="image/png"))
    assert types(page) == {"": "html", "a.png": "image"}


def test_html_without_hints_is_what_its_page_uses_it_as(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        crawled("", "<iframe src=frame></iframe><img src=picture><script src=code></script>"),
        crawled("frame", "<p>in<iframe src=inner></iframe>", at=5),
        crawled("picture", DOCUMENT, at=6, status=404),
        crawled("code", DOCUMENT, at=7),
        crawled("inner", "<p>inner", at=8),
        crawled("part", "<p>part", at=9),
        crawled("whole", "<!-- x --><HTML>", at=10),
    )
    assert types(page) == {
        "": "html", "frame": "html", "picture": "image", "code": "js", "inner": "html", "part": "data",
        "whole": "html",
    }  # fmt: skip


def test_html_that_was_fetched_stays_data(tmp_path: Path) -> None:
    fetched = entry(BASE + "part", at=5, text=DOCUMENT, asked={"accept": "*/*"})
    assert types(imported(tmp_path, crawled("", DOCUMENT), fetched))["part"] == "data"


def test_default_ports_are_the_same_address(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry("https://site.test:443/", status=302, size=0, headers={"location": "HTTPS://Site.test/home"}),
        entry(BASE + "home", at=5, text="<img src='https://site.test:443/a.png'>"),
        entry("https://site.test:443/a.png", at=9, mime="image/png", asked={"referer": BASE + "home"}),
    )
    assert [(r.url, r.status, r.cause.by) for r in page.resources] == [
        (BASE, 302, None), (BASE + "home", 200, 0), (BASE + "a.png", 200, 1),
    ]  # fmt: skip
    assert not any("blanked" in note for note in page.notes)


def test_each_redirect_in_front_of_a_page_is_kept(tmp_path: Path) -> None:
    hops = ["http://site.test/", "https://site.test/", "http://www.site.test/", "https://www.site.test/x"]
    moved = [
        entry(url, at=10 * n, status=301, size=0, headers={"location": to})
        for n, (url, to) in enumerate(pairwise(hops))
    ]
    page = imported(tmp_path, *moved, entry(hops[-1], at=90))
    assert [(r.url, r.status) for r in page.resources] == [
        *((url, 301) for url in hops[:-1]), (hops[-1], 200),
    ]  # fmt: skip
    assert {r.type for r in page.resources} == {"html"}


def test_a_redirect_to_itself_in_front_of_a_page_is_passed_over(tmp_path: Path) -> None:
    """A server sets a cookie, sends the browser to the same address and only then elsewhere."""
    page = imported(
        tmp_path,
        entry(BASE, status=302, size=0, headers={"location": BASE}),
        entry(BASE, at=10, status=302, size=0, headers={"location": BASE + "home"}),
        entry(BASE + "home", at=20),
    )
    assert [(r.url, r.status) for r in page.resources] == [(BASE, 302), (BASE + "home", 200)]


def test_an_image_that_is_redirected_before_the_document_is_no_navigation(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE + "i", status=302, mime="image/gif", size=0, headers={"location": "/j"}),
        entry(BASE + "j", at=5, mime="image/gif"),
        entry(BASE + "home", at=10),
    )
    assert page.url == BASE + "home"


@pytest.mark.parametrize(
    ("host", "listed"),
    [
        ("google-analytics.com", True), ("www.google-analytics.com", True), ("bat.bing.com", True),
        ("twitter.com", True), ("sub.twitter.com", False), ("any.dev", True), ("dev", False),
        ("fonts.googleapis.com", False), ("xgoogle-analytics.com", False), ("", False),
        ("a." * 50_000 + "dev", False),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_the_browsers_list_of_https_hosts_is_known(host: str, listed: bool) -> None:
    assert preloaded(host) is listed
    assert "Source:" in LIST.read_text()


def test_a_host_of_that_list_is_asked_by_https_and_merged(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry("http://site.test/"),
        entry("http://bat.bing.com/bat.js", at=5, mime="text/javascript"),
        entry("https://bat.bing.com/bat.js", at=6, mime="text/javascript"),
        entry("http://other.test/a.js", at=7, mime="text/javascript"),
    )
    assert [r.url for r in page.resources] == [
        "http://site.test/", "https://bat.bing.com/bat.js", "http://other.test/a.js",
    ]  # fmt: skip


def test_a_start_page_of_that_list_is_no_redirect_to_itself(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry("http://github.com/", status=301, size=0, headers={"location": "https://github.com/"}),
        entry("https://github.com/", at=10),
    )
    assert [(r.url, r.status) for r in page.resources] == [("https://github.com/", 200)]


def test_addresses_that_no_server_takes_are_left_out(tmp_path: Path) -> None:
    page = imported(tmp_path, entry(BASE), entry(BASE + "a" * 9_000, at=5), entry(BASE + "?" + "b" * 70_000))
    assert page.notes == ["2 addresses longer than servers take"]


def test_without_initiators_the_body_that_names_an_address_is_its_cause(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE, time=40, text="<link rel=stylesheet href=s.css><img src=both.png><script src=a.js>"),
        entry(BASE + "s.css", at=50, mime="text/css", text="a{b:url(c.png)}b{b:url(both.png)}"),
        entry(BASE + "a.js", at=50, time=200, mime="text/javascript", text="load()"),
        entry(BASE + "c.png", at=400, mime="image/png", asked={"referer": BASE}),
        entry(BASE + "both.png", at=400, mime="image/png", asked={"referer": BASE + "s.css"}),
        entry(BASE + "made.png", at=410, mime="image/png", asked={"referer": BASE}),
    )  # fmt: skip
    assert [(r.cause.by, r.cause.kind) for r in page.resources[1:5]] == [
        (0, "parser"), (0, "parser"), (1, "css"), (1, "css"),
    ]  # fmt: skip
    # Nothing recorded of the network stands as computing.
    assert max(r.cause.after_ms for r in page.resources) <= 10


def test_what_a_recorder_blames_keeps_its_time(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE, time=40, text="<script src=a.js></script>"),
        entry(BASE + "a.js", at=50, time=50, mime="text/javascript", text="load()"),
        entry(
            BASE + "made.png", at=150, mime="image/png", _initiator={"type": "script", "url": BASE + "a.js"}
        ),
    )
    assert (page.resources[2].cause.by, page.resources[2].cause.after_ms) == (1, 50.0)
