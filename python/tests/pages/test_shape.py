"""A shape made from rehearsals makes the same requests as the bodies, in the same way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from wirepaint.pages import PreparedPage, anonymise, load, prepare
from wirepaint.pages.import_har import store
from wirepaint.pages.loading import load_graph
from wirepaint.pages.model import BODIES, Cause, Page, Rehearsal, Rehearsed, Resource, save_index
from wirepaint.pages.shape import NOTE, shaped

VIEWPORT = (1280, 800)
FILLER = "<p>words</p>" * 200
HEAD = f"""<!doctype html><html><head><meta name="x" content="{"m" * 6000}">
<link rel="stylesheet" href="/s.css"><script>first()</script>
<script src="https://b.test/plain.js" crossorigin></script>
<script defer src="/deferred.js" fetchpriority="low"></script><script async src="/async.js"></script>
<style>.hero {{ background: url(/hero.jpg) }}</style></head><body>{FILLER}"""
HTML = f"""{HEAD}<img src="/a.png">{FILLER}<img loading="lazy" src="/later.png">
<script src="/gone.js"></script>
<iframe src="/frame.html"></iframe>{FILLER}</body></html>"""
CSS = "@import '/more.css'; .x { background: url(/rule.png) } /*" + "c" * 2000 + "*/"
JS = "work();/*" + "j" * 3000 + "*/"


class Maker:
    """Writes a page with recorded bodies, resource by resource."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / BODIES).mkdir(parents=True)
        self.resources: list[Resource] = []

    def add(self, path: str, kind: Any, text: str = "x" * 50, by: int | None = 0, **more: Any) -> int:
        url = path if path.startswith("http") else f"https://a.test{path}"
        number = len(self.resources)
        size = 0 if more.get("stand_in") else len(text)
        rehearsed = {"asked": 1, "start_ms": float(number), **more.pop("rehearsed", {})}
        self.resources.append(
            Resource(
                id=number,
                url=url,
                headers=[
                    ("content-type", more.pop("mime", "text/plain")),
                    ("content-security-policy", "default-src 'none'"),
                ],
                body=store(self._folder, text.encode()) if size else None,
                type=kind,
                wire_bytes=size,
                decoded_bytes=size,
                cause=Cause(by=by, kind="navigation" if by is None else "other"),
                rehearsed=Rehearsed(**rehearsed) if rehearsed["asked"] else None,
                **more,
            )
        )
        return number

    def shape(self, change: Any = None) -> tuple[Page, PreparedPage]:
        found = Rehearsal(browser="b", maker="1", loads=9, seconds=1, verdict="replays")
        page = Page(name="page", url=self.resources[0].url, resources=self.resources, rehearsal=found)
        save_index(page, self._folder)
        cache = self._folder.parent / "cache"
        made = shaped(page, prepare(self._folder, cache), VIEWPORT)
        made = change(made) if change else made
        out = self._folder.parent / "shape"
        out.mkdir(exist_ok=True)
        save_index(made, out)
        return load(out), prepare(out, cache)


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    made = Maker(tmp_path / "page")
    made.add("/", "html", HTML, None, rehearsed={"compute_ms": 60.0, "inline_ms": [8.0], "callbacks_ms": 3.0})
    made.add("/s.css", "css", CSS)
    made.add("https://b.test/plain.js", "js", JS, rehearsed={"compute_ms": 21.3})
    made.add("/deferred.js", "js", JS, rehearsed={"compute_ms": 0.2})
    made.add("/async.js", "js", "go()")
    made.add("/a.png", "image")
    made.add("/later.png", "image")
    made.add("/gone.js", "js", status=404, stand_in=True)
    made.add("/frame.html", "html", "<body>frame" + "f" * 500)
    made.add("/hero.jpg", "image")
    made.add("/more.css", "css")
    made.add("/rule.png", "image")
    return made


def _texts(prepared: PreparedPage) -> dict[str, str]:
    return {r["url"]: Path(r["body"]).read_text("latin-1") for r in prepared.responses if r["body"]}


def _graph(prepared: PreparedPage) -> dict[str, dict[str, Any]]:
    return {
        each["url"].removeprefix("https://a.test"): each
        for each in load_graph(prepared, VIEWPORT)["resources"]
    }


