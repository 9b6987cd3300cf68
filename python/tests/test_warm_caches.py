"""Browsers with warm caches, through the user's commands, on the simulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint.results import Results

WIREPAINT = Path(sys.executable).with_name("wirepaint")
EVALUATION = """
title = "Cold, warm, shared"
backend = "simulator"
warmup = false
[scenarios]
network = ["lte"]
[[user_agents]]
name = "cold"
pages = ["agency"]
visits = 1
[[user_agents]]
name = "warm"
pages = ["agency"]
visits = 1
cache = "warm"
[[user_agents]]
name = "reader"
pages = ["agency", "kit", "photos"]
visits = 1
together = true
think = "1 s"
cache = "shared"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("warm")
    (folder / "warm.toml").write_text(EVALUATION)
    command = [WIREPAINT, "run", folder / "warm.toml", "--no-rehearse", "-o", folder / "results"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return Results.open(folder / "results")


def test_only_what_has_to_be_confirmed_crosses_the_link(results: Results) -> None:
    key = "lte-cubic-h2.{0}.agency.v01"
    cold, warm = (results.trace(key.format(name), "object") for name in ("cold", "warm"))
    assert cold["url"].sort().to_list() == warm["url"].sort().to_list()
    assert set(cold["served_by"]) == {"origin"}
    # The document is "no-cache" and has a date, everything else is fresh for a day.
    [document] = warm.filter(pl.col("served_by") == "revalidated").rows(named=True)
    assert document["type"] == "html" and 50 < document["encoded_bytes"] < 400
    cached = warm.filter(pl.col("served_by") == "browser cache")
    assert cached.height == warm.height - 1 and cached["encoded_bytes"].sum() == 0
    assert cached["sent"].null_count() == cached["connection"].null_count() == cached.height
    assert cached["last_byte"].null_count() == 0
    loads = [
        results.trace(key.format(name), "page")
        .select(pl.col("load_event") - pl.col("navigation_start"))
        .item()
        for name in ("cold", "warm")
    ]
    assert loads[1] < 0.7 * loads[0]
    # The one connection that the document needs, and it is cold.
    assert results.trace(key.format("warm"), "connection")["objects"].to_list() == [1]


def test_a_page_finds_what_an_earlier_one_of_its_site_left(results: Results) -> None:
    objects = results.trace("lte-cubic-h2.together.v01", "object")
    # agency and photos are pages of startbootstrap.test, and both load one script from jsdelivr.net.
    assert set(objects.filter(pl.col("page") != "photos")["served_by"]) == {"origin"}
    [shared] = objects.filter(pl.col("served_by") != "origin").rows(named=True)
    assert (shared["page"], shared["served_by"]) == ("photos", "browser cache")
    assert shared["url"].endswith("/bootstrap.bundle.min.js")
