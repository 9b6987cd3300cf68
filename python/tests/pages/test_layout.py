"""The estimated first view port of a recorded document."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from wirepaint.pages.layout import Layout, Picture, Styles, counted
from wirepaint.pages.pictures import natural_size

VIEWPORT = (1280, 800)
BASE = "https://a.test/"
BYTES = 500_000


def _shown(body: str, css: str = "", natural: tuple[float, float] | None = (2000.0, 1500.0)) -> Layout:
    """Lays a document out in which every image has the number in its name as resource."""
    styles = Styles(VIEWPORT)
    styles.add(css, BASE)

    def find(url: str) -> Picture | None:
        name = url.rpartition("/")[2].partition(".")[0]
        return Picture(int(name), natural, BYTES) if name.isdecimal() else None

    layout = Layout(BASE, styles, VIEWPORT, find)
    layout.read(f"<html><head><title>not shown</title></head><body>{body}</body></html>")
    return layout


def _areas(
    body: str, css: str = "", natural: tuple[float, float] | None = (2000.0, 1500.0)
) -> dict[int, int]:
    return {number: shown.area for number, shown in _shown(body, css, natural).estimate.images.items()}


def test_an_image_has_the_size_that_its_element_states_or_its_own() -> None:
    assert _areas("<img src=1.png width=300 height=200>") == {1: 60_000}
    assert _areas("<img src=1.png width=400>") == {1: 400 * 300}, "the other side by its own proportion"
    assert _areas("<img src=1.png>", natural=(640.0, 480.0)) == {1: 640 * 480}
    assert _areas("<img class=wide src=1.png>", ".wide { width: 50% }") == {1: 640 * 480}


def test_of_several_files_the_one_that_the_page_holds_counts() -> None:
    picture = (
        '<picture><source srcset="none.webp, 2.webp 2x"><img src=none.png width=300 height=200></picture>'
    )
    assert _areas(picture + '<img srcset="none.png 1x, 3.png 2x" width=100 height=100>') == {
        2: 60_000,
        3: 10_000,
    }


def test_only_the_part_in_the_view_port_counts_and_never_more_than_the_file_holds() -> None:
    assert _areas('<div style="height:700px"></div><img src=1.png width=400 height=300>') == {1: 400 * 100}
    below = _shown('<div style="height:900px"></div><img src=1.png width=400 height=300>').estimate.images[1]
    assert (below.visible, below.area) == (False, 0)
    assert _areas("<img src=1.png width=600 height=600>", natural=(60.0, 60.0)) == {1: 3_600}


def test_backgrounds_cover_the_box_of_their_element() -> None:
    css = """.doc .hero { height: 50vh } .hero { background: url(1.jpg) no-repeat; height: 100vh }
    @media (max-width: 600px) { .hero { height: 10px } } @media print { .hero { display: none } }"""
    assert _areas("<div class=doc><div class=hero><p>Text</p></div></div>", css) == {1: 1280 * 400}
    assert _areas("<div class=hero></div>", css) == {1: 0}, "the whole view port is a backdrop"
    padded = ".top { padding: 100px 0 60px; background-image: url(2.jpg) }"
    assert _areas("<div class=top></div>", padded) == {2: 1280 * 160}
    assert _areas("<div style=\"height:90px;background:url('3.jpg')\"></div>") == {3: 1280 * 90}
    assert _areas("<div class=none></div>", css) == {}


@pytest.mark.parametrize(
    "hiding", ["display:none", "visibility:hidden", "opacity:0"], ids=["display", "visibility", "opacity"]
)
def test_what_is_hidden_does_not_count(hiding: str) -> None:
    layout = _shown(f'<div style="{hiding}"><p>Some text</p><img src=1.png width=300 height=200></div>')
    assert layout.estimate.text_area == 0
    assert not any(shown.visible or shown.area for shown in layout.estimate.images.values())


def test_what_lies_over_the_page_and_beside_others_takes_no_height() -> None:
    image = "<img src=1.png width=400 height=300>"
    assert _areas(f'<nav style="position:fixed;height:700px"></nav>{image}') == {1: 120_000}
    row = '<div style="display:flex"><div style="height:600px"></div><div style="height:700px"></div></div>'
    assert _areas(row + image) == {1: 400 * 100}


def test_the_largest_text_is_that_of_one_block() -> None:
    text = "x" * 100
    small = _shown(f"<p>{text}</p><p>{text}</p>").estimate.text_area
    assert small == pytest.approx(100 * 0.48 * 16 * 1.2 * 16, abs=1)
    assert _shown(f"<p>{text} <b>{text}</b></p>").estimate.text_area == pytest.approx(2 * small, rel=0.02)
    assert _shown(f"<h1>{text}</h1>").estimate.text_area == pytest.approx(4 * small, rel=0.02)
    assert _shown(f"<p class=l>{text}</p>", ".l{font-size:2rem}").estimate.text_area == pytest.approx(
        4 * small, rel=0.02
    )
    assert _shown(f'<div style="height:900px"></div><p>{text}</p>').estimate.text_area == 0


@pytest.mark.parametrize(
    ("css", "named"),
    [
        (".x { color: red; font-family: Lora, serif }", True),
        ("p{font:12px/1 Lora}", True),
        ("@font-face { font-family: Lora; src: url(l.woff2) } p { font-size: 2em; font-weight: 700 }", False),
    ],
)
def test_rules_that_name_fonts_are_known(css: str, named: bool) -> None:
    styles = Styles(VIEWPORT)
    styles.add(css, BASE)
    assert styles.names_fonts is named


def test_placeholders_do_not_count() -> None:
    assert counted(100_000, None, 600, VIEWPORT) == 0
    assert counted(100_000, None, 700, VIEWPORT) == 100_000


def test_the_natural_size_is_that_of_the_file() -> None:
    png = io.BytesIO()
    Image.new("L", (30, 20)).save(png, "png")
    assert natural_size(png.getvalue()) == (30, 20)
    assert natural_size(b'<svg width="40px" height="10" xmlns="http://www.w3.org/2000/svg"/>') == (40, 10)
    assert natural_size(b'<?xml version="1.0"?><svg viewBox="0 0 64 32"></svg>') == (64, 32)
    assert natural_size(b"nothing") is None
