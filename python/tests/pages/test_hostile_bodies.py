"""The time of an import, and of reading the page to load it, grows with the length of bodies alone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from recording import entry, write

from wirepaint.pages import import_har, prepare
from wirepaint.pages.loading import load_graph

BASE = "https://site.test/"
HTML = [
    "<a ", "<!--", "<script>", "<script ", '<a href="', "<", "</", "<?", "<a><a></b>", "<style>a{",
    '<img srcset=",,', "<svg><title/>", "<p style='a:url(", "<img src=a>", "<template>", "&#9999",
]  # fmt: skip
CSS = [
    "a{b:url(", "url(", 'url("', "/*", '@import "', "a{", "{", "a{b:c;", "@media x{;", ";", "a ", "(",
    "font ", ".x{width:1px}", "a{b:(;",
]  # fmt: skip
JS = ["import ", "export ", "import{", "import {a} from ", "import(", "new Worker(", 'import "', "new URL("]
SHORT, FACTOR = 10_000, 16
WORST = 64.0
"""Sixteen times the length takes 16 times as long when it is linear, 256 times when it is quadratic."""
_NOTHING = 1.0
"""Seconds below which a quotient would say more of the machine than of the code."""


def spent(folder: Path, kind: str, body: str) -> float:
    """Processor time of an import and of reading the page."""
    if kind == "html":
        entries = [entry(BASE, text=f"<html><body>{body}"), entry(BASE + "a", at=60, mime="image/png")]
    elif kind == "js":
        named = "<script type=module src=s.js></script><body>"
        entries = [
            entry(BASE, text=named),
            entry(BASE + "s.js", at=60, mime="text/javascript", text=body),
        ]
    else:
        named = "<link rel=stylesheet href=s.css><body><a class=x>t</a>"
        entries = [entry(BASE, text=named), entry(BASE + "s.css", at=60, mime="text/css", text=body)]
    path = write(folder, *entries)
    start = time.process_time()
    import_har(path, folder / "page", sizes_only=None)
    import_har(path, folder / "page")
    load_graph(prepare(folder / "page", folder / "cache"), (1280, 800))
    return time.process_time() - start


KINDS = {"html": HTML, "css": CSS, "js": JS}


@pytest.mark.parametrize(("kind", "unit"), [(kind, unit) for kind, units in KINDS.items() for unit in units])
def test_the_time_is_linear_in_the_length(tmp_path: Path, kind: str, unit: str) -> None:
    short = min(spent(tmp_path, kind, unit * (SHORT // len(unit))) for _ in range(2))
    long = min(spent(tmp_path, kind, unit * (FACTOR * SHORT // len(unit))) for _ in range(2))
    assert long < max(WORST * short, _NOTHING)
