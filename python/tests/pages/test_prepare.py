"""A page ready to be served."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from wirepaint.pages import PreparedPage, load, prepare, shipped


def test_preparing_again_is_fast_and_gives_the_same(tmp_path: Path) -> None:
    folder = shipped()["travel-large"]
    first = prepare(folder, tmp_path)
    began = time.perf_counter()
    again = prepare(folder, tmp_path)
    assert again == first
    assert time.perf_counter() - began < 0.05


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
    folder = shipped()["agency"]
    prepared = prepare(folder, tmp_path)
    assert all(Path(r["body"]).parent == folder / "bodies" for r in prepared.responses)
    assert [r["id"] for r in prepared.resources if r["expected"]] == [0]


def test_an_interrupted_preparation_is_made_again(tmp_path: Path) -> None:
    folder = shipped()["blog-small"]
    first = prepare(folder, tmp_path)
    (made,) = tmp_path.iterdir()
    (made / "prepared.json").unlink()
    assert prepare(folder, tmp_path) == first
    (made / "prepared.json").write_text("{")
    assert prepare(folder, tmp_path) == first


def _prepare(cache: str) -> PreparedPage:
    return prepare(shipped()["blog-small"], Path(cache))


@pytest.mark.parametrize("workers", [4])
def test_processes_may_prepare_the_same_page_at_once(tmp_path: Path, workers: int) -> None:
    with ProcessPoolExecutor(workers) as pool:
        pages = list(pool.map(_prepare, [str(tmp_path)] * workers))
    assert all(page == pages[0] for page in pages)
    assert len(list(tmp_path.iterdir())) == 1
