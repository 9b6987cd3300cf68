"""Runs of light users on a slow link go side by side on the testbed, and each is as true as alone."""

from __future__ import annotations

from itertools import combinations

import pytest

from wirepaint import cli
from wirepaint.results import Results

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.timed]

EVALUATION = """
title = "Side by side"
backend = "testbed"
warmup = false
[scenarios]
congestion = ["cubic", "hybla"]
[[scenarios.network]]
title = "slow"
down = { rate = "4 Mbit/s", delay = "60 ms" }
up = { rate = "4 Mbit/s", delay = "60 ms" }
[[user_agents]]
name = "light"
pages = ["kit"]
visits = 2
browser = "light"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("beside")
    (folder / "evaluation.toml").write_text(EVALUATION)
    command = ["run", str(folder / "evaluation.toml"), "--no-rehearse", "-o", str(folder / "results")]
    assert cli.invoke(command) in (0, 1)  # 1: the machine disturbed runs to the end
    return Results.open(folder / "results")


def test_they_overlap_and_nothing_is_wrong_with_them(results: Results) -> None:
    runs = results.runs("done")
    assert runs["verdict"].to_list().count("invalid") == 0
    assert len(runs) == 4
    spans = []
    for key in runs["run_key"]:
        [(began, duration)] = results.trace(key, "run").select("started_unix", "duration").rows()
        spans.append((began, began + duration))
    assert sum(a[0] < b[1] and b[0] < a[1] for a, b in combinations(spans, 2)) >= 3, spans


def test_each_has_its_own_congestion_control_and_its_own_packets(results: Results) -> None:
    runs = results.runs("done")
    for key, asked in runs.select("run_key", "congestion").iter_rows():
        [found] = results.trace(key, "connection")["congestion"].unique().to_list()
        assert found.split("_")[0] == asked  # ours have the run behind their name
    delivered = {
        key: results.trace(key, "link").filter(direction="down").sort("time")["delivered_bytes"][-1]
        for key in runs["run_key"]
    }
    page = results.trace(runs["run_key"][0], "object")["encoded_bytes"].sum()
    assert all(page < one < 1.5 * page for one in delivered.values()), (page, delivered)
