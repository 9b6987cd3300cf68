"""What the page gets of many visits: some of the values, spread as all of them are."""

from __future__ import annotations

import json
from base64 import b64decode
from gzip import decompress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from report.opened import SHELL, Shown
from wirepaint import report
from wirepaint.report import values
from wirepaint.results import Results


def test_each_value_that_stays_stands_for_equally_many() -> None:
    random = np.random.default_rng(3)
    sizes = {"a": 1000, "b": 95, "c": 3}
    table = pl.concat(
        pl.DataFrame({"page": [name] * n, "visit": range(n), "x": random.permutation(n), "y": [1.0] * n})
        for name, n in sizes.items()
    )
    table = table.with_columns(y=pl.when(pl.col("x") % 2 == 0).then("y"))
    thin = values.thinned(table, ["page"], ["x", "y"], 10)
    kept = dict(thin.group_by("page", maintain_order=True).agg("x").iter_rows())
    assert {name: len(found) for name, found in kept.items()} == {"a": 100, "b": 9, "c": 1}
    assert kept["a"] == list(range(5, 1000, 10))
    assert kept["c"] == [1]
    assert thin.filter(page="a")["y"].count() == 50  # what has no value stays as frequent


@pytest.mark.skipif(not SHELL.exists(), reason=f"{SHELL} is missing")
def test_a_page_of_many_visits_says_how_many_a_value_stands_for(
    monkeypatch: pytest.MonkeyPatch, browser: Any, results: Results, tmp_path: Path
) -> None:
    monkeypatch.setattr(values, "MOST_VISITS", 20)
    page = report.build(results.folder, tmp_path / "report.html")
    packed = page.read_text().split('id="values">')[1].split("<")[0]
    data = json.loads(decompress(b64decode(packed)))
    assert data["each"] > 1
    assert data["visit"] == []
    assert len(data["metrics"][0]["values"]) == len(data["rows"]["page"])
    shown = Shown(browser, page)
    note = shown.page.locator("#distributions .note").filter(has_text=f"each for {data['each']} visits")
    note.wait_for()
    assert shown.complaints == []
