"""The shipped pages."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from wirepaint.pages import load, shipped
from wirepaint.pages.shipping import RECIPES

PAGES = shipped()


def test_every_page_is_made_by_a_recipe_and_every_recipe_is_shipped() -> None:
    assert set(PAGES) == {recipe.name for recipe in RECIPES}
    assert len(PAGES) >= 6


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_shipped_page_states_source_and_free_licence(name: str) -> None:
    page = load(PAGES[name])
    assert page.name == name
    assert page.title
    assert page.summary
    assert page.source
    assert page.licence.endswith(("MIT", "Apache-2.0"))
    assert {f.name for f in PAGES[name].glob("bodies/*")} == {r.body for r in page.resources if r.body}


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r.shape_only], ids=lambda r: r.name)
def test_a_shape_holds_facts_alone(recipe) -> None:
    page = load(PAGES[recipe.name])
    kept = {
        "content-type",
        "content-encoding",
        "access-control-allow-credentials",
        "location",
        "x-wirepaint-pad",
    }
    for resource in page.resources:
        assert resource.body is None
        assert (urlsplit(resource.url).hostname or "").endswith(".example")
        assert {name for name, _ in resource.headers} <= kept
        assert not resource.recorded.after_load


def test_two_pages_have_the_shape_of_a_large_modern_page() -> None:
    pages = [load(folder) for folder in PAGES.values()]
    hosts = [{urlsplit(resource.url).hostname for resource in page.resources} for page in pages]
    large = [p for p, names in zip(pages, hosts, strict=True) if len(p.resources) >= 100 and len(names) >= 10]
    assert len(large) >= 2


def test_the_repository_stays_small() -> None:
    sizes = [f.stat().st_size for folder in PAGES.values() for f in Path(folder).rglob("*") if f.is_file()]
    assert sum(sizes) < 8 * 2**20