def test_elements_stand_where_they_stood_and_are_of_the_same_kind(maker: Maker) -> None:
    page, prepared = maker.shape()
    text = _texts(prepared)["https://a.test/"]
    assert len(text) == len(HTML)
    for element in (
        '<link rel="stylesheet" href="https://a.test/s.css">',
        '<script src="https://b.test/plain.js" crossorigin></script>',
        '<script defer src="https://a.test/deferred.js" fetchpriority="low"></script>',
        '<script async src="https://a.test/async.js"></script>',
        '<iframe src="https://a.test/frame.html"></iframe>',
        '<script src="https://a.test/gone.js"></script>',
    ):
        assert element in text
    for there, here in (("/a.png", 'img src="https://a.test/a.png'), ("/gone.js", "https://a.test/gone.js")):
        assert abs(text.index(here) - HTML.index(there)) < 600
    graph = _graph(prepared)
    elements = {url: each["cause"].get("element") for url, each in graph.items() if "cause" in each}
    assert elements["https://b.test/plain.js"] == "script"
    assert elements["/deferred.js"] == "deferred_script"
    assert elements["/later.png"] == "lazy"
    assert graph["/gone.js"]["status"] == 404
    assert graph["/"]["document"]["elements"] >= 600
    assert page.notes == [NOTE]


def test_a_document_that_led_on_by_a_script_redirects(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "page")
    maker.add("/", "html", "<script>location.replace('https://b.test/own')</script>", None)
    maker.add("https://b.test/own", "html", HTML)
    maker.resources[1].cause = Cause(by=0, kind="redirect")
    page, prepared = maker.shape()
    assert [resource.status for resource in page.resources] == [302, 200]
    assert ("location", "https://b.test/own") in page.resources[0].headers
    assert page.resources[0].outline is None
    assert page.resources[1].outline is not None
    own = load_graph(prepared, VIEWPORT)["resources"][1]
    assert own["cause"] == {"kind": "redirect", "by": 0}


def test_a_media_query_that_held_makes_a_stylesheet_block(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "page")
    queries = ("screen, tv", "tv")
    sheets = [f'<link rel="stylesheet" media="{query}" href="/{n}.css">' for n, query in enumerate(queries)]
    maker.add("/", "html", f"<head>{''.join(sheets)}</head><body>{FILLER}{FILLER}", None)
    maker.add("/0.css", "css", CSS, rehearsed={"priority": "VeryHigh"})
    maker.add("/1.css", "css", CSS, rehearsed={"priority": "VeryLow"})
    graph = _graph(maker.shape()[1])
    assert graph["/0.css"]["cause"]["element"] == "stylesheet"
    assert graph["/1.css"]["cause"]["element"] == "other"


def test_an_image_is_large_enough_for_its_priority(maker: Maker) -> None:
    maker.resources[5].rehearsed = Rehearsed(asked=1, start_ms=5, priority="Medium")
    _, prepared = maker.shape()
    text = _texts(prepared)["https://a.test/"]
    assert '<img src="https://a.test/a.png" width="120" height="120" alt="">' in text


def test_an_answer_to_a_posted_form_may_be_read(maker: Maker) -> None:
    maker.add("https://b.test/form", "html", by=2, method="POST", rehearsed={"by": [2]})
    _, prepared = maker.shape()
    answer = next(r for r in prepared.responses if r["method"] == "POST")
    assert ["access-control-allow-origin", "*"] in [list(header) for header in answer["headers"]]


def test_stylesheets_and_styles_in_a_document_use_what_they_used(maker: Maker) -> None:
    _, prepared = maker.shape()
    graph = _graph(prepared)
    assert graph["/rule.png"]["cause"] == {"kind": "style", "by": 1}
    assert graph["/more.css"]["cause"] == {"kind": "import", "by": 1}
    assert graph["/hero.jpg"]["cause"] == {"kind": "style", "by": 0}


def test_bodies_and_what_restricts_other_bodies_are_gone(maker: Maker) -> None:
    maker.add("/never.png", "image", rehearsed={"asked": 0.1})
    page, prepared = maker.shape()
    assert not any(resource.body or resource.stand_in for resource in page.resources)
    assert not any("security" in name for resource in page.resources for name, _ in resource.headers)
    assert "https://a.test/never.png" not in {resource.url for resource in page.resources}
    plain = next(r for r in prepared.responses if r["url"] == "https://b.test/plain.js")
    assert ["access-control-allow-origin", "*"] in [list(header) for header in plain["headers"]]


