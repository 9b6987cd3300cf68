"""The judged pages are what their recipes and README say, apart from the pages that ship."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from wirepaint.cli import invoke
from wirepaint.pages import model, shipping
from wirepaint.results import Results

ROOT = Path(__file__).parents[2]
JUDGED = ROOT / "judged"
PAGES = {path.parent.name: model.load(path.parent) for path in sorted(JUDGED.glob("*/page.json"))}
FREE = re.compile(r"MIT|Apache-2\.0|BSD|OFL-1\.1|CC0|CC-BY")
LOOKED_AT = [
    *("17track", "23andme", "247sports", "53com", "data-gov-uk", "flickr", "google-home", "solidarite"),
    *("run-sitespeed", "wordpress", "h2o", "http2-github", "nghttp2", "webrecorder", "pkg-"),
]
"""Recordings of pages that an earlier guide compared, or from packages."""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benches"))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def test_there_are_enough_judged_pages_half_of_them_with_bodies():
    bodies = [page for page in PAGES.values() if any(resource.body for resource in page.resources)]
    assert len(PAGES) >= 24 and len(bodies) * 2 == len(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_judged_page_has_its_bodies_a_source_and_a_free_licence(name: str):
    page = PAGES[name]
    assert page.name == name and page.title and page.summary and page.source and FREE.search(page.licence)
    bodies = {resource.body for resource in page.resources if resource.body}
    assert {path.name for path in (JUDGED / name).glob("bodies/*")} == bodies
    if bodies:
        assert (JUDGED / "LICENSES" / f"{name}.txt").is_file()
    assert all(".example/" in resource.url for resource in page.resources)


def test_every_page_has_its_recipe_and_no_shipped_page_shares_its_recording(bench):
    recipes = bench("judged").recipes()
    assert {recipe["name"] for kind in recipes.values() for recipe in kind} == set(PAGES)
    used = {recipe["recording"] for recipe in recipes["shapes"]}
    assert not used & {recipe.recording for recipe in shipping.RECIPES}
    assert not [name for name in used if name.startswith(tuple(LOOKED_AT))]


def test_the_readme_of_the_judged_pages_has_their_table(bench):
    assert bench("judged").table() in (JUDGED / "README.md").read_text(), (
        "benches/judged.py --table writes it"
    )


def test_the_example_names_every_judged_page():
    (agent,) = tomllib.loads((ROOT / "examples/judged.toml").read_text())["user_agents"]
    assert sorted(agent["pages"]) == [f"../judged/{name}" for name in sorted(PAGES)]


def test_the_readme_quotes_the_numbers_of_the_guide(bench):
    module = bench("pages_agreement")
    assert module.check(module.GUIDE, module.README) == ""


def test_a_readme_that_says_other_numbers_is_found(bench, tmp_path):
    guide, readme = tmp_path / "guide.md", tmp_path / "README.md"
    module = bench("pages_agreement")
    assert "no such file" in module.check(guide, readme)
    guide.write_text("# Agreement\n\n> A median of 1.2 %.\n")
    readme.write_text("It has\na median of 1.2 %.")
    assert "A median of 1.2 %" in module.check(guide, readme)
    readme.write_text("We found this. A median of\n1.2 %.")
    assert module.check(guide, readme) == ""


@pytest.mark.slow
def test_the_simulator_is_as_near_to_the_judged_pages_as_the_guide_says(bench, tmp_path):
    """A change of the simulator that makes it less true is found without a testbed.

    Without a rehearsal on this machine, so that each machine finds the same.
    """
    module = bench("pages_agreement")
    asked = ["run", str(ROOT / "examples/judged.toml"), "--backend", "simulator", "--no-rehearse", "--quiet"]
    assert invoke([*asked, "-o", str(tmp_path / "r")]) == 0
    now, *_ = module.agree(module.beside_kept(Results.open(tmp_path / "r"), module.KEPT), module.METRICS)
    said = re.search(r"90th percentile error of ([\d.]+) %, a median of ([\d.]+) %", module.GUIDE.read_text())
    assert said is not None
    assert now.p90_error <= float(said[1]) / 100 + 0.01
    assert now.median_error <= float(said[2]) / 100 + 0.003
    assert now.rho >= 0.99
