"""``wirepaint.open``: results in a notebook."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import wirepaint
from wirepaint.errors import UsageError
from wirepaint.results import Results
from wirepaint.statistics.compare import compare_results


def test_a_comparison_is_the_one_of_the_command(simulated: Path) -> None:
    frame = wirepaint.open(simulated).compare("http", ["page-load-time"])
    [row] = compare_results(Results.open(simulated), "http", ["page-load-time"], by_page=False)
    assert frame.select("metric", "baseline", "candidate", "verdict", "difference").rows() == [
        ("page-load-time", "h1", "h2", row.verdict, row.shift.value)
    ]


def test_a_comparison_is_of_the_axis_that_varies_and_names_its_back_end(simulated: Path) -> None:
    rows = wirepaint.open(simulated).compare(metric=["page-load-time", "objects"])
    assert rows.select("backend", "factor", "metric", "primary").rows() == [
        ("simulator", "http", "page-load-time", True),
        ("simulator", "http", "objects", False),
    ]


def test_runs_metrics_and_tables_are_frames(simulated: Path) -> None:
    opened = wirepaint.open(str(simulated))
    assert opened.runs.filter(~pl.col("warmup")).height == 8
    measured = opened.metrics().filter(~pl.col("warmup"))
    run = measured["run_key"][0]
    page = opened.table("page", run)
    load_ms = (page["load_event"] - page["navigation_start"]).item() / 1e6
    assert measured["page_load_time"][0] == load_ms
    assert opened.table("page").height == 8
    assert repr(opened) == "<h1 or h2?, on the simulator: 10 valid>"


def test_a_table_that_does_not_exist_is_refused_with_those_that_do(simulated: Path) -> None:
    with pytest.raises(UsageError, match=r'table: found "objects"; accepted: .*did you mean "object"'):
        wirepaint.open(simulated).table("objects")
