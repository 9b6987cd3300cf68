"""Recorded bodies are kept only if they ask for the recorded resources."""

from __future__ import annotations

from pathlib import Path

import pytest
from recording import entry, write

from wirepaint.pages import Page, import_har

BASE = "https://site.test/"
FIXED = '<link rel="stylesheet" href="a.css"><link rel="icon" href="i.png"><script src="a.js"></script>'


def imported(folder: Path, document: str, *more: dict) -> Page:
    entries = [
        entry(BASE, text=document),
        entry(BASE + "a.css", at=60, mime="text/css", text="body{background:url(b.png)}"),
        entry(BASE + "a.js", at=60, mime="text/javascript", text="document.title = 'https://docs.test/'"),
        entry(BASE + "b.png", at=90, mime="image/png", text="png"),
        entry(BASE + "i.png", at=95, mime="image/png", text="png"),
    ]
    return import_har(write(folder, *entries, *more), folder / "page", sizes_only=None)


def test_a_page_whose_documents_and_stylesheets_name_every_request_keeps_its_bodies(tmp_path: Path) -> None:
    page = imported(tmp_path, FIXED)
    assert [r.synthetic for r in page.resources] == [False] * 4
    assert page.notes[0] == "1 icons, which a headless browser does not ask for"


@pytest.mark.parametrize(
    ("document", "more", "reason"),
    [
        (FIXED, [entry(BASE + "x.json", at=99, mime="application/json")], "scripts made 1 of the"),
        (FIXED, [entry(BASE + "log", at=99, method="POST")], "scripts made 1 of the"),
        (
            FIXED + "<script>document.createElement('script').src='//ads.test/a.js'</script>",
            [],
            "a script of the document may load from ads.test",
        ),
    ],
)  # fmt: skip
def test_signs_of_other_requests_replace_the_bodies_with_a_note(
    tmp_path: Path, document: str, more: list[dict], reason: str
) -> None:
    page = imported(tmp_path, document, *more)
    assert all(r.synthetic for r in page.resources)
    assert any(reason in note for note in page.notes)


def test_a_recording_without_times_gives_effects_at_once(tmp_path: Path) -> None:
    crawl = {"timings": {"wait": 0, "receive": 0}, "time": 0}
    path = write(tmp_path, entry(BASE, **crawl), entry(BASE + "a.png", at=90_000, mime="image/png", **crawl))
    page = import_har(path, tmp_path / "page")
    assert page.resources[1].cause.after_ms == 0
    assert page.notes == ["no times recorded: effects follow their causes at once"]
