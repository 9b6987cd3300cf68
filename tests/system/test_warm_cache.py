"""Warm browser caches on the testbed: real Chromium, a light user, and pages of one user in sequence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from wirepaint.evaluation import plan
from wirepaint.results import trace
from wirepaint.results.outcome import Outcome
from wirepaint.runners.testbed import one_run
from wirepaint.runners.testbed.calibrate import calibrate
from wirepaint.runners.testbed.cells import Cells

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.timed]

HEAD = """
title = "Warm caches"
backend = "testbed"
warmup = false
[scenarios]
network = ["lte"]
{scenarios}
[[user_agents]]
name = "reader"
visits = 1
"""


class Lab:
    def __init__(self, cells: Cells, folder: Path) -> None:
        self._cells, self._folder, self._count = cells, folder, 0

    def carried_out(self, user: str, scenarios: str = "") -> tuple[Path, Outcome]:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        file = folder / "evaluation.toml"
        file.write_text(HEAD.format(scenarios=scenarios) + user)
        [run] = plan(file).runs
        known = calibrate(run.network, short=True, cells=self._cells)
        return folder, one_run.run_once(run, folder, session=self._cells, calibration=known)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Cells() as cells:
        yield Lab(cells, tmp_path_factory.mktemp("warm"))


def invalid(outcome: Outcome) -> list[dict[str, str]]:
    return [reason for reason in outcome.reasons if reason["severity"] == "invalid"]


@pytest.mark.parametrize("browser", ["chromium", "light"])
def test_a_warm_cache_leaves_the_confirmation_of_the_document(lab: Lab, browser: str) -> None:
    folder, outcome = lab.carried_out(f'pages = ["agency"]\nbrowser = "{browser}"\ncache = "warm"\n')
    assert invalid(outcome) == []
    objects = trace.read_table(folder, "object")
    assert objects.height == 26
    [document] = objects.filter(pl.col("served_by") == "revalidated").rows(named=True)
    assert document["type"] == "html" and document["encoded_bytes"] < 400
    cached = objects.filter(pl.col("served_by") == "browser cache")
    assert cached.height == 25 and cached["encoded_bytes"].sum() == 0
    assert cached["last_byte"].null_count() == 0 and cached["connection"].null_count() == 25
    # Connections are cold: the document's went through TCP's and TLS's handshakes on the emulated link.
    connections = trace.read_table(folder, "connection").filter(pl.col("objects") > 0)
    [used] = connections.rows(named=True)
    assert used["connected"] - used["opened"] > 26e6 and used["tls_done"] - used["connected"] > 26e6
    assert document["first_byte"] - document["sent"] > 26e6


def test_a_page_finds_what_an_earlier_one_of_its_site_left(lab: Lab) -> None:
    user = 'pages = ["agency", "photos"]\ncache = "shared"\ntogether = true\nthink = "5 s"\n'
    folder, outcome = lab.carried_out(user)
    assert invalid(outcome) == []
    objects = trace.read_table(folder, "object")
    assert set(objects.filter(pl.col("visit") == 0)["served_by"]) == {"origin"}
    [shared] = objects.filter(pl.col("served_by") != "origin").rows(named=True)
    assert (shared["visit"], shared["served_by"]) == (1, "browser cache")
    assert shared["url"].endswith("/bootstrap.bundle.min.js")
