"""A page of plain http is rehearsed by itself for HTTP/2, and the lines say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint import rehearsal
from wirepaint.errors import PageFailed
from wirepaint.pages import model
from wirepaint.pages.model import Cause, Page, Resource
from wirepaint.pages.secure import by_https

VIEWPORT = (1280, 800)


def plain() -> Page:
    navigation = Cause(by=None, kind="navigation")
    document = Resource(
        id=0, url="http://a.test/", cause=navigation, type="html", wire_bytes=9, decoded_bytes=9
    )
    return Page(name="old", url="http://a.test/", resources=[document])


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        (plain(), ["old: rehearsing", "old: not rehearsed: it does not load"]),
        (
            by_https(plain()),
            [
                "old by https: rehearsing, since h2 asks by https, where a page may ask for other things",
                "old by https: not rehearsed: it does not load",
            ],
        ),
    ],
    ids=["plain", "by https"],
)
def test_the_second_rehearsal_of_a_plain_page_says_why_it_is(
    page: Page, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> list[Page]:
        raise PageFailed("it does not load")

    monkeypatch.setattr(rehearsal, "rehearse_versions", failing)
    folder = tmp_path / "page"
    (folder / "bodies").mkdir(parents=True)
    model.save_index(page, folder)
    assert rehearsal._make_quietly([(tmp_path / "cache" / "made", (folder, VIEWPORT))]) == lines


def test_a_version_that_fails_does_not_keep_the_other_from_its_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(folders: list[Path], *_: object) -> list[Page]:
        pages = [model.load(folder) for folder in folders]
        if any(page.url.startswith("https:") for page in pages):
            raise PageFailed("it does not load")
        return pages

    monkeypatch.setattr(rehearsal, "rehearse_versions", failing)
    part = []
    for name, page in (("plain", plain()), ("https", by_https(plain()))):
        (tmp_path / name / "bodies").mkdir(parents=True)
        model.save_index(page, tmp_path / name)
        part.append((tmp_path / "cache" / name, (tmp_path / name, VIEWPORT)))
    lines = rehearsal._make_quietly(part)
    assert lines[-1] == "old by https: not rehearsed: it does not load"
    assert "old: never rehearsed; the recorded causes serve" in lines
    assert [made.name for made in (tmp_path / "cache").iterdir()] == ["plain"]


def test_the_verdict_names_the_https_version() -> None:
    assert rehearsal.in_words(by_https(plain())).startswith("old by https: never rehearsed")
    assert rehearsal.in_words(plain()).startswith("old: never rehearsed")
