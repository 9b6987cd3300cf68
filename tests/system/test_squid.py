"""Squid on the path: what its cache gave and how it sent on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from planted import PROXY_FAULTS

from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.results.outcome import Outcome
from wirepaint.results.trace import read_table
from wirepaint.runners import testbed
from wirepaint.runners.testbed import squid
from wirepaint.runners.testbed.calibrate import calibrate
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
OBJECTS = 8
DISTURBED = {
    "steal",
    "foreign_cpu",
    "lateness",
    "lateness_max",
    "emulator_pause",
    "unseen_acks",
    "server_pause",
}


def recorded(folder: Path, scheme: str) -> Path:
    """A page of two hosts: all but the document and one style sheet may be kept by a cache."""

    def entry(url: str, mime: str, text: str, control: str) -> dict[str, Any]:
        # The recorded header is of another cache.
        headers = {"content-type": mime, "cache-control": control, "x-cache": "HIT from elsewhere"}
        return {
            "startedDateTime": "2026-01-02T03:04:05Z",
            "time": 10,
            "request": {"method": "GET", "url": url, "headers": []},
            "response": {
                "status": 200,
                "httpVersion": "HTTP/1.1",
                "headers": [{"name": name, "value": value} for name, value in headers.items()],
                "content": {"size": len(text), "mimeType": mime, "text": text},
                "redirectURL": "",
                "headersSize": -1,
                "bodySize": -1,
            },
            "timings": {"wait": 5, "receive": 1},
        }

    sheets = [f"{scheme}://{'ab'[n % 2]}.test/{n}.css" for n in range(OBJECTS - 1)]
    links = "".join(f'<link rel="stylesheet" href="{url}">' for url in sheets)
    entries = [entry(f"{scheme}://a.test/", "text/html", f"<!doctype html>{links}<p>text", "no-store")]
    for n, url in enumerate(sheets):
        text = f"p {{ margin: {n}px }} /* {'x' * 20_000} */"
        entries.append(entry(url, "text/css", text, "no-store" if n == 0 else "max-age=3600"))
    file = folder / f"{scheme}.har"
    log = {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": entries}
    file.write_text(json.dumps({"log": log}))
    return file


@dataclass
class Visit:
    outcome: Outcome
    folder: Path

    def table(self, name: str) -> pl.DataFrame:
        return read_table(self.folder, name)

    def served(self) -> dict[str, int]:
        counted = self.table("object").group_by("served_by").len()
        return dict(counted.sort("served_by").iter_rows())

    def severe(self) -> set[str]:
        return {reason["check"] for reason in self.outcome.reasons if reason["severity"] != "note"}


class Lab:
    def __init__(self, cells: Cells, folder: Path) -> None:
        self._cells, self._folder, self._count = cells, folder, 0
        self._calibration: dict[str, Any] | None = None

    def visit(self, proxy: str, scheme: str = "http", http: str = "h1", **more: Any) -> Visit:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        file = folder / "evaluation.toml"
        page = recorded(self._folder, scheme)
        file.write_text(EVALUATION.format(http=http, proxy=proxy, page=page))
        run: ResolvedRun
        [run] = plan(file).runs
        self._calibration = self._calibration or calibrate(run.network, short=True, cells=self._cells)
        outcome = testbed.run_once(run, folder, session=self._cells, calibration=self._calibration, **more)
        return Visit(outcome, folder)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Cells() as cells:
        yield Lab(cells, tmp_path_factory.mktemp("squid"))


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
    assert visit.severe() <= DISTURBED, visit.outcome.reasons
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
    assert visit.severe() <= DISTURBED, visit.outcome.reasons
    assert visit.served() == {"origin": OBJECTS}
    used = visit.table("connection").filter(reason="request")
    assert set(used["protocol"]) == {{"h1": "http/1.1", "h2": "h2"}[http]}
    # TLS begins after the answer to CONNECT, a round trip after TCP's handshake, and takes another.
    assert (used["tls_done"] - used["connected"]).min() > 2 * 25.9e6  # type: ignore[operator]


def test_a_proxy_that_ends_tls_caches_https_and_sends_on_both_sides_as_asked(lab: Lab) -> None:
    visit = lab.visit("ends", "https")
    assert visit.severe() <= DISTURBED, visit.outcome.reasons
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
