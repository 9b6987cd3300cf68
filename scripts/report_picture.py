"""Makes docs/report.png of a report: the answer, its overview, the film and the waterfall of one visit.

.venv/bin/python scripts/report_picture.py results/demo/report.html docs/report.png
"""

import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

SHELL = "/usr/lib/chromium/chromium-headless-shell"
WIDTH, COLOURS = 1_000, 128
LEFT_OUT = """
main > section:not(#overview, #film, #waterfall), main > details, footer, nav,
.pane ~ .pane, .pane ~ *, section > details { display: none }
"""

report, picture = sys.argv[1:]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=SHELL, args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": WIDTH, "height": 900})
    page.goto(Path(report).absolute().as_uri())
    page.locator("#film-board[data-ready]").wait_for()
    page.locator(".pane[data-ready]").first.wait_for()
    page.add_style_tag(content=LEFT_OUT)
    shot = Image.open(io.BytesIO(page.screenshot(full_page=True)))
    browser.close()
shot.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)
