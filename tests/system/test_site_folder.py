"""The folder of a site is imported whole: its rehearsal finds what only running scripts ask for."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from PIL import Image

from wirepaint import pages, rehearsal
from wirepaint.errors import MachineLacks
from wirepaint.pages import Page
from wirepaint.pages.loading import load_graph
from wirepaint.runners.testbed.browser.chromium import program

try:
    program.find()
except MachineLacks as missing:
    pytest.skip(f"{missing}", allow_module_level=True)


def photograph() -> bytes:
    noise = random.Random(1).randbytes(3 * 400 * 300)
    file = io.BytesIO()
    Image.frombytes("RGB", (400, 300), noise).resize((1_200, 700)).save(file, "JPEG", quality=60)
    return file.getvalue()


def site(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        target = folder / "site" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "site"


def rehearsed(folder: Path, root: Path) -> Page:
    pages.import_folder(root, folder / "page")
    return rehearsal.rehearse(folder / "page", lambda _: None)


def paths(page: Page) -> list[str]:
    return [resource.url.removeprefix("https://site.example/") for resource in page.resources]


@pytest.mark.slow
def test_a_chain_of_ten_modules_is_known_to_its_last_image(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "index.html": "<!doctype html><title>t</title><h1>Ten</h1><script type=module src=m1.js></script>",
        "m10.js": "const i = new Image(); i.src = ['hero', 'jpg'].join('.'); document.body.append(i);"
        "export const own = 0",
        "hero.jpg": photograph(),
        "unused.js": "1",
    }
    for k in range(1, 10):
        files[f"m{k}.js"] = (
            f'import {{ own as below }} from "./m{k + 1}.js";\nexport const own = below + 1;\n'
        )
    page = rehearsed(tmp_path, site(tmp_path, files))
    modules = [f"m{k}.js" for k in range(1, 11)]
    assert paths(page) == ["", *modules, "hero.jpg"]
    assert all(r.rehearsed is not None and r.rehearsed.asked == 1 for r in page.resources)
    starts = [r.rehearsed.start_ms or 0.0 for r in page.resources if r.rehearsed]
    assert starts == sorted(starts)
    assert page.rehearsal is not None
    assert page.rehearsal.verdict == "replays"
    assert page.notes == ["1 file of the folder that the page does not ask for left out"]
    graph = load_graph(pages.prepare(tmp_path / "page", tmp_path / "cache"), (1280, 800))
    numbers = {r["url"].rpartition("/")[2]: n for n, r in enumerate(graph["resources"])}
    causes = {name: graph["resources"][n].get("cause", {}).get("by") for name, n in numbers.items()}
    assert [causes[f"m{k}.js"] for k in range(1, 11)] == [0, *(numbers[f"m{k}.js"] for k in range(1, 10))]
    image = graph["resources"][numbers["hero.jpg"]]
    assert numbers["m10.js"] in (image["cause"]["by"], *image.get("also", ()))


@pytest.mark.slow
@pytest.mark.timed
def test_a_request_follows_the_run_of_the_script_that_asks_for_it(tmp_path: Path) -> None:
    """The script waits for style sheets that lead to each other: its answer comes long before it runs."""
    files: dict[str, str | bytes] = {
        "index.html": "<!doctype html><title>t</title><link rel=stylesheet href=s1.css><h1>Late</h1>"
        "<script defer src=late.js></script>",
        "late.js": "const s = document.createElement('script'); s.src = ['next', 'js'].join('.');"
        "document.head.append(s)",
        "next.js": "1",
        "s6.css": "h1 { color: red }",
    }
    for k in range(1, 6):
        files[f"s{k}.css"] = f"@import 's{k + 1}.css';"
    page = rehearsed(tmp_path, site(tmp_path, files))
    script = paths(page).index("late.js")
    found = page.resources[paths(page).index("next.js")].rehearsed
    assert found is not None
    # On a slow machine the run comes later than the model says. Then the sheet is named that it waits for.
    last = paths(page).index("s6.css")
    assert (found.by, found.after) in (([script], "run"), ([script, last], "resources"))
    assert found.after_ms < 40


@pytest.mark.slow
def test_what_scripts_compose_fetch_and_start_is_found_and_strangers_get_a_stand_in(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "index.html": '<!doctype html><title>t</title><script type=importmap>{"imports": {"x": "./lib/x.js"}}'
        "</script><script type=module>import 'x'; const part = 'chunk';"
        "await import(`./${part}s/one.js`); new Worker('w' + 'ork.js');"
        "fetch(['da', 'ta/'].join('') + 'x' + '.json?v=3'); fetch('https://cdn.test/y.js').catch(() => 0);"
        "</script>",
        "lib/x.js": "1",
        "chunks/one.js": "1",
        "chunks/two.js": "1",
        "work.js": "importScripts('sub' + '.js')",
        "sub.js": "1",
        "data/x.json": "[]",
    }
    page = rehearsed(tmp_path, site(tmp_path, files))
    assert page.rehearsal is not None
    assert page.rehearsal.verdict == "replays"
    found = set(paths(page))
    assert {"", "lib/x.js", "chunks/one.js", "work.js", "sub.js", "data/x.json"} == {
        path for path in found if "cdn.test" not in path
    }
    assert [r.url for r in page.resources if r.stand_in and r.method == "GET"] == ["https://cdn.test/y.js"]
