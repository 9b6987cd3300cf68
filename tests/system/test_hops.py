"""Split proxies and PEPs on the path: what crosses which hop, and how each host sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from disturbed import OF_THE_MACHINE
from proxied import OBJECTS, Lab

from wirepaint.runners.testbed.cells import Cells

pytestmark = pytest.mark.usefixtures("root")

EVALUATION = """
title = "Hops"
backend = "testbed"
warmup = false
[scenarios]
network = ["lte"]
congestion = ["fld"]
http = ["{http}"]
initial_window = [20]
proxy = {proxy}
[[user_agents]]
pages = ["{page}"]
visits = 1
[[proxies]]
name = "gateway"
kind = "split"
network = "3g"
congestion = "reno"
initial_window = 4
[[proxies]]
name = "ends"
tls = "terminate"
"""
BESIDE = """
title = "Beside a PEP"
backend = "testbed"
warmup = false
[scenarios]
network = ["lte"]
http = ["{http}"]
proxy = {proxy}
[[user_agents]]
pages = ["{page}"]
visits = 1
cache = "warm"
[[flows]]
name = "bulk"
bulk = "200 kB"
"""
TIRING = """
title = "fast, then slow"
changes = [{ at = "10 ms", network = "3g" }]
[down]
rate = "50 Mbit/s"
delay = "5 ms"
[up]
rate = "50 Mbit/s"
delay = "5 ms"
"""
LTE_RTT_NS, G3_RTT_NS = 26e6, 50e6


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Cells() as cells:
        yield Lab(cells, tmp_path_factory.mktemp("hops"), EVALUATION)


@pytest.mark.parametrize(("http", "protocol"), [("h1", "http/1.1"), ("h2", "h2")])
def test_a_split_proxy_ends_tcp_and_passes_tls_and_http_on(lab: Lab, http: str, protocol: str) -> None:
    visit = lab.visit('["split"]', "https", http)
    assert visit.severe() <= OF_THE_MACHINE, visit.outcome.reasons
    assert visit.served() == {"origin": OBJECTS}
    used = visit.table("connection").filter(reason="request")
    # The browser sees the servers' addresses; the proxy sends over the link.
    assert used["server_address"].str.starts_with("10.65.").all()
    assert set(used["protocol"]) == {protocol} and set(used["initial_window"]) == {20}
    assert used["congestion"].str.starts_with("fld").all()
    sampled = visit.table("tcp").filter(pl.col("event") == "ack")
    assert set(sampled["connection"]) >= set(used["connection"]) and sampled["connection"].null_count() == 0


def test_the_hop_behind_a_proxy_has_a_network_of_its_own(lab: Lab) -> None:
    visit = lab.visit('["gateway"]', "https", "h2")
    assert visit.severe() <= OF_THE_MACHINE, visit.outcome.reasons
    told = json.loads((visit.folder / "run.json").read_text())
    assert told["path"] == ["access", "split", "behind-split"]
    assert [(host["name"], host["initial_window"]) for host in told["hosts"][1:]] == [
        ("split", 20),
        ("server", 4),
    ]
    used = visit.table("connection").filter(reason="request")
    # TCP's handshake is with the proxy, TLS's with the server behind both networks.
    assert LTE_RTT_NS * 0.99 < used["min_rtt"].min() < LTE_RTT_NS * 1.2  # type: ignore[operator]
    assert (used["tls_done"] - used["connected"]).min() > LTE_RTT_NS + G3_RTT_NS  # type: ignore[operator]
    carried = visit.table("link").group_by("segment", "direction").agg(pl.col("delivered_packets").max())
    assert set(carried["segment"]) == {"access", "behind-split"} and carried["delivered_packets"].min() > 20  # type: ignore[operator]


@pytest.mark.parametrize(
    ("http", "proxy", "path"),
    [
        ("h2", '["pep"]', ["remote", "access", "ground"]),
        ("h1", '["pep"]', ["remote", "access", "ground"]),
        ("h1", '[["ends", "pep"]]', ["squid", "remote", "access", "ground"]),
    ],
)
def test_a_pep_sends_ahead_over_its_own_connections(lab: Lab, http: str, proxy: str, path: list[str]) -> None:
    visit = lab.visit(proxy, "https", http)
    assert visit.severe() <= OF_THE_MACHINE, visit.outcome.reasons
    assert json.loads((visit.folder / "run.json").read_text())["path"] == path
    connections = visit.table("connection")
    own = connections.filter(protocol="pep")
    assert own.height == 3 and own["congestion"].str.starts_with("fld").all()
    assert set(own["initial_window"]) == {20} and own["min_rtt"].min() > LTE_RTT_NS * 0.99  # type: ignore[operator]
    sampled = visit.table("tcp").filter(pl.col("event") == "ack")
    assert set(sampled["connection"]) == set(own["connection"])
    # The browsers' connections end before the link.
    used = connections.filter(reason="request")
    assert used["min_rtt"].max() < LTE_RTT_NS / 10 and used["objects"].sum() == OBJECTS  # type: ignore[operator]
    run = visit.table("run").row(0, named=True)
    assert run["server_congestion"].startswith("fld") and run["ahead_bytes"] > 100_000
    assert run["ahead_unused_bytes"] == 0
    if len(path) == 3:
        assert visit.served() == {"ahead": OBJECTS - 1, "pep": 1}


def test_flows_and_a_warm_cache_go_with_a_pep(lab: Lab) -> None:
    visit = lab.visit('["pep"]', "https", "h2", BESIDE)
    assert visit.severe() <= OF_THE_MACHINE, visit.outcome.reasons
    assert visit.served() == {"ahead": 1, "browser cache": OBJECTS - 2, "pep": 1}
    flow = visit.table("connection").filter(pl.col("bytes_received") == 200_000)
    # The flow is a client's own connection with the far end of the link.
    assert flow["client_address"].item().startswith("10.64.0.") and flow["server_port"].item() != 443


def test_a_network_behind_a_proxy_changes_when_the_visit_begins(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "tiring.toml").write_text(TIRING)
    evaluation = EVALUATION.replace('network = "3g"', f'network = "{tmp_path / "tiring.toml"}"')
    visit = lab.visit('["gateway"]', "https", "h2", evaluation)
    assert visit.severe() <= OF_THE_MACHINE, visit.outcome.reasons
    used = visit.table("connection").filter(reason="request")
    # TLS crosses the second network, which has become 3g by then.
    assert (used["tls_done"] - used["connected"]).min() > LTE_RTT_NS + G3_RTT_NS  # type: ignore[operator]
