"""A page ready to be served."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from unrehearsed import unrehearsed

from wirepaint.errors import UsageError
from wirepaint.pages import PreparedPage, cache_dir, import_folder, load, prepare, shipped


def test_preparing_again_makes_nothing_and_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shipped()["travel-large"]
    first = prepare(folder, tmp_path)
    module = sys.modules[prepare.__module__]
    monkeypatch.setattr(module, "synthesise", lambda _: pytest.fail("made again"))
    assert prepare(folder, tmp_path) == first


def test_a_body_in_the_cache_that_has_changed_is_made_again(tmp_path: Path) -> None:
    folder = shipped()["blog-small"]
    first = prepare(folder, tmp_path)
    body = Path(next(response["body"] for response in first.responses if response["body"]))
    whole = body.read_bytes()
    body.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert prepare(folder, tmp_path) == first
    assert body.read_bytes() == whole


def test_a_page_says_what_a_run_needs(tmp_path: Path) -> None:
    folder = shipped()["shop-large"]
    page, prepared = load(folder), prepare(folder, tmp_path)
    assert (prepared.name, prepared.url) == ("shop-large", page.url)
    assert len(prepared.origins) >= 10
    assert prepared.origins[0] == ("https", "www.shop-large.example", 443)
    assert len(prepared.responses) == len(prepared.resources) == len(page.resources)
    for response, resource in zip(prepared.responses, page.resources, strict=True):
        assert (response["method"], response["url"]) == (resource.method, resource.url)
        assert response["think_ns"] == round(resource.think_ms * 1e6)
        assert response["body"] is None or Path(response["body"]).is_absolute()
    assert all(resource["expected"] for resource in prepared.resources)


def test_recorded_bodies_are_served_from_the_page_and_expected_only_for_the_navigation(
    tmp_path: Path,
) -> None:
    folder = unrehearsed("agency", tmp_path)
    prepared = prepare(folder, tmp_path / "cache")
    assert all(Path(r["body"]).parent == folder / "bodies" for r in prepared.responses)
    assert [r["id"] for r in prepared.resources if r["expected"]] == [0]


def test_what_every_rehearsal_asked_for_is_expected(tmp_path: Path) -> None:
    prepared = prepare(shipped()["agency"], tmp_path)
    assert prepared.rehearsed
    asked = [r["id"] for r in prepared.resources if (r["rehearsed"] or {}).get("asked") == 1]
    assert [r["id"] for r in prepared.resources if r["expected"]] == asked and len(asked) > 10


def test_an_interrupted_preparation_is_made_again(tmp_path: Path) -> None:
    folder = shipped()["blog-small"]
    first = prepare(folder, tmp_path)
    (made,) = tmp_path.iterdir()
    (made / "prepared.json").unlink()
    assert prepare(folder, tmp_path) == first
    (made / "prepared.json").write_text("{")
    assert prepare(folder, tmp_path) == first


def test_a_prepared_page_can_be_read_by_other_users(tmp_path: Path) -> None:
    prepare(shipped()["blog-small"], tmp_path)
    (made,) = tmp_path.iterdir()
    assert made.stat().st_mode & 0o777 == 0o755


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[Path, tuple[int, int]]:
    """Calls of chown by root, which the user 1234 of the group 567 called through sudo."""
    owners: dict[Path, tuple[int, int]] = {}

    def chown(path: Path, uid: int, gid: int, *, follow_symlinks: bool) -> None:
        assert not follow_symlinks
        owners[path] = uid, gid

    there = SimpleNamespace(geteuid=lambda: 0, chown=chown, environ=os.environ)
    monkeypatch.setattr("wirepaint.pages.cache.os", there)
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "567")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / ".cache"))
    return owners


def test_what_root_makes_in_the_cache_belongs_to_the_user_who_called_sudo(
    tmp_path: Path, given: dict[Path, tuple[int, int]]
) -> None:
    (tmp_path / "home").mkdir()
    prepare(shipped()["blog-small"], cache_dir())
    assert set(given.values()) == {(1234, 567)}
    folders = {path for path in given if ".making." not in str(path)}
    cache = tmp_path / "home" / ".cache"
    assert folders == {cache, cache / "wirepaint", cache / "wirepaint" / "pages"}
    (made,) = cache_dir().iterdir()
    assert len(given) - len(folders) == len([made, *made.iterdir()])


def test_the_imported_page_of_an_evaluation_belongs_to_the_user_who_called_sudo(
    tmp_path: Path, given: dict[Path, tuple[int, int]]
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>A page</title>")
    imported = cache_dir().parent / "imported" / "0"
    import_folder(tmp_path / "site", imported)
    assert imported.parent in given
    assert len([path for path in given if ".importing." in str(path)]) == len([0, *imported.rglob("*")])


def test_what_lies_elsewhere_and_what_is_roots_own_stays_roots(
    tmp_path: Path, given: dict[Path, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(shipped()["blog-small"], tmp_path / "elsewhere")
    home = tmp_path / "root"
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_dir=str(home)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    prepare(shipped()["blog-small"], cache_dir())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "plain"))
    monkeypatch.delenv("SUDO_UID")
    prepare(shipped()["blog-small"], cache_dir())
    assert given == {}


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match=r"file/pages: found Not a directory; accepted: a folder that can"):
        prepare(shipped()["blog-small"], tmp_path / "file" / "pages")


def _prepare(cache: str) -> PreparedPage:
    return prepare(shipped()["blog-small"], Path(cache))


@pytest.mark.parametrize("workers", [4])
def test_processes_may_prepare_the_same_page_at_once(tmp_path: Path, workers: int) -> None:
    with ProcessPoolExecutor(workers) as pool:
        pages = list(pool.map(_prepare, [str(tmp_path)] * workers))
    assert all(page == pages[0] for page in pages)
    assert len(list(tmp_path.iterdir())) == 1
