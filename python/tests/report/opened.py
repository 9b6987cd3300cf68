"""A report opened in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SHELL = Path("/usr/lib/chromium/chromium-headless-shell")


class Shown:
    """An opened report, with all complaints and requests of the browser."""

    def __init__(self, browser: Any, page: Path, **options: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 1000}, **options})
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(page.as_uri())
        for n in range(2):
            self.pane(n).locator(".rows .bar").first.wait_for()

    def pane(self, n: int) -> Any:
        return self.page.locator(".pane").nth(n)

    def point(self, n: int, row: int, x: int) -> tuple[float, float]:
        """The middle of a row of the waterfall, ``x`` pixels from its left edge."""
        rows = self.pane(n).locator(".rows")
        rows.scroll_into_view_if_needed()
        box = rows.bounding_box()
        return box["x"] + x, box["y"] + 15 * row + 7

    def choose(self, part: str, value: str, pane: int | None = None) -> None:
        place = self.page.locator("#board > .controls") if pane is None else self.pane(pane)
        place.locator(f'[data-part="{part}"]').select_option(value)
