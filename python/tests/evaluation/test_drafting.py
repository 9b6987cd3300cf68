"""Evaluation files that are made from pages and options."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from wirepaint.evaluation import checking, drafting, options, plan


@pytest.fixture(autouse=True)
def small_catalogue():
    """The catalogue as it is shipped, in place of a small one."""


@pytest.fixture(autouse=True)
def known_controls():
    """The congestion controls that there are."""


def made(pages: list[str], *line: str, beside: Path | None = None) -> drafting.Draft:
    _, texts = options.tokens(line, [])
    return drafting.draft(pages, options.read(texts), beside)


@pytest.fixture
def site(tmp_path: Path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'my "site"').mkdir()
    (tmp_path / 'my "site"' / "index.html").write_text("<title>A page</title>")
    return 'my "site"'


def test_the_text_is_an_evaluation_that_asks_for_what_the_options_do(site: str, tmp_path: Path):
    line = ["--network", "LTE,Cable", "--http", "http/1.1,h2", "--congestion", "newreno", "--backend", "sim"]
    drafted = made([site, "Photos"], *line, "--visits", "3", "--sysctls.net.ipv4.tcp_sack", "0")
    assert tomllib.loads(drafted.text) == {
        "title": "my-site and 1 more: h1 or h2, on lte, wpt-cable",
        "backend": "simulator",
        "sysctls": {"net.ipv4.tcp_sack": 0},
        "scenarios": {"network": ["lte", "wpt-cable"], "congestion": ["reno"], "http": ["h1", "h2"]},
        "user_agents": [{"pages": [str(tmp_path / site), "photos"], "visits": 3}],
    }
    file = tmp_path / "elsewhere" / "e.toml"
    planned = plan(file, text=drafted.text)
    assert len([run for run in planned.runs if not run.warmup]) == 2 * 2 * 2 * 3


def test_without_a_question_it_asks_one_and_says_so():
    drafted = made(["photos"], "--backend", "simulator")
    assert drafted.data["scenarios"] == {"network": ["lte"], "http": ["h1", "h2"]}
    assert len(drafted.notes) == 2
    assert made(["photos"], "--network", "3g", "--congestion", "cubic,bbr").notes == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (["--http", "h1,h2"], "photos-http-simulator"),
        (
            ["--congestion", "cubic,fld", "--initial-window", "3,10"],
            "photos-congestion-initial-window-simulator",
        ),
        (["--http", "h1", "--network", "lte,3g"], "photos-simulator"),
    ],
)
def test_results_are_named_by_page_question_and_back_end(line: list[str], name: str):
    assert made(["photos", "kit"], *line, "--backend", "simulator").name == name


def test_a_file_beside_its_pages_names_them_by_relative_paths(site: str, tmp_path: Path):
    drafted = made([site], beside=tmp_path)
    assert drafted.data["user_agents"][0]["pages"] == [f"./{site}"]
    checking.read(drafted.data, tmp_path, "e.toml")


def test_hints_are_comments_of_keys_that_may_be_taken_as_they_are():
    text = made(["photos"], "--backend", "simulator").text
    lines = [line.removeprefix("# ") if " = " in line else line for line in text.splitlines()]
    data = tomllib.loads("\n".join(lines))
    assert {"timeout", "seed"} <= data.keys()
    assert {"initial_window", "proxy"} <= data["scenarios"].keys()
    assert {"viewport", "cache"} <= data["user_agents"][0].keys()
    checking.read(data, Path(), "e.toml")
