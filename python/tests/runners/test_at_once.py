"""The limit on browsers at once: what was measured on this machine, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from wirepaint import cli
from wirepaint.errors import MachineLacks
from wirepaint.evaluation import plan
from wirepaint.runners.testbed import at_once

USERS = """
title = "Users"
warmup = false
[scenarios]
network = ["lte"]
[[user_agents]]
pages = ["kit"]
visits = 1
together = true
count = 9
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "wirepaint").mkdir()
    return tmp_path / "wirepaint" / "browsers.json"


@pytest.mark.parametrize(
    "held",
    [None, "{", "[]", json.dumps({"cores": (os.cpu_count() or 1) + 1, "browsers": 40}), '{"cores": 2}'],
)
def test_without_a_measurement_of_this_machine_a_core_bears_two(cache: Path, held: str | None) -> None:
    if held is not None:
        cache.write_text(held)
    assert at_once.limit() == 2 * (os.cpu_count() or 1)


def test_more_browsers_than_were_measured_are_refused_on_the_testbed_alone(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.write_text(json.dumps({"cores": os.cpu_count(), "browsers": 8}))
    file = tmp_path / "users.toml"
    file.write_text(USERS)
    at_once.check(plan(file, "simulator").runs)
    with pytest.raises(MachineLacks, match="9 browsers would load pages at once, and this machine bears 8"):
        at_once.check(plan(file, "testbed").runs)
    command = ["run", str(file), "--backend", "testbed", "--no-rehearse", "-o", str(tmp_path / "results")]
    assert cli.invoke(command) == 2
    assert "this machine bears 8" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
    cache.write_text(json.dumps({"cores": os.cpu_count(), "browsers": 9}))
    at_once.check(plan(file, "testbed").runs)


def test_browsers_that_load_one_after_another_are_not_at_once(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    file.write_text(USERS)
    [run] = plan(file, "testbed").runs
    assert at_once.loading(run) == 9
    file.write_text(f'{USERS}pages = ["kit", "agency"]\nthink = "10 s"\n'.replace('pages = ["kit"]\n', "", 1))
    [run] = plan(file, "testbed").runs
    assert at_once.loading(run) == 9
    file.write_text(USERS + 'spread = "900 s"\n')
    [run] = plan(file, "testbed").runs
    assert at_once.loading(run) < 4
    file.write_text(USERS + 'browser = "light"\n')
    [run] = plan(file, "testbed").runs
    assert at_once.loading(run) == 0
