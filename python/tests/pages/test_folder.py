"""A static site becomes a page."""

from __future__ import annotations

import gzip
from pathlib import Path

from wirepaint.pages import import_folder, load, prepare


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
    assert names == ["", "a/x.css?v=2", "a/p%20q.svg", "a/y.css", "a/f.woff2", "a/bg.png", "items.json"]
    causes = [(r.cause.by, r.cause.kind) for r in page.resources]
    assert causes == [
        (None, "navigation"), (0, "parser"), (0, "parser"), (1, "css"), (1, "css"), (3, "css"), (0, "other")
    ]  # fmt: skip
    assert [r.type for r in page.resources] == ["html", "css", "image", "css", "font", "image", "data"]


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    page = import_folder(site(tmp_path), tmp_path / "page")
    assert page.notes == ["3 references to what the folder does not hold blanked"]
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
