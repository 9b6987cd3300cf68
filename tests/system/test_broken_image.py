"""Chromium stops reading an image that it cannot show. Such a visit is what the page asks for, and counts."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from wirepaint import pages
from wirepaint.evaluation import plan
from wirepaint.results import trace
from wirepaint.runners.testbed import one_run
from wirepaint.runners.testbed.calibrate import calibrate
from wirepaint.runners.testbed.cells import Cells

pytestmark = pytest.mark.usefixtures("root")

EVALUATION = """
title = "A broken image"
backend = "testbed"
warmup = false
[scenarios]
network = ["lte"]
http = ["{http}"]
[[user_agents]]
pages = ["page"]
visits = 1
"""


@pytest.mark.parametrize("http", ["h1", "h2"])
def test_a_broken_image_is_a_note(tmp_path: Path, http: str) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<!doctype html><title>t</title><h1>A page</h1><img src=broken.png>")
    (site / "broken.png").write_bytes(random.Random(1).randbytes(300_000))
    pages.import_folder(site, tmp_path / "page")
    file = tmp_path / "evaluation.toml"
    file.write_text(EVALUATION.format(http=http))
    folder = tmp_path / "run"
    folder.mkdir()
    [run] = plan(file).runs
    with Cells() as cells:
        known = calibrate(run.network, short=True, cells=cells)
        outcome = one_run.run_once(run, folder, session=cells, calibration=known)
    [reason] = [reason for reason in outcome.reasons if reason["check"] == "bytes"]
    assert reason["severity"] == "note"
    assert "https://site.example/broken.png, then the browser stopped: a broken image" in reason["found"]
    read = trace.read_table(folder, "object").filter(pl.col("url").str.ends_with("broken.png"))
    assert 0 < read["encoded_bytes"].item() < 100_000
