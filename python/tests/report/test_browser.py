"""The report in a browser: it draws, answers to the reader, and complains about nothing."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from report.opened import SHELL, Shown

pytestmark = pytest.mark.skipif(not SHELL.exists(), reason=f"{SHELL} is missing")


def different_lines(png: bytes) -> int:
    """Number of different lines of pixels in a screenshot; a blank one has one or two."""
    width, height = struct.unpack(">II", png[16:24])
    channels = {2: 3, 6: 4}[png[25]]
    data, position = b"", 8
    while position < len(png):
        length, kind = struct.unpack(">I4s", png[position : position + 8])
        data += png[position + 8 : position + 8 + length] if kind == b"IDAT" else b""
        position += 12 + length
    raw = zlib.decompress(data)
    stride = width * channels + 1
    return len({raw[row * stride : (row + 1) * stride] for row in range(height)})


@pytest.fixture(scope="module")
def shown(browser: Any, page: Path) -> Shown:
    return Shown(browser, page)


def test_the_browser_complains_about_nothing_and_asks_for_nothing_else(shown: Shown, page: Path) -> None:
    assert shown.complaints == []
    assert shown.requests == [page.as_uri()]


def test_the_waterfall_and_the_window_are_drawn(shown: Shown) -> None:
    for n in range(2):
        pane = shown.pane(n)
        assert pane.locator(".bar .receive").get_attribute("d").count("M") > 20
        assert pane.locator(".plot path.cwnd").get_attribute("d").startswith("M")
        assert different_lines(pane.locator(".rows").screenshot()) > 20
        assert different_lines(pane.locator(".window").screenshot()) > 20


def test_both_panes_share_one_time_axis(shown: Shown) -> None:
    ticks = [shown.pane(n).locator(".axis .tick").all_text_contents() for n in range(2)]
    assert ticks[0] == ticks[1]
    positions = [shown.pane(n).locator(".axis .tick").nth(2).get_attribute("x") for n in range(2)]
    assert positions[0] == positions[1]


def test_a_page_and_a_scenario_can_be_chosen(shown: Shown) -> None:
    shown.choose("page", "news-front")
    shown.choose("scenario", "3g-fld-h2", pane=1)
    shown.page.locator('.pane[data-ready^="3g-fld-h2.user.news-front"]').wait_for()
    rows = shown.pane(1).locator(".rows")
    rows.focus()
    shown.page.keyboard.press("End")
    assert rows.locator(".back.selected").get_attribute("data-row") == "117"
    assert rows.locator(".name").count() < 60  # only those in sight are in the document
    shown.page.keyboard.press("Home")


def test_a_click_on_a_row_shows_the_window_of_its_connection_in_both_panes(shown: Shown) -> None:
    shown.page.mouse.click(*shown.point(0, row=4, x=60))
    hosts = [shown.pane(n).locator('[data-part="facts"]').text_content().split(" · ")[0] for n in range(2)]
    named = shown.pane(0).locator(".name").nth(4).text_content()
    assert hosts[0] == hosts[1]
    assert named.endswith(hosts[0])


def test_hovering_tells_the_details_and_the_values_at_that_time(shown: Shown) -> None:
    shown.page.mouse.move(*shown.point(0, row=0, x=700))
    assert re.match(r"https://www\.[\w-]+\.example/", shown.page.locator("#tip").text_content())
    for n in range(2):
        assert "window" in shown.pane(n).locator('[data-part="readout"]').text_content()


def test_dragging_zooms_and_the_button_shows_everything_again(shown: Shown) -> None:
    before = shown.pane(0).locator(".axis .tick").all_text_contents()
    shown.pane(0).locator(".window").scroll_into_view_if_needed()
    box = shown.pane(0).locator(".window").bounding_box()
    shown.page.mouse.move(box["x"] + 400, box["y"] + 40)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + 500, box["y"] + 40, steps=4)
    shown.page.mouse.up()
    assert shown.pane(1).locator(".axis .tick").all_text_contents() != before
    shown.page.locator('[data-part="zoom-all"]').click()
    assert shown.pane(1).locator(".axis .tick").all_text_contents() == before


def test_the_keyboard_walks_through_the_requests(shown: Shown) -> None:
    shown.pane(0).locator(".rows").focus()
    shown.page.keyboard.press("Home")
    shown.page.keyboard.press("ArrowDown")
    assert shown.pane(0).locator(".back.selected").get_attribute("data-row") == "1"
    shown.page.keyboard.press("Escape")
    assert shown.page.locator("#tip").is_hidden()


def test_the_table_of_runs_can_be_filtered(shown: Shown) -> None:
    shown.page.locator("form[data-table] select").select_option("invalid")
    rows = shown.page.locator("#run-table tbody tr:visible")
    assert rows.count() == 1
    assert "bbr" in rows.first.text_content()
    shown.page.locator("form[data-table] select").select_option("")
    shown.page.locator("form[data-table] input").fill("signal 11")
    assert rows.count() == 1


def test_the_page_draws_the_distribution_of_the_metric_and_the_factor_that_are_chosen(shown: Shown) -> None:
    explorer = shown.page.locator("#explorer")
    panels = explorer.locator(".panel svg")
    assert panels.count() == 6, "three pages on two networks"
    told = panels.first.get_attribute("aria-label")
    assert "CUBIC median" in told and "FLD_TCP median" in told
    explorer.get_by_label("Metric").select_option(label="First contentful paint")
    assert "First contentful paint; lower is better. 57 visits." in explorer.text_content()
    explorer.get_by_label("Compare").select_option(label="network")
    assert "lte median" in panels.first.get_attribute("aria-label")
    explorer.get_by_label("Drawn as").select_option(label="cumulative curves")
    assert explorer.locator("path.curve").count() >= 6


@pytest.mark.parametrize("options", [{"color_scheme": "dark"}, {"viewport": {"width": 420, "height": 900}}])
def test_dark_and_narrow_it_fits_the_window(browser: Any, page: Path, options: dict[str, Any]) -> None:
    shown = Shown(browser, page, **options)
    width = shown.page.evaluate("document.documentElement.scrollWidth")
    assert width <= shown.page.viewport_size["width"]
    assert shown.complaints == []


def test_on_a_phone_verdict_and_difference_are_in_sight(browser: Any, page: Path) -> None:
    shown = Shown(browser, page, viewport={"width": 390, "height": 844})
    for table in ("#factor-congestion table.verdicts", "#overview table.map"):
        box = shown.page.locator(table).first
        assert box.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")
    for cell in (".verdict-cell", ".difference-cell"):
        found = shown.page.locator(f"#factor-congestion {cell}").first.bounding_box()
        assert found["x"] >= 0 and found["x"] + found["width"] <= 390
    assert shown.page.locator("#factor-congestion tbody.pages").first.is_hidden(), "until unfolded"


def test_plots_fill_the_width_of_the_page(browser: Any, page: Path) -> None:
    shown = Shown(browser, page)
    explorer = shown.page.locator("#explorer")
    rights = explorer.locator(".panel svg").evaluate_all(
        "all => all.map((e) => e.getBoundingClientRect().right)"
    )
    edge = explorer.evaluate("e => e.getBoundingClientRect().right")
    assert max(rights) == pytest.approx(edge, abs=4)
    for axis in ("network", "page"):
        explorer.locator("label", has_text=re.compile(f"^{axis}")).locator("select").select_option(index=1)
    [only] = explorer.locator(".panel svg").all()
    assert only.bounding_box()["width"] > 1000


def test_hostile_urls_are_shown_as_text_and_run_nothing(browser: Any, hostile_page: Path) -> None:
    shown = Shown(browser, hostile_page)
    shown.choose("page", "museum")
    shown.page.locator('.pane[data-ready*="museum"]').first.wait_for()
    shown.page.mouse.move(*shown.point(0, row=1, x=500))
    assert "<img src=x onerror" in shown.page.locator("#tip").text_content()
    assert shown.page.evaluate("window.hacked") is None
    assert shown.complaints == []
