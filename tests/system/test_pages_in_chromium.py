"""The real browser loads synthesised pages: each recorded request once, in the order of causes."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_browser import load

from wirepaint.errors import MachineLacks
from wirepaint.pages import PreparedPage, prepare, shipped
from wirepaint.pages.anonymise import anonymise
from wirepaint.pages.import_har import import_har
from wirepaint.pages.model import Page, Resource, save_index
from wirepaint.pages.synthesis.binary import image
from wirepaint.pages.synthesis.font import font
from wirepaint.runners.testbed.browser.chromium import program


@pytest.fixture(autouse=True)
def _browser() -> None:
    try:
        program.find()
    except MachineLacks as lack:
        pytest.skip(f"needs Chromium's headless shell: {lack}")


@pytest.fixture
def work_dir() -> Iterator[Path]:
    """A folder with a short path: the browser keeps sockets in its profile."""
    folder = Path(tempfile.mkdtemp(prefix="wp-pages-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_page_asks_for_each_recorded_request_once(name: str, work_dir: Path) -> None:
    page = prepare(shipped()[name], work_dir / "cache")
    server, seen = load(page, work_dir)
    assert Counter(server.log) == Counter((r["method"], r["url"]) for r in page.responses)
    assert [e.url for e in seen.requests if e.failed] == []
    assert seen.first_contentful_paint is not None
    assert seen.largest_contentful_paint is not None


@pytest.mark.timed
@pytest.mark.parametrize(
    "name",
    [
        "shop-large",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("travel-large", "search-large")),
    ],
)
def test_requests_come_after_their_causes_and_no_later_than_the_load_event(name: str, work_dir: Path) -> None:
    page = prepare(shipped()[name], work_dir / "cache")
    server, seen = load(page, work_dir)
    position = {request: number for number, request in enumerate(server.log)}
    for resource in page.resources[1:]:
        cause = page.resources[resource["cause"]["by"]]
        assert position[cause["method"], cause["url"]] < position[resource["method"], resource["url"]]
    # A script's last fetch does not delay the load event: it may start as the event fires.
    late = [e.url for e in seen.requests if e.sent and e.sent > seen.load_event + 100_000_000]
    assert late == []


def test_what_came_after_the_load_event_comes_after_it_again(work_dir: Path) -> None:
    entries = []
    for number, (at, mime) in enumerate([(0, "text/html"), (60, "text/javascript"), (900, "image/png")]):
        entries.append(
            {
                "startedDateTime": f"2026-01-01T00:00:00.{at:03d}Z",
                "time": 40,
                "request": {"method": "GET", "url": f"https://late.example/{number}", "headers": []},
                "response": {"status": 200, "headers": [{"name": "content-type", "value": mime}],
                             "content": {"size": 8000, "mimeType": mime}},
                "timings": {"wait": 20, "receive": 5},
            }
        )  # fmt: skip
    pages = [{"id": "p", "startedDateTime": "2026-01-01T00:00:00Z", "pageTimings": {"onLoad": 300}}]
    for entry in entries:
        entry["pageref"] = "p"
    har = work_dir / "late.har"
    har.write_text(json.dumps({"log": {"pages": pages, "entries": entries}}))
    imported = import_har(har, work_dir / "page")
    assert [r.recorded.after_load for r in imported.resources] == [False, False, True]
    server, seen = load(prepare(work_dir / "page", work_dir / "cache"), work_dir)
    assert [url[-1] for _, url in server.log] == ["0", "1", "2"]
    late = next(e for e in seen.requests if e.url.endswith("/2"))
    assert late.sent is not None
    assert late.sent > seen.load_event


def test_the_browser_decodes_every_synthesised_image_and_font(work_dir: Path) -> None:
    """A recorded document loads one of each and reports what it could decode in one more request."""
    kinds = ["png", "jpeg", "gif", "webp"]
    fonts = ["woff2", "woff", "ttf"]
    script = (
        f"Promise.all([...{json.dumps(kinds)}.map(k=>{{let i=new Image();i.src='/i.'+k;"
        "return i.decode().then(()=>i.naturalWidth>1?k:'thin '+k,()=>'bad '+k)}),"
        f"...{json.dumps(fonts)}.map(k=>new FontFace('f','url(/f.'+k+')').load().then(()=>k,()=>'bad '+k))])"
        ".then(l=>fetch('/report?'+l))"
    )
    report = "https://decode.example/report?" + ",".join(kinds + fonts)
    document = f"<!doctype html><p>text</p><script>{script}</script>".encode()
    bodies = {"/": ("text/html", document), **{f"/f.{k}": (f"font/{k}", font(k, 30_001, k)) for k in fonts}}
    bodies |= {f"/i.{k}": (f"image/{k}", image(f"image/{k}", 30_001, k)[0]) for k in kinds}
    responses = []
    for path, (mime, body) in bodies.items():
        file = work_dir / f"body{len(responses)}"
        file.write_bytes(body)
        responses.append(
            {
                "method": "GET",
                "url": f"https://decode.example{path}",
                "status": 200,
                "headers": [["content-type", mime]],
                "body": str(file),
            }
        )
    page = PreparedPage(
        "decode", "https://decode.example/", [("https", "decode.example", 443)], responses, []
    )
    server, _ = load(page, work_dir)
    assert server.log[-1] == ("GET", report)


def test_a_page_of_shapes_survives_being_made_anonymous(work_dir: Path) -> None:
    """Fetches with credentials, posts, frames, redirects and imports, over several hosts."""

    def resource(number: int, url: str, kind: str, by: int | None, how: str, **keys: object) -> Resource:
        return Resource.model_validate(
            {
                "id": number,
                "url": url,
                "type": kind,
                "cause": {"by": by, "kind": how, "after_ms": 5.0 if how == "script" else 0.0},
                "wire_bytes": 6000,
                "decoded_bytes": 6000,
                "synthetic": True,
                **keys,
            }
        )

    a, b = "https://www.one.test/", "https://api.two.test/"
    named = {"headers": [["access-control-allow-credentials", "true"]]}
    page = Page(
        name="shapes",
        url=a,
        resources=[
            resource(0, a, "html", None, "navigation"),
            resource(1, a + "a.css", "css", 0, "parser"),
            resource(2, a + "b.css", "css", 1, "css"),
            resource(3, b + "f.woff2", "font", 2, "css"),
            resource(4, b + "bg.png", "image", 2, "css"),
            resource(5, a + "app.js", "js", 0, "parser", priority="High"),
            resource(6, b + "who", "data", 5, "script", **named),
            resource(7, b + "log", "data", 5, "script", method="POST", recorded={"post_bytes": 700}),
            resource(8, a + "frame", "html", 6, "script"),
            resource(9, b + "in-frame.js", "js", 8, "parser"),
            resource(10, b + "go", "image", 9, "script", status=302, synthetic=False, wire_bytes=0,
                     decoded_bytes=0, headers=[["location", a + "there"]]),
            resource(11, a + "there", "image", 10, "redirect", headers=[["content-type", "image/webp"]]),
            resource(12, a + "gone.png", "image", 0, "parser", status=404),
            resource(13, b + "video", "media", 5, "script"),
            resource(14, b + "h", "data", 5, "script", method="HEAD", synthetic=False, wire_bytes=0,
                     decoded_bytes=0),
            resource(15, b + "f2.woff", "font", 0, "parser"),
        ],
    )  # fmt: skip
    for index, made in enumerate((page, anonymise(page))):
        folder = work_dir / f"page{index}"
        folder.mkdir()
        save_index(made, folder)
        prepared = prepare(folder, work_dir / "cache")
        home = work_dir / f"home{index}"
        home.mkdir()
        server, seen = load(prepared, home)
        assert Counter(server.log) == Counter((r["method"], r["url"]) for r in prepared.responses)
        assert [(e.url, e.failed) for e in seen.requests if e.failed] == []
