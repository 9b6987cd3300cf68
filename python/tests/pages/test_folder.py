"""A static site becomes a page."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.pages import import_folder, load, prepare
from wirepaint.pages.import_folder import without_unasked
from wirepaint.pages.loading import load_graph
from wirepaint.pages.model import Page, Rehearsal, Rehearsed


def site(folder: Path) -> Path:
    root = folder / "My Site"
    (root / "a").mkdir(parents=True)
    (folder / "secret.txt").write_text("secret")
    (root / "index.html").write_text(
        '<!doctype html><base href="a/"><link rel=stylesheet href="x.css?v=2"><img src="p%20q.svg">'
        '<img src="../../secret.txt"><img src="link.txt"><script src="https://cdn.test/y.js"></script>'
        "<script>fetch('items.json')</script>" + "<p>text" * 100
    )
    (root / "a" / "x.css").write_text('@import "y.css"; @font-face{font-family:f;src:url(f.woff2)}')
    (root / "a" / "y.css").write_text("/* url(no.png) */ body{background:url('bg.png')}")
    (root / "a" / "f.woff2").write_bytes(b"wOF2" + bytes(500))
    (root / "a" / "bg.png").write_bytes(b"\x89PNG" + bytes(500))
    (root / "a" / "p q.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (root / "a" / "link.txt").symlink_to(folder / "secret.txt")
    (root / "items.json").write_text("[]")
    (root / "unused.png").write_bytes(bytes(10))
    return root


def test_the_files_that_the_page_uses_become_its_resources(tmp_path: Path) -> None:
    page = import_folder(site(tmp_path), tmp_path / "page")
    assert load(tmp_path / "page") == page
    assert page.name == "my-site"
    names = [r.url.removeprefix("https://my-site.example/") for r in page.resources]
    named = ["", "a/x.css?v=2", "a/p%20q.svg", "a/y.css", "a/f.woff2", "a/bg.png", "items.json"]
    assert names == [*named, "unused.png"]
    causes = [(r.cause.by, r.cause.kind) for r in page.resources]
    assert causes == [
        (None, "navigation"), (0, "parser"), (0, "parser"), (1, "css"), (1, "css"), (3, "css"), (0, "other"),
        (0, "other"),
    ]  # fmt: skip
    assert [r.type for r in page.resources] == [
        "html", "css", "image", "css", "font", "image", "data", "image"
    ]  # fmt: skip
    assert [r.file for r in page.resources] == ["named"] * 6 + ["mentioned", "listed"]


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    page = import_folder(site(tmp_path), tmp_path / "page")
    assert page.notes == [
        "3 references to what the folder does not hold blanked: https://my-site.example/secret.txt, "
        "https://my-site.example/a/link.txt, https://cdn.test/y.js"
    ]
    bodies = [p.read_bytes() for p in (tmp_path / "page" / "bodies").iterdir()]
    assert not any(b"secret" in (gzip.decompress(b) if b[:2] == b"\x1f\x8b" else b) for b in bodies)


def test_text_is_served_in_gzip_and_the_rest_as_it_is(tmp_path: Path) -> None:
    import_folder(site(tmp_path), tmp_path / "page")
    prepared = prepare(tmp_path / "page", tmp_path / "cache")
    document = prepared.responses[0]
    assert dict(document["headers"])["content-encoding"] == "gzip"
    text = gzip.decompress(Path(document["body"]).read_bytes())
    assert b"cdn.test" not in text
    assert len(text) == prepared.resources[0]["decoded_bytes"]
    font = next(r for r in prepared.responses if r["url"].endswith("woff2"))
    assert "content-encoding" not in dict(font["headers"])
    assert prepared.origins == [("https", "my-site.example", 443)]


def made(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        target = folder / "site" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "site"


def paths(page: Page) -> list[str]:
    return [resource.url.removeprefix("https://site.example/") for resource in page.resources]


def test_modules_are_followed_to_what_they_import(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "index.html": '<script type=importmap>{"imports": {"x": "./lib/x.js", "y/": "/node_modules/y/"}}'
            '</script><script type=module>import {a} from "./a.js"; import "x"</script>',
            "a.js": 'export * from "../a/b.js"; const c = await import("./c.js"); import"y/z.mjs"',
            "a/b.js": 'new Worker(new URL("w.js", import.meta.url), {type: "module"})',
            "a/w.js": 'import {\n q,\n r as s,\n} from "./deep.js"',
            "a/deep.js": "1",
            "c.js": "import.meta; const important = 'no.js'",
            "lib/x.js": "1",
            "node_modules/y/z.mjs": "1",
            "node_modules/y/other.mjs": "1",
        },
    )
    page = import_folder(root, tmp_path / "page")
    by = {
        p: page.resources[r.cause.by or 0].url.rpartition("example/")[2]
        for p, r in zip(paths(page), page.resources, strict=True)
    }
    assert by == {
        "": "",
        "a.js": "",
        "lib/x.js": "",
        "a/b.js": "a.js",
        "c.js": "a.js",
        "node_modules/y/z.mjs": "a.js",
        "a/w.js": "a/b.js",
        "a/deep.js": "a/w.js",
    }
    assert {r.file for r in page.resources} == {"named"}


def test_what_is_no_part_of_a_site_is_left_out(tmp_path: Path) -> None:
    served = {
        "index.html": "<p>",
        "data.bin": "x",
        "tv/1.ts": b"G" + bytes(187) + b"G",
        "sub/index.html": "<p>",
    }
    other = (".git/config", "node_modules/x/y.js", "README.md", "LICENSE", "x.js.map", "x.ts", "x.d.ts")
    root = made(tmp_path, served | dict.fromkeys(other, "x"))
    assert set(paths(import_folder(root, tmp_path / "page"))) == {"", "data.bin", "tv/1.ts", "sub/index.html"}


def test_another_document_may_be_the_page(tmp_path: Path) -> None:
    root = made(tmp_path, {"demos/one.html": "<img src=../a.png>", "a.png": "x"})
    page = import_folder(root, tmp_path / "page", start="demos/one.html")
    assert page.url == "https://site.example/demos/one.html"
    assert paths(page) == ["demos/one.html", "a.png"]
    with pytest.raises(UsageError, match=r"found no index\.html"):
        import_folder(root, tmp_path / "page")
    for start in ("../site/demos/one.html", str(root / "demos/one.html"), "demos"):
        with pytest.raises(UsageError, match="found no "):
            import_folder(root, tmp_path / "page", start=start)


def test_a_folder_without_its_slash_redirects_to_it(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {"index.html": "<iframe src=inner>", "inner/index.html": "<img src=a.png>", "inner/a.png": "x"},
    )
    page = import_folder(root, tmp_path / "page")
    assert paths(page) == ["", "inner", "inner/", "inner/a.png"]
    assert (page.resources[1].status, page.resources[1].header("location")) == (301, page.resources[2].url)
    assert page.resources[2].cause.kind == "redirect"


def test_style_sheets_stay_as_they_are_where_the_document_checks_hashes(tmp_path: Path) -> None:
    sheet = "@import 'https://cdn.test/x.css';"
    root = made(
        tmp_path, {"index.html": "<link rel=stylesheet href=a.css integrity=sha256-x>", "a.css": sheet}
    )
    import_folder(root, tmp_path / "page")
    assert sheet.encode() in [body.read_bytes() for body in (tmp_path / "page" / "bodies").iterdir()]


def test_files_that_nothing_names_are_in_no_load_before_a_rehearsal(tmp_path: Path) -> None:
    root = made(tmp_path, {"index.html": "<img src=a.png>", "a.png": "x", "b.png": "x", "c.html": "<p>"})
    import_folder(root, tmp_path / "page")
    graph = load_graph(prepare(tmp_path / "page", tmp_path / "cache"), (1280, 800))
    assert [r["url"].rpartition("/")[2] for r in graph["resources"]] == ["", "a.png"]


def test_files_that_no_rehearsal_asked_for_are_dropped(tmp_path: Path) -> None:
    files = {"index.html": "<img src=named.png>", "a.js": "1", "b.js": "1", "c.png": "x", "named.png": "x"}
    page = import_folder(made(tmp_path, files), tmp_path / "page")
    assert without_unasked(page) == page
    page.resources[0].rehearsed = Rehearsed(asked=1)
    page.resources[3].rehearsed = Rehearsed(asked=1, by=[0])
    page.resources[4].rehearsed = Rehearsed(asked=1, by=[0, 3])
    page.rehearsal = Rehearsal(browser="b", maker="1", loads=3, seconds=1, verdict="replays")
    kept = without_unasked(page)
    assert paths(kept) == ["", "named.png", "b.js", "c.png"]
    assert [r.id for r in kept.resources] == [0, 1, 2, 3]
    assert kept.resources[3].rehearsed == Rehearsed(asked=1, by=[0, 2])
    assert kept.notes == ["1 file of the folder that the page does not ask for left out"]