def test_scripts_compute_as_long_as_they_did(maker: Maker) -> None:
    _, prepared = maker.shape()
    texts = _texts(prepared)
    assert texts["https://b.test/plain.js"].startswith("_w([],21.3);/*")
    assert texts["https://a.test/deferred.js"].startswith("/*")
    assert "<script>_w.burn(8.0)</script>" in texts["https://a.test/"]
    assert "_w.ready(3.0)" in texts["https://a.test/"]
    assert re.search(r"_w\.lay\(\d\d\.\d\)", texts["https://a.test/"])
    assert _graph(prepared)["https://b.test/plain.js"]["compute_ns"] > 21_300_000


def test_a_request_waits_for_a_set_a_delay_and_an_event(maker: Maker) -> None:
    later = {"by": [2, 1, 0], "after_ms": 31.4}
    maker.add("/set.png", "image", "i" * 900, rehearsed=later)
    maker.add("/ready.json", "data", rehearsed={"by": [4], "after": "content_loaded", "load": "either"})
    maker.add("/last.json", "data", rehearsed={"by": [0], "after": "load", "after_ms": 12.0, "load": "after"})
    maker.add("/then.json", "data", rehearsed={"by": [13, 5], "after_ms": 3.0})
    page, prepared = maker.shape()
    texts, graph = _texts(prepared), _graph(prepared)
    asked = json.loads(re.match(r"_w\((\[.*\]),[\d.]+\);/\*", texts["https://b.test/plain.js"])[1])  # pyright: ignore
    assert asked == [["i", "https://a.test/set.png", 31, 1, ["https://a.test/s.css", ""]]]
    assert 'w.table[4]=[[["d","https://a.test/ready.json",0,2],' in texts["https://a.test/"]
    assert '["d","https://a.test/last.json",12,4]' in texts["https://a.test/"]
    both = '["https://a.test/ready.json","https://a.test/a.png"]'
    assert (
        f'["d","https://a.test/then.json",3,1,{both}]'
        in texts["https://a.test/"] + texts["https://a.test/async.js"]
    )
    numbers = {resource.url.removeprefix("https://a.test"): resource.id for resource in page.resources}
    assert graph["/set.png"]["cause"] == {"kind": "script", "by": 2, "after_ns": 31_400_000}
    assert graph["/set.png"]["also"] == [1, 0]
    assert graph["/ready.json"]["after_content_loaded"]
    assert graph["/ready.json"]["holds_load"] == "asked"
    assert graph["/last.json"]["after_load"]
    assert graph["/then.json"]["cause"]["by"] == numbers["/ready.json"]


def test_what_a_document_says_comes_before_what_was_fitted(maker: Maker) -> None:
    maker.resources[5].rehearsed = Rehearsed(asked=1, start_ms=5, by=[1, 2], after_ms=50)
    maker.resources[11].rehearsed = Rehearsed(asked=1, start_ms=11, by=[1, 2], after_ms=50)
    _, prepared = maker.shape()
    graph = _graph(prepared)
    assert graph["/a.png"]["cause"]["kind"] == "markup"
    assert graph["/rule.png"]["cause"]["kind"] == "style"


def test_a_style_that_scripts_and_data_lead_to_is_asked_for_by_the_driver(maker: Maker) -> None:
    maker.add("/data.json", "data", rehearsed={"by": [2], "start_ms": 10.5})
    maker.resources[11].rehearsed = Rehearsed(asked=1, start_ms=20, by=[12], after_ms=5)
    _, prepared = maker.shape()
    assert _graph(prepared)["/rule.png"]["cause"]["kind"] == "script"


def test_a_shape_can_be_made_anonymous(maker: Maker) -> None:
    _, prepared = maker.shape(anonymise)
    text = _texts(prepared)[prepared.url]
    assert "a.test" not in text
    assert len(text) == len(HTML)
    kinds = [each["cause"].get("element") for each in _graph(prepared).values() if "cause" in each]
    assert kinds.count("script") == 2


def test_a_small_document_grows_rather_than_lose_what_it_asks_for(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "page")
    maker.add("/", "html", '<img src="/a.png">', None)
    maker.add("/a.png", "image")
    _, prepared = maker.shape()
    assert _graph(prepared)["/a.png"]["cause"]["element"] == "image"
    assert prepared.resources[0]["residual_bytes"] > 0
