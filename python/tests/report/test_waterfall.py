"""The waterfall's views and the film in a browser: what they show is what the traces say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import expect

from report.fixture import picture
from report.opened import SHELL, Shown
from wirepaint.results import Results
from wirepaint.statistics.wording import MINUS

pytestmark = pytest.mark.skipif(not SHELL.exists(), reason=f"{SHELL} is missing")


@pytest.fixture
def shown(browser: Any, page: Path) -> Any:
    opened = Shown(browser, page)
    yield opened
    opened.page.close()


def runs(shown: Shown) -> list[str]:
    """The run keys of both panes."""
    return [shown.pane(n).get_attribute("data-ready") for n in range(2)]


def objects(results: Results, key: str) -> list[dict[str, Any]]:
    """The requests of a run in the order of the waterfall, times in ms since the navigation."""
    start = results.trace(key, "page")["navigation_start"][0]
    frame = results.trace(key, "object").sort("queued", "sent", "request", nulls_last=True)
    return frame.with_columns((pl.col("sent", "first_byte", "last_byte") - start) / 1e6).to_dicts()


def press(shown: Shown, part: str, *keys: str) -> None:
    shown.page.locator(f'[data-part="{part}"]').first.focus()
    for key in keys:
        shown.page.keyboard.press(key)


def test_the_details_of_a_request_are_those_of_the_trace_in_both_panes(
    shown: Shown, results: Results
) -> None:
    shown.page.mouse.click(*shown.point(0, row=3, x=60))
    for n, key in enumerate(runs(shown)):
        details = shown.pane(n).locator(".details")
        first = objects(results, runs(shown)[0])[3]
        row = next(one for one in objects(results, key) if one["url"] == first["url"])
        text = details.inner_text()
        assert row["url"] in text
        assert f"#{row['connection']}" in text
        assert f"x-{row['type']}/y" in details.locator(".headers").text_content()
        assert "x-wirepaint-pad" not in details.text_content()
    shown.page.get_by_role("button", name="Close the details").first.click()
    assert shown.pane(0).locator(".details").is_hidden()


def test_connections_are_rows_of_their_own(shown: Shown, results: Results) -> None:
    shown.choose("view", "connections")
    for n, key in enumerate(runs(shown)):
        names = shown.pane(n).locator(".rows .name").all_text_contents()
        numbers = results.trace(key, "connection").sort("opened")["connection"].to_list()
        assert [int(name[1:].split()[0]) for name in names] == numbers
    press(shown, "rows", "Home", "ArrowDown")
    assert shown.pane(0).locator('[data-part="connection"]').input_value() == str(
        results.trace(runs(shown)[0], "connection").sort("opened")["connection"][1]
    )


def test_the_difference_says_how_much_later_each_request_ends(shown: Shown, results: Results) -> None:
    shown.choose("view", "difference")
    before, after = (objects(results, key) for key in runs(shown))
    ends = {row["url"]: row["last_byte"] for row in after}
    changes = [ends[row["url"]] - row["last_byte"] for row in before]
    told = shown.page.locator(".difference .change").all_text_contents()
    for text, change in zip(told, changes, strict=False):
        number = float(text.replace(MINUS, "-").replace("±", "").removesuffix("ms").removesuffix("s"))
        scale = 1 if text.endswith("ms") or text == "±0" else 1000
        assert number * scale == pytest.approx(change, abs=0.51 if scale == 1 else 6)
    summary = shown.page.locator('[data-part="summary"]').text_content()
    assert f"{len(before)} requests in both visits" in summary
    assert f"{sum(change < -1 for change in changes)} end earlier" in summary
    shown.page.locator('[data-part="order"]').select_option("change")
    first = shown.page.locator(".difference .name").first.text_content()
    largest = max(range(len(changes)), key=lambda n: abs(changes[n]))
    assert before[largest]["url"].rsplit("/", 1)[-1][-9:] in first
    press(shown, "difference-rows", "Home")
    assert before[largest]["url"] in shown.page.locator('[data-part="pair"]').inner_text()


def test_every_sampled_connection_has_a_small_window_that_can_be_chosen(
    shown: Shown, results: Results
) -> None:
    pane = shown.pane(0)
    pane.locator(".multiples summary").click()
    buttons = pane.locator(".multiples-grid button")
    sampled = results.trace(runs(shown)[0], "tcp").filter(pl.col("cwnd").is_not_null())["connection"]
    expect(buttons).to_have_count(sampled.n_unique())
    buttons.last.click()
    number = buttons.last.locator("b").text_content().split()[0][1:]
    assert pane.locator('[data-part="connection"]').input_value() == number
    assert buttons.last.get_attribute("aria-pressed") == "true"


def test_bytes_in_flight_of_all_connections_are_added_up(shown: Shown) -> None:
    flight = shown.page.evaluate(
        """sumInFlight({end: 800,
        connections: new Map([[1, {mss: 1000, last_byte: 30}], [2, {mss: 100, last_byte: 40}]]),
        tcp: {1: {time: [10, 20], in_flight: [2, 5]}, 2: {time: [15], in_flight: [7]}}})"""
    )
    assert flight == {"time": [10, 15, 20, 30, 40], "bytes": [2000, 2700, 5700, 700, 0]}


def test_a_level_is_drawn_to_its_last_sample(shown: Shown) -> None:
    drawn = shown.page.evaluate("steps([0, 10, 20, 30], [5, 5, 5, null], (t) => t, (v) => v, 40)")
    assert drawn == "M0.0,5.0H30.0"


def test_the_nth_request_of_an_address_is_matched_with_the_nth(shown: Shown) -> None:
    pairs = shown.page.evaluate(
        """(() => {
          const of = (...names) => ({objects: names.map((url, number) => ({url, method: "GET", number}))});
          const pairs = matched(of("a", "b", "a"), of("a", "a", "c"));
          return pairs.map(({a, b}) => [a?.number ?? null, b?.number ?? null]);
        })()"""
    )
    assert pairs == [[0, 0], [1, None], [2, 1], [None, 2]]


@pytest.mark.parametrize(
    ("type_", "priority", "initiator", "discovered", "blocks"),
    [
        ("css", "VeryHigh", "parser", 10, True),
        ("css", "Low", "parser", 10, False),
        ("js", "High", "parser", 10, True),
        ("js", "High", "script", 10, False),
        ("js", "Low", "parser", 10, False),
        ("css", "VeryHigh", "parser", 60, False),
        ("image", "High", "parser", 10, False),
    ],
)
def test_what_blocks_rendering_follows_from_type_and_priority(
    shown: Shown, type_: str, priority: str, initiator: str, discovered: int, blocks: bool
) -> None:
    request = {"type": type_, "priority": priority, "initiator_type": initiator, "discovered": discovered}
    assert shown.page.evaluate("one => blocksRendering(one, 50)", request) is blocks


def stretch(shown: Shown) -> tuple[float, float]:
    return tuple(shown.page.evaluate("[board.timeline.from, board.timeline.until]"))


def next_frame(shown: Shown) -> None:
    """Waits until what the pointer did has been handled and drawn."""
    shown.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_wheel_and_fingers_zoom_at_their_place(browser: Any, page: Path) -> None:
    shown = Shown(browser, page, has_touch=True)
    box = shown.pane(0).locator(".window").bounding_box()
    shown.pane(0).locator(".window").scroll_into_view_if_needed()
    box = shown.pane(0).locator(".window").bounding_box()
    x, y = box["x"] + 600, box["y"] + 60
    time = f"board.panes[0].timeAt({x})"
    whole, at = stretch(shown), shown.page.evaluate(time)
    shown.page.mouse.move(x, y)
    shown.page.keyboard.down("Control")
    shown.page.mouse.wheel(0, -120)
    shown.page.keyboard.up("Control")
    next_frame(shown)
    assert stretch(shown)[1] < whole[1]
    assert shown.page.evaluate(time) == pytest.approx(at, abs=0.5)
    narrow = stretch(shown)
    touch = shown.page.context.new_cdp_session(shown.page)
    fingers = [[(x - 20, y), (x + 20, y)], [(x - 60, y), (x + 60, y)]]
    for kind, points in zip(("touchStart", "touchMove"), fingers, strict=True):
        places = [{"x": a, "y": b, "id": n} for n, (a, b) in enumerate(points)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    next_frame(shown)
    assert stretch(shown)[1] - stretch(shown)[0] < (narrow[1] - narrow[0]) * 0.6
    assert shown.complaints == []


def test_keys_zoom_to_the_largest_paint_and_back(shown: Shown, results: Results) -> None:
    whole = stretch(shown)
    press(shown, "rows", "l")
    paints = []
    for key in runs(shown):
        row = results.trace(key, "page").row(0, named=True)
        paints.append((row["largest_contentful_paint"] - row["navigation_start"]) / 1e6)
    assert stretch(shown) == pytest.approx((0, min(max(paints) * 1.04, whole[1])), abs=0.1)
    press(shown, "rows", "+", "ArrowRight", "0")
    assert stretch(shown) == whole


def test_a_search_leaves_the_requests_that_match(shown: Shown, results: Results) -> None:
    press(shown, "rows", "/")
    shown.page.keyboard.type(".WOFF2")
    wanted = [row["url"] for row in objects(results, runs(shown)[0]) if ".woff2" in row["url"]]
    assert wanted
    expect(shown.pane(0).locator(".rows .name")).to_have_count(len(wanted))
    assert f"{len(wanted)} of " in shown.page.locator('[data-part="found"]').text_content()
    shown.page.keyboard.press("Enter")
    assert wanted[0] in shown.pane(0).locator(".details").inner_text()


def test_the_film_shows_the_frame_of_the_time_and_its_progress(shown: Shown, results: Results) -> None:
    film = shown.page.locator("#film-board[data-ready]")
    keys = film.get_attribute("data-ready").split()
    for key in keys:
        assert results.trace(key, "frame").height == 5
    slider = shown.page.locator('#film-board [data-part="time"]')
    screen = shown.page.locator('#film-board [data-part="screen-1"]')
    row = results.trace(keys[0], "page").row(0, named=True)
    first = (row["first_paint"] - row["navigation_start"]) / 1e6
    for share, filled in ((0.12, 0), (0.37, 0), (0.62, 2), (0.87, 3), (1.01, 4)):
        shown.page.evaluate("t => film.to(t)", math.ceil((first + 200 * share) / 10) * 10)
        assert screen.locator("img").get_attribute("src") == f"data:image/webp;base64,{picture(filled)}"
        assert f"{min(int(share * 4) * 25, 100)} %" in screen.locator("figcaption").text_content()
    shown.page.evaluate("film.to(0)")
    assert "nothing yet" in screen.locator("img").get_attribute("alt")
    slider.focus()
    shown.page.keyboard.press("ArrowRight")
    assert slider.input_value() == "100"
    shown.page.keyboard.press(" ")
    shown.page.locator('#film-board [data-part="play"]', has_text="Play").wait_for()  # it plays to its end
    assert slider.input_value() == slider.get_attribute("max")
    assert shown.page.locator('#film-board [data-part="play"]').text_content() == "Play"
    assert shown.page.locator("#film-board .film-line").count() == 2


@pytest.mark.parametrize("width", [420, 1200])
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("apart_ms", [0, 3, 40])
def test_no_two_names_of_marks_in_the_film_overlap(
    shown: Shown, width: int, place: float, apart_ms: int
) -> None:
    shown.page.set_viewport_size({"width": width, "height": 900})
    shown.page.locator("#film-board[data-ready]").wait_for()
    boxes = shown.page.evaluate(
        """([place, apart]) => {
          film.reels.forEach((reel, n) => {
            const first = place * (film.end - 4 * apart);
            reel.entry = { ...reel.entry, marks: { FCP: first + n * apart, LCP: first + (n + 2) * apart } };
          });
          film.draw();
          const frame = film.curve.getBoundingClientRect();
          return [...film.curve.querySelectorAll(".film-name")].map((text) => {
            const { left, top, right, bottom } = text.getBoundingClientRect();
            const room = [left - frame.left, top - frame.top, frame.right - right, frame.bottom - bottom];
            return [...room, left, top, right, bottom];
          });
        }""",
        [place, apart_ms],
    )
    assert len(boxes) == 4
    assert all(room >= 0 for box in boxes for room in box[:4]), "inside the curve's picture"
    for n, (*_, left, top, right, bottom) in enumerate(boxes):
        for *_, other_left, other_top, other_right, other_bottom in boxes[n + 1 :]:
            assert right <= other_left or other_right <= left or bottom <= other_top or other_bottom <= top, (
                boxes
            )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["requests", "connections", "difference"])
def test_axe_finds_nothing(browser: Any, page: Path, scheme: str, view: str) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    shown = Shown(browser, page, color_scheme=scheme)
    shown.choose("view", view)
    press(shown, "difference-rows" if view == "difference" else "rows", "Home", "ArrowDown")
    shown.page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text("utf-8"))
    parts = {"include": [["#waterfall"], ["#film"]]}
    found = shown.page.evaluate("parts => axe.run(parts, {resultTypes: ['violations']})", parts)
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    shown.page.close()


def test_without_scripts_tables_hold_the_visits_and_the_requests_of_the_first(
    browser: Any, page: Path, results: Results
) -> None:
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(page.as_uri())
    visits, requests = plain.locator("#waterfall noscript table").all()
    assert visits.locator("tbody tr").count() >= 12
    first = requests.locator("tbody tr").first.text_content()
    assert "https://" in first
    assert "ms" in first
    context.close()
