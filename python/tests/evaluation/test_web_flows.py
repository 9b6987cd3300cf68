"""Web flows: measured sizes at random times, the same for all that is compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import plan, web_flows

EVALUATION = """
title = "Web traffic"
backend = "simulator"
warmup = false
repeats = 2
duration = "20 s"
[scenarios]
network = ["lte"]
congestion = ["cubic", "fld"]
[[flows]]
name = "web"
web = {{ load = "{load}", until = "{until}" }}
"""


def test_the_sizes_are_those_of_the_table():
    assert [web_flows.size(share) for share in (0.01, 0.5, 0.9, 1.0)] == [166, 6138, 90_056, 1_000_000]
    assert web_flows.size(0.925) == pytest.approx((90_056 * 186_941) ** 0.5, rel=0.001)
    drawn = [size["response_bytes"] for _, size in web_flows.drawn(10**9, 60 * 10**9, seed="1")]
    assert len(drawn) > 100_000
    assert np.quantile(drawn, [0.5, 0.9]) == pytest.approx([6138, 90_056], rel=0.05)


def test_they_offer_the_load_and_begin_at_random():
    flows = web_flows.drawn(8_000_000, 600 * 10**9, seed="3")
    offered = sum(kind["response_bytes"] for _, kind in flows) * 8 / 600
    assert offered == pytest.approx(8_000_000, rel=0.06)
    gaps = np.diff([start for start, _ in flows])
    assert np.std(gaps) == pytest.approx(np.mean(gaps), rel=0.05)  # as an exponential distribution


def test_compared_runs_have_the_same_flows_and_each_repeat_has_its_own(tmp_path: Path):
    (tmp_path / "web.toml").write_text(EVALUATION.format(load="4 Mbit/s", until="10 s"))
    runs = {(run.congestion.name, run.visit): run.flows for run in plan(tmp_path / "web.toml").runs}
    assert runs["cubic", 1] == runs["fld", 1] != runs["cubic", 2]
    assert {flow.name for flow in runs["cubic", 1]} == {
        f"web.{n}" for n in range(1, len(runs["cubic", 1]) + 1)
    }
    two = (
        EVALUATION.format(load="4 Mbit/s", until="10 s")
        + '[[flows]]\nname = "other"\nweb = {load = "4 Mbit/s", until = "10 s"}\n'
    )
    (tmp_path / "web.toml").write_text(two)
    starts: dict[str, list[int]] = {"web": [], "other": []}
    for flow in plan(tmp_path / "web.toml").runs[0].flows:
        starts[flow.name.partition(".")[0]].append(flow.start_ns)
    assert not set(starts["web"]) & set(starts["other"])
    (tmp_path / "web.toml").write_text(EVALUATION.format(load="10 Gbit/s", until="10 s"))
    with pytest.raises(UsageError, match=r"flows\[0\].web: found \d+ flows; accepted: at most 10000"):
        plan(tmp_path / "web.toml")
