"""All faults of an evaluation file at once, and names that people use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wirepaint import catalogue
from wirepaint.errors import UsageError, UsageErrors
from wirepaint.evaluation import plan
from wirepaint.evaluation.axes import HTTP_VERSIONS
from wirepaint.evaluation.congestion import known
from wirepaint.evaluation.model import BACKENDS


@pytest.fixture(autouse=True)
def small_catalogue():
    """The catalogue as it is shipped, in place of a small one."""


@pytest.fixture(autouse=True)
def known_controls():
    """The congestion controls that there are."""


MISTYPED = """
titel = "x"
backend = "simulater"
seed = "no"
[scenarios]
network = ["lte", "cabel", "gone.toml"]
http = ["HTTP/2", "h3"]
congestion = ["cubik", "NewReno"]
intial_window = [3]
[[user_agents]]
pages = ["photoz", "Photos"]
visit = 5
visits = "x"
[stop]
visits = 1
"""


def test_every_fault_is_named_with_what_was_meant(tmp_path: Path):
    file = tmp_path / "e.toml"
    file.write_text(MISTYPED)
    with pytest.raises(UsageErrors) as refused:
        plan(file)
    meant = {
        error.place.removeprefix(f"{file}: "): re.findall(r'did you mean "([^"]+)"', error.accepted)
        for error in refused.value.errors
    }
    assert meant == {
        "titel": ["title"],
        "title": [],
        "backend": ["simulator"],
        "seed": [],
        "stop.visits": [],
        "stop.interval": [],
        "scenarios.intial_window": ["initial_window"],
        "scenarios.http[1]": [],
        "scenarios.network[1]": ["cable"],
        "scenarios.network[2]": [],
        "scenarios.congestion[0]": ["cubic"],
        "user_agents[0].visit": ["visits"],
        "user_agents[0].visits": [],
        "user_agents[0].pages[0]": ["photos"],
    }
    assert str(refused.value).count("\n") == len(meant) - 1


def test_names_count_in_any_case_and_by_their_aliases(tmp_path: Path):
    file = tmp_path / "e.toml"
    file.write_text(
        'title = "x"\nbackend = "Sim"\n[scenarios]\nnetwork = ["LTE", "cable"]\n'
        'http = ["HTTP/1.1", "H2"]\ncongestion = ["New Reno", "CUBIC"]\n[[user_agents]]\npages = ["Photos"]\n'
    )
    made = plan(file)
    assert {run.network.name for run in made.runs} == {"lte", "wpt-cable"}
    assert {run.http for run in made.runs} == {"h1", "h2"}
    assert {run.congestion.label for run in made.runs} == {"reno", "cubic"}
    assert {(run.backend, run.page_name) for run in made.runs} == {("simulator", "photos")}


def test_a_file_comes_before_a_name_that_it_resembles(tmp_path: Path):
    (tmp_path / "Photos").mkdir()
    (tmp_path / "Photos" / "index.html").write_text("<title>Mine</title>")
    file = tmp_path / "e.toml"
    file.write_text('title = "x"\n[scenarios]\nnetwork = ["lte"]\n[[user_agents]]\npages = ["Photos"]\n')
    [visit] = {run.visits[0].page for run in plan(file, "simulator").runs}
    assert visit.is_relative_to(Path("/")) and "catalog" not in visit.parts


NAMES = {
    "backend": BACKENDS,
    "congestion": known(),
    "http": tuple(HTTP_VERSIONS),
    "network": catalogue.names("network"),
}


@pytest.mark.parametrize("kind", NAMES)
def test_every_alias_leads_to_a_name_and_hides_none(kind: str):
    aliases = catalogue._aliases(kind)
    assert aliases
    for alias, meant in aliases.items():
        assert catalogue.called(kind, alias.upper(), NAMES[kind]) == meant
        assert alias not in NAMES[kind]


@pytest.mark.parametrize("content", ['{"log": {}}', "\n [ {}, 1]"])
def test_a_har_where_toml_belongs_is_called_so(tmp_path: Path, content: str):
    file = tmp_path / "e.toml"
    file.write_text(content)
    with pytest.raises(UsageError, match=r"found JSON; accepted: TOML 1.0 .* a HAR is named as a page"):
        plan(file)
