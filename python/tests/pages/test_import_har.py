"""Imports of the output of recorders."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path
from typing import Any

import brotli
import pytest
from recording import entry, write

from wirepaint.pages import Page, Resource, import_har, load, prepare

BASE = "https://site.test/"


def imported(folder: Path, *entries: dict[str, Any], **options: Any) -> Page:
    page = import_har(write(folder, *entries), folder / "page", **options)
    assert load(folder / "page") == page
    return page


def find(page: Page, end: str) -> Resource:
    return next(r for r in page.resources if r.url.endswith(end))


def body_of(folder: Path, resource: Resource) -> bytes:
    assert resource.body
    return (folder / "page" / "bodies" / resource.body).read_bytes()


def test_a_plain_and_a_packed_file_give_the_same_page(tmp_path: Path) -> None:
    entries = [entry(BASE), entry(BASE + "a.js", at=60, mime="text/javascript")]
    plain = import_har(write(tmp_path, *entries), tmp_path / "one", name="p", source="s")
    packed = import_har(write(tmp_path, *entries, packed=True), tmp_path / "two", name="p", source="s")
    assert plain == packed
    assert [r.url for r in plain.resources] == [BASE, BASE + "a.js"]
    assert plain.recorded == "2026-01-02"


@pytest.mark.parametrize(
    "hint",
    [
        {"_initiator": BASE + "app.js", "_initiator_type": "script"},
        {"_initiator": {"type": "parser", "url": BASE + "app.js"}},
        {
            "_initiator": {
                "type": "script",
                "stack": {"callFrames": [{"url": ""}, {"url": BASE + "app.js"}, {"url": BASE}]},
            }
        },
        {"_initiator": {"type": "script",
                        "stack": {"callFrames": [], "parent": {"callFrames": [{"url": BASE + "app.js"}]}}}},
        {"_norm": {"initiator": BASE + "app.js", "initiatorType": "script"}},
        {"asked": {"Referer": BASE + "app.js"}},
    ],
    ids=["chrome-har", "parser", "stack", "asynchronous stack", "_norm", "Referer"],
)  # fmt: skip
def test_the_cause_is_found_in_every_recorders_words(tmp_path: Path, hint: dict[str, Any]) -> None:
    page = imported(
        tmp_path,
        entry(BASE, time=40),
        entry(BASE + "app.js", at=50, time=30, mime="text/javascript"),
        entry(BASE + "data.json", at=95, mime="application/json", **hint),
    )
    cause = find(page, "data.json").cause
    assert (cause.by, cause.kind, cause.after_ms) == (1, "script", 15.0)


def test_a_font_is_caused_by_the_stylesheet_that_refers_to_it(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE),
        entry(BASE + "a.css", at=60, mime="text/css"),
        entry(BASE + "f.woff2", at=120, mime="font/woff2", asked={"Referer": BASE + "a.css"}),
    )
    assert (find(page, "f.woff2").cause.by, find(page, "f.woff2").cause.kind) == (1, "css")


def test_without_any_hint_the_document_is_the_cause_and_never_an_effect_of_its_own(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE),
        entry(BASE + "early.png", at=10, mime="image/png", _initiator=BASE + "late.js"),
        entry(BASE + "late.js", at=90, mime="text/javascript", _initiator=BASE + "late.js"),
    )
    assert [r.cause.by for r in page.resources] == [None, 0, 0]
    assert find(page, "early.png").cause.after_ms == 0


def test_a_request_follows_the_answer_that_its_script_waited_for(tmp_path: Path) -> None:
    by_app = {"_initiator": BASE + "app.js", "_initiator_type": "script"}
    page = imported(
        tmp_path,
        entry(BASE, time=40),
        entry(BASE + "app.js", at=50, time=50, mime="text/javascript"),
        entry(BASE + "items.json", at=110, time=190, mime="application/json", **by_app),
        entry(BASE + "photo.jpg", at=310, mime="image/jpeg", **by_app),
    )
    cause = find(page, "photo.jpg").cause
    assert (cause.by, cause.kind, cause.after_ms) == (2, "script", 10.0)


def test_a_redirect_leads_to_the_request_that_followed_it(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry("http://site.test/", status=301, size=0, response={"redirectURL": BASE}),
        entry(BASE, at=60),
        entry(BASE + "i", at=90, status=302, mime="image/gif", size=0, headers={"Location": "/j#x"}),
        entry(BASE + "j", at=99, mime="image/gif", size=43),
    )
    assert page.url == "http://site.test/"
    assert [r.cause.kind for r in page.resources] == ["navigation", "redirect", "parser", "redirect"]
    assert [r.header("location") for r in page.resources] == [BASE, None, BASE + "j", None]
    assert [r.type for r in page.resources] == ["html", "html", "image", "image"]


def test_a_redirect_whose_target_was_not_recorded_answers_204(tmp_path: Path) -> None:
    page = imported(tmp_path, entry(BASE), entry(BASE + "i", at=9, status=302, headers={"location": "/gone"}))
    assert (page.resources[1].status, page.resources[1].header("location")) == (204, None)
    assert "1 redirects without a target" in page.notes[0]


def test_a_redirect_to_its_own_address_is_one_request(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE),
        entry(BASE + "i", at=5, status=302, size=0, headers={"location": "/set"}),
        entry(BASE + "set", at=6, status=302, size=0, headers={"location": "/i"}),
        entry(BASE + "i", at=7, mime="image/gif", size=43),
    )
    assert [(r.url, r.status) for r in page.resources] == [(BASE, 200), (BASE + "i", 200)]


def test_the_browsers_own_redirect_to_https_is_no_request(tmp_path: Path) -> None:
    internal = {"location": BASE, "Non-Authoritative-Reason": "HSTS"}
    page = imported(
        tmp_path,
        entry("http://site.test/", status=307, size=0, headers=internal),
        entry(BASE, at=2),
        entry(BASE + "a.js", at=60, mime="text/javascript", asked={"referer": "http://site.test/"}),
    )
    assert [r.url for r in page.resources] == [BASE, BASE + "a.js"]


def test_http_parts_of_an_https_page_are_asked_for_by_https(tmp_path: Path) -> None:
    page = imported(tmp_path, entry(BASE), entry("http://cdn.test:80/a.png", at=60, mime="image/png"))
    assert page.resources[1].url == "https://cdn.test/a.png"
    assert "asked for by https" in page.notes[0]


def test_what_never_reached_a_server_is_left_out(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry("chrome-extension://abc/x.js"),
        entry(BASE, at=1),
        entry("data:image/gif;base64,R0", at=2),
        entry("blob:https://site.test/1", at=3),
        entry("wss://site.test/", at=4),
        entry(BASE + "socket", at=4, status=101),
        entry(BASE + "blocked.js", at=5, status=0),
        entry(BASE + "a.png#x", at=6, mime="image/png"),
        entry(BASE + "a.png", at=7, mime="image/png"),
    )
    assert [r.url for r in page.resources] == [BASE, BASE + "a.png"]
    assert len(page.notes) == 3


def test_a_cached_answer_counts_as_a_full_one(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE),
        entry(BASE + "a.js", at=9, status=304, mime="text/javascript", size=500, _fromCache="disk"),
        entry(BASE + "b.js", at=9, mime="text/javascript", size=10_000, headers={"content-encoding": "gzip"},
              response={"_transferSize": 0, "bodySize": 0}),
    )  # fmt: skip
    a, b = page.resources[1:]
    assert (a.status, a.wire_bytes, a.synthetic) == (200, 500, True)
    assert (b.wire_bytes, b.decoded_bytes) == (2900, 10_000)


@pytest.mark.parametrize(
    ("response", "headers", "wire"),
    [
        ({"bodySize": 700, "_transferSize": 900}, {}, 700),
        ({"bodySize": 4000, "_transferSize": 4100}, {}, 1000),
        ({"bodySize": 300, "_transferSize": 400}, {"content-encoding": "gzip", "content-length": "290"}, 290),
        ({"bodySize": 200, "_transferSize": 400}, {"content-encoding": "gzip", "content-length": "290"}, 200),
        ({"bodySize": 300, "_transferSize": 400}, {"content-encoding": "gzip"}, 300),
        ({"headersSize": 100, "_transferSize": 400}, {"content-encoding": "gzip"}, 300),
        ({"bodySize": 400, "_transferSize": 400}, {"content-encoding": "gzip"}, 400 - 51 // 4),
        ({"content": {"size": 1000, "compression": 650}}, {"content-encoding": "br"}, 350),
    ],
)  # fmt: skip
def test_the_size_on_the_wire_follows_the_documented_precedence(
    tmp_path: Path, response: dict[str, Any], headers: dict[str, str], wire: int
) -> None:
    page = imported(tmp_path, entry(BASE, headers=headers, response=response))
    assert page.resources[0].wire_bytes == wire


@pytest.mark.parametrize(
    ("coding", "stored"), [("gzip", "gzip"), ("br", "br"), ("zstd", "gzip"), ("deflate", "gzip")]
)
def test_a_recorded_body_is_stored_in_its_coding_and_size(tmp_path: Path, coding: str, stored: str) -> None:
    text = "".join(f"<p>{number * 7919 % 1000}</p>" for number in range(2000))
    sizes = {"bodySize": 9000, "_transferSize": 9300}
    page = imported(tmp_path, entry(BASE, text=text, headers={"content-encoding": coding}, response=sizes))
    resource = page.resources[0]
    wire = body_of(tmp_path, resource)
    assert (brotli if stored == "br" else gzip).decompress(wire) == text.encode()
    assert (len(wire), resource.wire_bytes, resource.residual_bytes) == (9000, 9000, 0)
    assert resource.header("content-encoding") == stored
    assert not resource.synthetic


def test_binary_bodies_and_charsets_survive(tmp_path: Path) -> None:
    png = bytes(range(256))
    page = imported(
        tmp_path,
        entry(BASE, text="<p>é", mime="text/html; charset=iso-8859-1"),
        entry(BASE + "b.html", text="<p>é", mime="text/html"),
        entry(BASE + "a.png", at=2, mime="image/png",
              response={"content": {"size": 256, "mimeType": "image/png", "encoding": "base64",
                                    "text": base64.b64encode(png).decode()}}),
    )  # fmt: skip
    assert body_of(tmp_path, page.resources[0]) == "<p>é".encode("latin-1")
    assert body_of(tmp_path, page.resources[2]) == png
    assert find(page, "b.html").header("content-type") == "text/html; charset=utf-8"


def test_references_to_what_was_not_recorded_are_blanked(tmp_path: Path) -> None:
    text = (
        '<link rel="stylesheet" href="https://fonts.test/css"><link rel=icon href=/favicon.ico>'
        '<img src="a.png" srcset="b.png 2x, a.png 1x"><script src="//gone.test/x.js"></script>'
        '<div style="background:url(c.png)"></div><noscript><img src="d.png"></noscript>'
    )
    page = imported(tmp_path, entry(BASE, text=text), entry(BASE + "a.png", at=5, mime="image/png"))
    body = body_of(tmp_path, page.resources[0]).decode()
    assert len(body) == len(text)
    for gone in ("fonts.test", "favicon", "b.png", "gone.test", "c.png"):
        assert gone not in body
    assert body.count("a.png") == 2
    assert "d.png" in body
    assert page.notes == ["5 references to what was not recorded blanked in bodies"]


def test_a_recording_of_errors_says_so(tmp_path: Path) -> None:
    pictures = [
        entry(f"{BASE}{n}.png", at=5, mime="image/png", status=404 if n < 3 else 503) for n in range(5)
    ]
    page = imported(tmp_path, entry(BASE, text="<p>x"), *pictures)
    assert page.notes == ["5 of 6 requests were answered by errors: 3 with 404, 2 with 503"]


def test_an_icon_without_an_address_does_not_leave_its_document_out(tmp_path: Path) -> None:
    document = '<link rel="icon" href=" "><img src=a.png>'
    har = write(
        tmp_path,
        entry("https://a.test/", text=document),
        entry("https://a.test/a.png", at=60, mime="image/png"),
    )
    assert len(import_har(har, tmp_path / "page").resources) == 2


def test_private_and_misleading_headers_leave_their_bytes_behind(tmp_path: Path) -> None:
    headers = {
        "Set-Cookie": "session=secret; Path=/",
        "Strict-Transport-Security": "max-age=31536000",
        "Alt-Svc": 'h3=":443"',
        "Link": "<https://other.test/a.css>; rel=preload",
        "Transfer-Encoding": "chunked",
        "Cache-Control": "max-age=60, stale-while-revalidate=600",
        "X-Served-By": "cache-7",
    }
    page = imported(tmp_path, entry(BASE, headers=headers, text="<p>"))
    kept = page.resources[0].headers
    assert [name for name, _ in kept] == ["content-type", "cache-control", "x-served-by", "x-wirepaint-pad"]
    assert dict(kept)["cache-control"] == "max-age=60"
    lines = sum(len(k) + len(v) + 4 for k, v in headers.items() if k != "Transfer-Encoding")
    assert sum(len(k) + len(v) + 4 for k, v in kept[1:]) == lines


def test_server_time_is_the_wait_less_a_round_trip(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE, timings={"connect": 60.0, "ssl": 35.0, "wait": 125.0}),
        entry(BASE + "a", at=60, timings={"wait": 20.0}),
        entry("https://other.test/b", at=60, timings={"wait": 33.0}),
        entry("https://other.test/c", at=60, timings={"wait": 53.0}),
    )
    assert [r.think_ms for r in page.resources] == [100.0, 0.0, 0.0, 20.0]


def test_hosts_that_one_address_answered_for_have_its_number_and_not_the_address(tmp_path: Path) -> None:
    seen = {
        "www": "151.101.1.1",
        "img": "151.101.1.1",
        "ads": "[2a00:1450::1]",
        "api": "127.0.0.1",
        "old": "",
    }
    entries = [
        entry(f"https://{host}.test/", at=100.0 * number, serverIPAddress=address)
        for number, (host, address) in enumerate(seen.items())
    ]
    page = import_har(write(tmp_path, *entries), tmp_path / "page")
    assert [resource.recorded.server for resource in page.resources] == [0, 0, 1, None, None]
    assert load(tmp_path / "page") == page
    assert "151.101" not in (tmp_path / "page" / "page.json").read_text()


def test_one_page_of_several_is_chosen_by_id_or_number(tmp_path: Path) -> None:
    pages = [{"id": "p1", "title": "One"}, {"id": "p2", "title": "Two", "pageTimings": {"onLoad": 80}}]
    path = write(
        tmp_path,
        entry(BASE, pageref="p1"),
        entry("https://two.test/", at=1000, pageref="p2"),
        entry("https://two.test/a.png", at=1050, mime="image/png", pageref="p2"),
        entry("https://two.test/b.png", at=1090, mime="image/png", pageref="p2"),
        pages=pages,
    )
    assert import_har(path, tmp_path / "a").title == "One"
    for wanted in ("2", "p2"):
        page = import_har(path, tmp_path / wanted, page=wanted)
        assert page.url == "https://two.test/"
        assert [r.recorded.after_load for r in page.resources] == [False, False, True]


def test_sizes_alone_can_be_imported(tmp_path: Path) -> None:
    page = imported(tmp_path, entry(BASE, text="<p>hello</p>" * 50), sizes_only=True)
    assert (page.resources[0].synthetic, page.resources[0].decoded_bytes) == (True, 600)
    assert list((tmp_path / "page" / "bodies").iterdir()) == []


def test_the_same_recording_is_the_same_page_byte_by_byte(tmp_path: Path) -> None:
    path = write(tmp_path, entry(BASE, size=30_000), entry(BASE + "a.png", at=60, mime="image/png"))
    bodies = []
    for name in ("one", "two"):
        import_har(path, tmp_path / name, name="p")
        prepared = prepare(tmp_path / name, tmp_path / f"cache-{name}")
        bodies.append([Path(r["body"]).read_bytes() for r in prepared.responses])
    assert (tmp_path / "one/page.json").read_bytes() == (tmp_path / "two/page.json").read_bytes()
    assert bodies[0] == bodies[1]


def test_a_post_and_what_it_redirects_to_are_data(tmp_path: Path) -> None:
    page = imported(
        tmp_path,
        entry(BASE),
        entry(BASE + "form", method="POST", at=5, status=302, size=0, headers={"location": "/done"}),
        entry(BASE + "done", at=9, resource_type="document"),
    )
    assert [r.type for r in page.resources] == ["html", "data", "data"]
    assert page.resources[2].cause.kind == "redirect"


@pytest.mark.parametrize(("load_ms", "late"), [(70, 9), (155, 1), (400, 0)])
def test_requests_after_the_load_event_are_counted_where_they_are_many(
    tmp_path: Path, load_ms: int, late: int
) -> None:
    entries = [entry(BASE), *(entry(f"{BASE}{n}.png", at=60 + 10 * n, mime="image/png") for n in range(11))]
    started = "2026-01-02T03:04:05Z"
    pages = [{"id": "p", "startedDateTime": started, "pageTimings": {"onLoad": load_ms}}]
    for one in entries:
        one["pageref"] = "p"
    page = import_har(write(tmp_path, *entries, pages=pages), tmp_path / "page")
    assert sum(resource.recorded.after_load for resource in page.resources) == late
    said = f"{late} of 12 requests begin after the load event; page load time leaves them out"
    assert (said in page.notes) == (late == 9), "less than a tenth is not worth a word"
