"""Options are written into the text of an evaluation file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import drafting, editing, options

WRITTEN = """\
# My question.
title = "Mine"
backend = "simulator"

[scenarios]
# Two of them:
network = [
  "lte",  # the slow one
  "3g",
]
http = ["h1", "h2"]  # both

[[user_agents]]
pages = ["kit"]
"""


def edited(text: str, tmp_path: Path, *line: str, until: str | None = None) -> str:
    file = tmp_path / "evaluation.toml"
    file.write_text(text)
    _, texts = options.tokens(line, [])
    return editing.edited(file, options.read(texts), until)


def test_only_the_keys_of_options_change(tmp_path: Path):
    text = edited(WRITTEN, tmp_path, "--network", "3g", "--iw", "10,32", "--visits", "4", "--seed", "2")
    assert (
        text
        == """\
# My question.
title = "Mine"
seed = 2
backend = "simulator"

[scenarios]
initial_window = [10, 32]
# Two of them:
network = ["3g"]  # `wirepaint network list`, or the path of a .toml file
http = ["h1", "h2"]  # both

[[user_agents]]
visits = 4
pages = ["kit"]
"""
    )


def test_the_file_stays_as_it_is_where_the_options_say_the_same(tmp_path: Path):
    assert edited(WRITTEN, tmp_path, "--network", "LTE,3g") == WRITTEN
    assert edited(WRITTEN, tmp_path) == WRITTEN


def test_a_setting_of_users_is_written_for_each_of_them(tmp_path: Path):
    two = WRITTEN + '[[user_agents]]\npages = ["blog-small"]\nvisits = 9\n'
    agents = tomllib.loads(edited(two, tmp_path, "--visits", "4"))["user_agents"]
    assert [agent["visits"] for agent in agents] == [4, 4]


def test_what_cannot_be_edited_by_lines_is_written_anew(tmp_path: Path):
    text = edited(f"{WRITTEN}[stop]\ninterval = 0.02\n", tmp_path, "--stop.visits", "4")
    assert tomllib.loads(text)["stop"] == {"interval": 0.02, "visits": 4}
    assert tomllib.loads(text)["scenarios"] == tomllib.loads(WRITTEN)["scenarios"]


def test_a_title_of_ours_is_made_anew_and_that_of_a_user_stays(tmp_path: Path):
    _, texts = options.tokens(["--http", "h1,h2", "--backend", "simulator"], [])
    ours = drafting.draft(["kit"], options.read(texts)).text
    assert 'title = "kit: h1 or h2, on lte"' in ours
    assert 'title = "kit: h1 or h2, on lte, 3g"' in edited(ours, tmp_path, "--network", "lte,3g")
    assert 'title = "Mine"' in edited(WRITTEN, tmp_path, "--network", "3g")


def test_until_is_added_unless_the_file_has_its_own(tmp_path: Path):
    text = edited(WRITTEN, tmp_path, until="decided")
    assert tomllib.loads(text)["until"] == {"verdict": "decided"}
    assert edited(text, tmp_path, until="decided") == text


def test_a_wrong_option_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"scenarios\.network\[0\]: found \"nosuch\""):
        edited(WRITTEN, tmp_path, "--network", "nosuch")
