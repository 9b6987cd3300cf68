"""`page rehearse` with several folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint import cli, rehearsal
from wirepaint.errors import UsageError
from wirepaint.pages.model import Cause, Page, Resource

URL = "http://a.test/"


def test_a_folder_that_is_no_page_does_not_keep_the_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[str] = []

    def rehearse(folder: Path, _: rehearsal.Say) -> Page:
        begun.append(folder.name)
        if folder.name == "no-page":
            raise UsageError(f"{folder}/page.json", "no such file", "a page")
        cause = Cause(by=None, kind="navigation")
        document = Resource(id=0, url=URL, cause=cause, type="html", wire_bytes=9, decoded_bytes=9)
        return Page(name=folder.name, url=URL, resources=[document])

    monkeypatch.setattr(rehearsal, "rehearse", rehearse)
    folders = [str(tmp_path / name) for name in ("no-page", "page")]
    assert cli.invoke(["page", "rehearse", *folders]) == 1
    assert begun == ["no-page", "page"]
    said = capsys.readouterr().err
    assert f"{folders[0]}: not rehearsed: {folders[0]}/page.json: found no such file" in said
    assert "page: never rehearsed" in said and "1 of 2 folders were not rehearsed" in said
    assert cli.invoke(["page", "rehearse", folders[0]]) == 2
