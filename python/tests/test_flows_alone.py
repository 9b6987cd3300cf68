"""An evaluation of flows without a page, through the user's commands, on the simulator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint import figures, metrics
from wirepaint.results import Results

WIREPAINT = Path(sys.executable).with_name("wirepaint")
EVALUATION = """
title = "Two congestion controls beside a call"
backend = "simulator"
repeats = 3
duration = "8 s"
[scenarios]
network = ["lte"]
congestion = ["cubic", "fld"]
[[flows]]
name = "downloads"
count = 4
bulk = "endless"
[[flows]]
name = "call"
rate = "64 kbit/s"
write = "160 B"
stop = "7 s"
congestion = "reno"
"""


def wirepaint(*arguments: object) -> str:
    return subprocess.run(
        [WIREPAINT, *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flows")
    (folder / "flows.toml").write_text(EVALUATION)
    wirepaint("run", folder / "flows.toml", "-o", folder / "results")
    return folder / "results"


def test_each_name_of_flows_has_its_row_in_each_run(results: Path) -> None:
    table = metrics.table(Results.open(results)).filter(~pl.col("warmup"))
    assert table.group_by("page").len().sort("page").rows() == [("call", 6), ("downloads", 6)]
    shares = table.group_by("run_key").agg(pl.col("flow_share").sum())["flow_share"]
    assert shares.to_list() == pytest.approx([100.0] * 6)
    downloads = table.filter(pl.col("page") == "downloads")
    # 1448 of 1514 bytes of a frame are payload.
    assert (4 * downloads["goodput"]).to_list() == pytest.approx([25 * 1448 / 1514] * 6, rel=0.05)
    assert table["page_load_time"].null_count() == table.height


def test_the_commands_tell_the_flows(results: Path, tmp_path: Path) -> None:
    told = json.loads(wirepaint("flows", results, "--json"))["flows"]
    assert [(row["scenario"], row["flow"], row["runs"]) for row in told] == [
        ("lte-cubic", "downloads", 3), ("lte-cubic", "call", 3),
        ("lte-fld", "downloads", 3), ("lte-fld", "call", 3),
    ]  # fmt: skip
    assert "p99" in wirepaint("flows", results)
    compared = json.loads(wirepaint("compare", results, "--json"))["comparisons"]
    assert {"goodput", "message-delay-p50", "jain-index"} <= {row["metric"] for row in compared}
    assert {row["page"] for row in compared if row["metric"] == "goodput"} == {None, "downloads", "call"}
    wirepaint("report", results, "-o", tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    assert 'id="flows"' in report and "serves these flows" in report and "0 pages" not in report
    wirepaint("export", results, "--to", "csv", "-o", tmp_path / "csv")
    exported = pl.read_csv(tmp_path / "csv/flow.csv", infer_schema_length=None)
    assert exported["flow"].n_unique() == 5


def test_the_figure_adds_up_to_the_link(results: Path) -> None:
    drawing = figures.draw(figures.Evidence(Results.open(results)), "goodput-over-time")
    assert drawing is not None
    frame = drawing.frame
    assert set(frame["series"]) == {"CUBIC", "FLD_TCP"} and set(frame["flow"]) == {"downloads", "call"}
    full = frame.filter(pl.col("time").is_between(3, 5)).group_by("series", "time").agg(pl.col("value").sum())
    assert full["value"].to_list() == pytest.approx([25 * 1448 / 1514] * 6, rel=0.05)


def test_a_run_of_flows_is_repeated_from_its_run_json(results: Path, tmp_path: Path) -> None:
    run = results / "runs/lte-fld.flows.v01"
    said = json.loads(wirepaint("repeat", run / "run.json", "-o", tmp_path / "again", "--json"))
    assert (said["backend"], said["verdict"]) == ("simulator", "valid")
    first, again = (pl.read_parquet(folder / "flow.parquet") for folder in (run, tmp_path / "again"))
    assert first.equals(again)
