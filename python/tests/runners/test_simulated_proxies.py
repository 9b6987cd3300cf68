"""Proxies in the simulator: through the pool, by the real program."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from wirepaint.cluster import local
from wirepaint.evaluation import plan
from wirepaint.metrics import table
from wirepaint.results import Results, trace
from wirepaint.runners import backends, pool, simulator
from wirepaint.runners.progress import Lines
from wirepaint.statistics import users

EVALUATION = """
title = "Simulated proxies"
backend = "simulator"
warmup = false
[scenarios]
network = ["geo-satellite"]
congestion = ["hybla"]
http = ["h1"]
proxy = ["none", "squid", "split", "pep", "edge", ["squid", "pep"]]
[[proxies]]
name = "edge"
warm = true
tls = "terminate"
[[proxies]]
name = "split"
kind = "split"
network = "lte"
[[user_agents]]
pages = ["photos"]
visits = 1
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def test_what_a_pep_sent_ahead_is_known_without_traces(tmp_path: Path) -> None:
    found = {}
    for keep, backend in (("all", backends.simulator()), ("metrics", local.backend())):
        file = tmp_path / f"{keep}.toml"
        file.write_text(EVALUATION.replace("[scenarios]", f'[results]\nkeep = "{keep}"\n[scenarios]'))
        pool.carry_out(plan(file), tmp_path / keep, [backend], Lines())
        found[keep] = table(Results.open(tmp_path / keep))
    assert_frame_equal(found["metrics"], found["all"])
    known = found["all"].filter(pl.col("ahead_unused_share").is_not_null())
    assert set(known["proxy"]) == {"pep", "squid+pep"}


def test_every_kind_of_proxy_loads_the_page_and_says_who_answered(tmp_path: Path) -> None:
    file = tmp_path / "evaluation.toml"
    file.write_text(EVALUATION)
    pool.carry_out(plan(file), tmp_path / "results", [backends.simulator()], Lines())
    results = Results.open(tmp_path / "results")
    runs = results.runs()
    assert set(runs["verdict"]) == {"valid"}, runs["reasons"].to_list()
    measured = {row["proxy"]: row for row in table(results).iter_rows(named=True)}
    assert set(measured) == {"none", "squid", "split", "pep", "edge", "squid+pep"}
    # The share of the bytes that a warm squid answered on the testbed (decision 21).
    assert measured["edge"]["cache_hit_share"] == pytest.approx(99.7, abs=0.1)
    load = {proxy: row["page_load_time"] for proxy, row in measured.items()}
    assert load["squid"] > load["none"] > load["pep"]
    # Behind a PEP no packet at the bottleneck is a user's.
    at_bottleneck = {row.scenario: row.packets for row in users.rows(results)}
    assert len(at_bottleneck) == 6
    for scenario, packets in at_bottleneck.items():
        assert packets is None if "pep" in scenario else packets > 0, scenario
    for folder in (tmp_path / "results/runs").iterdir():
        [proxy] = trace.read_table(folder, "run")["proxy"]
        served = set(trace.read_table(folder, "object")["served_by"])
        expected = {
            "edge": {"cache hit", "cache miss"},
            "pep": {"ahead", "pep"},
            "squid+pep": {"ahead", "pep"},
        }
        assert served == expected.get(proxy, {"origin"}), proxy
        connections = trace.read_table(folder, "connection")
        inner = connections.filter(protocol="pep")
        assert inner.height == (3 if "pep" in proxy else 0) and set(inner["congestion"]) <= {"hybla"}
        assert trace.read_table(folder, "run")["server_congestion"].item() == "hybla"
        connections = connections.filter(pl.col("protocol") != "pep")
        assert set(connections["client_address"]) == {"10.64.0.2"}
        assert set(connections["server_port"]) == (
            {3128} if proxy in ("squid", "edge", "squid+pep") else {443}
        )
        sampled = trace.read_table(folder, "tcp")
        sender = {"none": "server", "edge": "squid", "pep": "ground", "squid+pep": "ground"}.get(proxy, proxy)
        assert set(sampled["host"]) == {sender}
        assert sampled.filter(pl.col("cwnd") > 10).height > 0


def test_a_run_with_a_proxy_draws_what_one_without_does(tmp_path: Path) -> None:
    file = tmp_path / "evaluation.toml"
    file.write_text(EVALUATION)
    said = {run.proxy.name: simulator.describe(run, tmp_path) for run in plan(file).runs}
    plain = said.pop("none")
    for name, run in said.items():
        assert run.segments[0] == plain.segments[0], name
        lead_ns = simulator.PEP_OPENS_NS if "pep" in name else 0
        assert [visit.start_ns - lead_ns for visit in run.visits] == [
            visit.start_ns for visit in plain.visits
        ]


def test_what_a_pep_promises_leaves_the_initial_window_to_the_page(tmp_path: Path) -> None:
    file = tmp_path / "evaluation.toml"
    file.write_text("""
title = "Over a satellite"
backend = "simulator"
warmup = false
[scenarios]
network = ["geo-satellite"]
proxy = ["pep"]
http = ["h1"]
[[user_agents]]
pages = ["agency", "kit"]
visits = 2
""")
    planned = plan(file)
    pool.carry_out(planned, tmp_path / "results", backends.named("simulator"), Lines())
    # One round trip of 600 ms. Promises in segments of their own made it two.
    latencies = table(Results.open(tmp_path / "results"))["base_page_latency"].to_list()
    assert len(latencies) == 4
    assert all(600 < latency < 900 for latency in latencies), latencies
