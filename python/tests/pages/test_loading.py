"""The causes of requests in the load graph."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest
from unrehearsed import unrehearsed

from wirepaint.pages import PreparedPage, model, prepare, shipped
from wirepaint.pages.loading import load_graph

VIEWPORT = (1280, 800)
HTML = """<!doctype html><html><head><link rel="stylesheet" href="/s.css">
<script>first()</script><script src="https://b.test/plain.js"></script>
<script defer src="/deferred.js" fetchpriority="low"></script><script async src="/async.js"></script>
<link rel="preload" as="font" href="https://b.test/f.woff2" crossorigin>
</head><body><img src="/a.png"><img loading="lazy" src="/later.png">
<div style="background-image: url('/hero.jpg')"></div>
<picture><source srcset="/small.webp, /large.webp 2x"><img src="/old.png"></picture>
<noscript><img src="/never.png"></noscript><iframe src="/frame.html"></iframe></body></html>"""
CSS = "@import '/more.css'; .x { background: url(/rule.png); font-family: Lora }"


def _prepared(tmp_path: Path, found: dict[str, tuple[str, str]], bodies: dict[str, str]) -> PreparedPage:
    """A page at a.test with recorded bodies; ``found``: type and recorded cause of each further address."""
    listed = {"https://a.test/": ("html", "navigation")} | found
    resources: list[dict[str, Any]] = []
    responses: list[dict[str, Any]] = []
    for number, (url, (kind, cause)) in enumerate(listed.items()):
        file = tmp_path / str(number)
        text = bodies.get(url, "")
        file.write_bytes(gzip.compress(text.encode()) if text else b"x")
        headers = [["content-encoding", "gzip"]] if text else []
        by = None if number == 0 else 0
        resources.append(
            {
                "id": number,
                "url": url,
                "type": kind,
                "headers": headers,
                "wire_bytes": file.stat().st_size,
                "decoded_bytes": len(text) or 1,
                "cause": {"by": by, "kind": cause, "after_ms": 7.0 if by == 0 else 0.0},
            }
        )
        responses.append({"method": "GET", "url": url, "status": 200, "headers": headers, "body": str(file)})
    origins = [("https", "a.test", 443), ("https", "b.test", 443)]
    return PreparedPage("page", "https://a.test/", origins, responses, resources)


@pytest.fixture
def graph(tmp_path: Path) -> dict[str, dict[str, Any]]:
    found = {
        "https://a.test/s.css": ("css", "parser"),
        "https://b.test/plain.js": ("js", "parser"),
        "https://a.test/deferred.js": ("js", "parser"),
        "https://a.test/async.js": ("js", "parser"),
        "https://b.test/f.woff2": ("font", "parser"),
        "https://a.test/a.png": ("image", "parser"),
        "https://a.test/later.png": ("image", "parser"),
        "https://a.test/hero.jpg": ("image", "parser"),
        "https://a.test/large.webp": ("image", "parser"),
        "https://a.test/never.png": ("image", "script"),
        "https://a.test/frame.html": ("html", "parser"),
        "https://a.test/more.css": ("css", "css"),
        "https://a.test/rule.png": ("image", "css"),
        "https://b.test/data.json": ("data", "script"),
    }
    prepared = _prepared(tmp_path, found, {"https://a.test/": HTML, "https://a.test/s.css": CSS})
    return {entry["url"]: entry for entry in load_graph(prepared, VIEWPORT)["resources"]}


def test_elements_are_found_where_they_stand(graph: dict[str, dict[str, Any]]) -> None:
    found = {
        url.rpartition("/")[2]: (cause["element"], HTML[cause["at"] :].split()[0].strip("<"))
        for url, entry in graph.items()
        if (cause := entry.get("cause")) and cause["kind"] == "markup"
    }
    assert found == {
        "s.css": ("stylesheet", "link"),
        "plain.js": ("script", "script"),
        "deferred.js": ("deferred_script", "script"),
        "async.js": ("async_script", "script"),
        "f.woff2": ("preload", "link"),
        "a.png": ("image", "img"),
        "later.png": ("lazy", "img"),
        "large.webp": ("image", "source"),
        "frame.html": ("frame", "iframe"),
    }


def test_the_body_and_scripts_in_the_text_are_found(graph: dict[str, dict[str, Any]]) -> None:
    document = graph["https://a.test/"]["document"]
    assert HTML[document["body_at"] :].startswith("<body>")
    (script,) = document["inline_scripts"]
    assert HTML[script:].startswith("<script>first()")


def test_elements_of_the_body_are_counted(graph: dict[str, dict[str, Any]]) -> None:
    document = graph["https://a.test/"]["document"]
    assert document["elements"] == 7, "neither those of the head nor what noscript hides"
    assert document["names_fonts"] is True


def test_what_stylesheets_name_is_imported_or_styled(graph: dict[str, dict[str, Any]]) -> None:
    sheet = list(graph).index("https://a.test/s.css")
    assert graph["https://a.test/more.css"]["cause"] == {"kind": "import", "by": sheet}
    assert graph["https://a.test/rule.png"]["cause"] == {"kind": "style", "by": sheet}
    assert graph["https://a.test/hero.jpg"]["cause"] == {"kind": "style", "by": 0}, "rules of one element"


def test_what_no_text_names_is_asked_for_by_a_script_as_recorded(graph: dict[str, dict[str, Any]]) -> None:
    assert graph["https://a.test/never.png"]["cause"] == {"kind": "script", "by": 0, "after_ns": 7_000_000}


def test_what_gzip_leaves_is_told_of_bodies_that_a_proxy_may_compress(tmp_path: Path) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"/>' * 9
    bodies = {"https://a.test/": HTML, "https://a.test/s.css": CSS, "https://a.test/a.svg": svg}
    kinds = {"s.css": "css", "a.svg": "image", "a.png": "image"}
    prepared = _prepared(
        tmp_path, {f"https://a.test/{name}": (k, "parser") for name, k in kinds.items()}, bodies
    )
    for number, headers in (
        (0, [["content-encoding", "identity"]]),
        (2, [["content-type", "image/svg+xml"]]),
    ):
        text = list(bodies.values())[number]
        (tmp_path / str(number)).write_text(text)
        prepared.resources[number] |= {"headers": headers, "wire_bytes": len(text)}
    told, untold = (
        [r.get("gzip_bytes") for r in load_graph(prepared, VIEWPORT, in_gzip=wanted)["resources"]]
        for wanted in (True, False)
    )
    html, vector = (len(gzip.compress(text.encode(), 6)) for text in (HTML, svg))
    assert (told, untold) == ([html, None, vector, None], [None] * 4)


def test_the_size_of_an_image_that_a_script_places_is_told(tmp_path: Path) -> None:
    noise = "".join(random.Random(1).choices("0123456789abcdef", k=9_000))
    picture = f'<svg width="900" height="600" xmlns="http://www.w3.org/2000/svg"><!--{noise}--></svg>'
    bodies = {"https://a.test/": "<p>Text</p><script>1</script>", "https://a.test/big.svg": picture}
    for cause, body, area in [("script", "", 540_000), ("parser", "<img src=/big.svg>", 0)]:
        page = {"https://a.test/": bodies["https://a.test/"] + body}
        prepared = _prepared(tmp_path, {"https://a.test/big.svg": ("image", cause)}, bodies | page)
        document, image = load_graph(prepared, VIEWPORT)["resources"]
        assert document["document"]["unplaced_area"] == area
        assert image.get("area", 0) == 540_000 - area


def test_requests_without_credentials_are_in_a_pool_of_their_own(graph: dict[str, dict[str, Any]]) -> None:
    pools = {url.rpartition("/")[2]: entry["pool"] for url, entry in graph.items()}
    assert {name for name, pool in pools.items() if pool} == {"f.woff2", "data.json"}


def test_the_word_of_the_page_on_urgency_is_passed_on(graph: dict[str, dict[str, Any]]) -> None:
    assert [url for url, entry in graph.items() if "urgent" in entry] == ["https://a.test/deferred.js"]
    assert graph["https://a.test/deferred.js"]["urgent"] is False


@pytest.mark.parametrize("name", shipped())
def test_every_request_of_a_shipped_page_has_a_cause_that_comes_first(name: str, tmp_path: Path) -> None:
    prepared = prepare(shipped()[name], tmp_path)
    built = load_graph(prepared, VIEWPORT)
    assert len(built["resources"]) == len(prepared.resources)
    assert "cause" not in built["resources"][0]
    for number, entry in enumerate(built["resources"][1:], 1):
        assert 0 <= entry["cause"]["by"] < number
        origin = built["origins"][entry["origin"]]
        assert entry["url"].startswith(f"{'https' if origin['encrypted'] else 'http'}://{origin['host']}")


def test_a_synthesised_page_is_asked_for_by_its_elements_and_its_driver(tmp_path: Path) -> None:
    built = load_graph(prepare(unrehearsed("blog-small", tmp_path), tmp_path), VIEWPORT)["resources"]
    assert built[4]["cause"]["element"] == "stylesheet"
    assert built[1]["cause"]["element"] == "async_script"
    driven = built[11]["cause"]
    assert (driven["kind"], driven["by"], driven["after_ns"]) == ("script", 1, 2_000_000)
    assert built[0]["document"]["inline_scripts"], "the driver stands in the text"
    assert built[2]["inline_box"] == {"width": 300, "height": 225, "margin": 2, "reserved": True}
    assert built[21]["inline_box"] == {"width": 106, "height": 79, "margin": 2, "reserved": False}
    document = built[0]["document"]
    # As Chromium says of the text, and of the first image: 2 pixels below the line's top.
    assert abs(document["text_area"] - 48_633) < 3_000
    assert document["flow"]["top"] == 148


def test_what_the_driver_fetches_is_urgent_unless_it_says_otherwise(tmp_path: Path) -> None:
    built = load_graph(prepare(unrehearsed("travel-large", tmp_path), tmp_path), VIEWPORT)["resources"]
    fetched = [
        (entry["type"], entry["urgent"]) for entry in built if "urgent" in entry and entry["type"] != "js"
    ]
    assert set(fetched) == {("data", True), ("other", True), ("data", False)}


@pytest.mark.parametrize(
    ("name", "image", "area", "text_area"),
    [("kit", "bg2.jpg", 921_600, 28_650), ("agency", "header-bg.jpg", 953_600, 66_880)],
)
def test_the_largest_element_of_a_recorded_page_is_chromiums(
    name: str, image: str, area: int, text_area: int, tmp_path: Path
) -> None:
    built = load_graph(prepare(shipped()[name], tmp_path), VIEWPORT)["resources"]
    largest = max(built, key=lambda entry: entry.get("area", 0))
    assert largest["url"].endswith(image)
    assert largest["area"] == pytest.approx(area, rel=0.2)
    assert built[0]["document"]["text_area"] == pytest.approx(text_area, rel=0.2)


def test_the_graph_says_how_fast_the_machine_was_that_rehearsed_the_page(tmp_path: Path) -> None:
    rehearsal = model.load(shipped()["kit"]).rehearsal
    assert rehearsal is not None and rehearsal.processor_ms is not None
    built = load_graph(prepare(shipped()["kit"], tmp_path), VIEWPORT)
    assert built["processor_ns"] == rehearsal.processor_ms * 1e6
    assert "processor_ns" not in load_graph(prepare(unrehearsed("kit", tmp_path), tmp_path), VIEWPORT)


def test_a_background_that_fills_the_view_port_is_no_candidate(tmp_path: Path) -> None:
    built = load_graph(prepare(shipped()["photos"], tmp_path), VIEWPORT)["resources"]
    (entry,) = (entry for entry in built if entry["url"].endswith("bg-masthead.jpg"))
    assert (entry["in_viewport"], entry["area"]) == (True, 0)


def test_modules_are_imported_and_what_a_classic_script_says_of_imports_is_none(tmp_path: Path) -> None:
    html = """<head><script type="importmap">{"imports": {"kit": "/kit.js"}}</script>
<script type=module src=/main.js></script><script src=/classic.js></script></head><body>"""
    bodies = {
        "https://a.test/": html,
        "https://a.test/main.js": 'import {a} from "kit"; import "./side.js"; import("./later.js")',
        "https://a.test/kit.js": 'export * from "./side.js"',
        "https://a.test/side.js": "1",
        "https://a.test/classic.js": """text = 'import "./later.js"'""",
    }
    found = {
        "https://a.test/main.js": ("js", "parser"),
        "https://a.test/classic.js": ("js", "parser"),
        "https://a.test/kit.js": ("js", "script"),
        "https://a.test/side.js": ("js", "script"),
        "https://a.test/later.js": ("js", "script"),
    }
    built = load_graph(_prepared(tmp_path, found, bodies), VIEWPORT)["resources"]
    entries = {entry["url"].rpartition("/")[2]: entry for entry in built}
    assert entries["kit.js"]["cause"] == {"kind": "import", "by": 1}
    assert entries["side.js"]["cause"] == {"kind": "import", "by": 1}
    assert entries["side.js"]["also"] == [3]
    assert entries["later.js"]["cause"]["kind"] == "script"
