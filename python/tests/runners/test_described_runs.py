"""What a run has of its own is filled into the text of its condition, and is what its description says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.runners.simulator import Describer, _Common, _Form, describe

ONE = """
title = "100 %d of it"
backend = "simulator"
warmup = false
[scenarios]
network = ["lte"]
congestion = ["cubic"]
http = ["h2"]
[[user_agents]]
pages = ["photos"]
visits = 4
"""
PROXIES = ONE.replace("[[user", 'proxy = ["split"]\n[[user')
SESSION = ONE.replace('pages = ["photos"]', 'pages = ["photos", "kit"]\ntogether = true\nthink = "2 s"')
CHANGES = (
    ONE.replace('network = ["lte"]', "")
    + """
[[scenarios.network]]
title = "falls"
up = { rate = "5 Mbit/s", delay = "10 ms" }
down = { rate = "5 Mbit/s", delay = "10 ms" }
[[scenarios.network.changes]]
at = "1 s"
outage = "500 ms"
"""
)


def planned(folder: Path, text: str) -> list[ResolvedRun]:
    (folder / "e.toml").write_text(text)
    return list(plan(folder / "e.toml").runs)


@pytest.mark.parametrize("text", [ONE, PROXIES, SESSION], ids=["one path", "proxies", "a session"])
def test_the_text_of_a_condition_with_a_seed_is_the_description_of_that_run(
    text: str, tmp_path: Path
) -> None:
    runs = planned(tmp_path, text)
    describer = Describer(share_files=True)
    named = [describer.named(run, tmp_path) for run in runs]
    assert [one.own is None for one in named] == [True] + [False] * (len(runs) - 1)
    for run, one in zip(runs, named, strict=True):
        own = json.loads(f"{one.own or one.run.own()}}}")
        assert own == json.loads(f"{describe(run, tmp_path).own()}}}") | {"row": None}
        assert one.name == run.key
    assert len({one.own for one in named[1:]}) == len(runs) - 1


def test_runs_whose_path_changes_are_described_one_by_one(tmp_path: Path) -> None:
    runs = planned(tmp_path, CHANGES)
    describer = Describer(share_files=True)
    assert all(describer.named(run, tmp_path).own is None for run in runs)
    common = describer.describe(runs[0], tmp_path).alike
    assert isinstance(common, _Common) and not _Form.suits(common)
