"""What a run has of its own is filled into the text of its condition, and is what its description says."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from wirepaint.dataplane import simulate
from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.results.outcome import Outcome
from wirepaint.runners.collected import Collected
from wirepaint.runners.contract import Job
from wirepaint.runners.simulator import Describer, Session, _Common, _Form, describe

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


@pytest.mark.parametrize("pipe", [2**12, 2**20], ids=["narrow", "wide"])
def test_runs_of_many_pages_end_whatever_the_pipe_takes(
    pipe: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "_PIPE_BYTES", pipe)
    pages = ", ".join(f'"{name}"' for name in ("photos", "kit", "blog-small"))
    runs = planned(tmp_path, ONE.replace('"photos"', pages).replace("visits = 4", "visits = 14"))
    collected = Collected(tmp_path, {"page": None})
    with Session(nullcontext, cores=1, collected=collected) as session:
        jobs = (Job(run, tmp_path / str(number), whole=False) for number, run in enumerate(runs))
        ended = {run.key: end for run, end in session.carry_out(jobs)}
    assert ended.keys() == {run.key for run in runs}
    assert {end.verdict for end in ended.values() if isinstance(end, Outcome)} == {"valid"}
    assert all(collected.trace(key)("page").height == 1 for key in ended)


def test_runs_whose_path_changes_are_described_one_by_one(tmp_path: Path) -> None:
    runs = planned(tmp_path, CHANGES)
    describer = Describer(share_files=True)
    assert all(describer.named(run, tmp_path).own is None for run in runs)
    common = describer.describe(runs[0], tmp_path).alike
    assert isinstance(common, _Common) and not _Form.suits(common)
