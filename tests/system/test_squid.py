"""Squid on the path: what its cache gave and how it sent on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from disturbed import OF_THE_MACHINE
from planted import PROXY_FAULTS
from proxied import OBJECTS, Lab

from wirepaint.runners.testbed import squid
from wirepaint.runners.testbed.cells import Cells

pytestmark = [
    pytest.mark.usefixtures("root"),
    pytest.mark.skipif(not Path(squid.PROGRAM).exists(), reason="needs squid"),
]

EVALUATION = """
title = "Squid"
backend = "testbed"
warmup = false
[scenarios]
network = ["lte"]
http = ["{http}"]
initial_window = [20]
proxy = ["{proxy}"]
[[user_agents]]
pages = ["{page}"]
visits = 1
[[proxies]]
name = "warm"
warm = true
[[proxies]]
name = "disk"
warm = true
cache = "disk"
[[proxies]]
name = "ends"
warm = true
tls = "terminate"
congestion = "reno"
initial_window = 4
[[proxies]]
name = "uncached"
cache = "none"
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Cells() as cells:
        yield Lab(cells, tmp_path_factory.mktemp("squid"), EVALUATION)


@pytest.mark.parametrize(
    ("proxy", "served"),
    [
        ("squid", {"cache miss": 8}),
        ("uncached", {"cache miss": 8}),
        ("warm", {"cache hit": 6, "cache miss": 2}),
        ("disk", {"cache hit": 6, "cache miss": 2}),
    ],
)
def test_a_plain_page_is_served_from_the_cache_as_its_headers_allow(
    lab: Lab, proxy: str, served: dict[str, int]
) -> None:
    visit = lab.visit(proxy)
    assert visit.severe() <= OF_THE_MACHINE, visit.outcome.reasons
    assert visit.served() == served
    used = visit.table("connection").filter(reason="request")
    assert set(used.select("server_address", "server_port").iter_rows()) == {("10.64.0.1", 3128)}
    assert set(used["host"]) == {"a.test", "b.test"} and not used["encrypted"].any()
    assert set(used["congestion"]) == {"cubic"} and set(used["initial_window"]) == {20}
    assert used["objects"].sum() == OBJECTS and used["min_rtt"].min() > 25.9e6  # type: ignore[operator]
    sampled = visit.table("tcp").filter(pl.col("event") == "ack")
    assert set(sampled["connection"]) >= set(used["connection"]) and sampled["connection"].null_count() == 0


@pytest.mark.parametrize("http", ["h1", "h2"])
def test_https_goes_through_a_tunnel_with_the_servers_own_http_version(lab: Lab, http: str) -> None:
    visit = lab.visit("squid", "https", http)
    assert visit.severe() <= OF_THE_MACHINE, visit.outcome.reasons
    assert visit.served() == {"origin": OBJECTS}
    used = visit.table("connection").filter(reason="request")
    assert set(used["protocol"]) == {{"h1": "http/1.1", "h2": "h2"}[http]}
    # TLS begins after the answer to CONNECT, a round trip after TCP's handshake, and takes another.
    assert (used["tls_done"] - used["connected"]).min() > 2 * 25.9e6  # type: ignore[operator]


def test_a_proxy_that_ends_tls_caches_https_and_sends_on_both_sides_as_asked(lab: Lab) -> None:
    visit = lab.visit("ends", "https")
    assert visit.severe() <= OF_THE_MACHINE, visit.outcome.reasons
    assert visit.served() == {"cache hit": 6, "cache miss": 2}
    used = visit.table("connection").filter(reason="request")
    assert used["encrypted"].all() and set(used["congestion"]) == {"cubic"}
    assert set(used["initial_window"]) == {20}
    told = json.loads((visit.folder / "run.json").read_text())
    assert [(host["name"], host["congestion"], host["initial_window"]) for host in told["hosts"]] == [
        ("client", "reno", 10),
        ("squid", "cubic", 20),
        ("server", "reno", 4),
    ]


@pytest.mark.parametrize("what", PROXY_FAULTS)
def test_squid_with_other_settings_than_asked_makes_the_run_invalid(lab: Lab, what: str) -> None:
    fault = PROXY_FAULTS[what]
    visit = lab.visit("warm", planted=fault.plant)
    assert visit.outcome.verdict == "invalid"
    assert fault.check in visit.severe(), visit.outcome.reasons
