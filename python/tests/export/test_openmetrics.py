"""OpenMetrics, read back by Prometheus's own parser; single tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from wirepaint import metrics
from wirepaint.cli import invoke
from wirepaint.export import openmetrics
from wirepaint.results import Results
from wirepaint.results.outcome import Outcome


def test_the_parser_of_prometheus_finds_the_medians_in_base_units(simulated: Path, tmp_path: Path) -> None:
    assert invoke(["export", str(simulated), "--to", "openmetrics", "-o", str(tmp_path)]) == 0
    text = (tmp_path / openmetrics.NAME).read_text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    results = Results.open(simulated)
    counted = metrics.table(results).filter(~pl.col("warmup"))
    for http in ("h1", "h2"):
        of_level = counted.filter(pl.col("http") == http)
        [load] = [s for s in families["wirepaint_page_load_time_seconds"].samples if s.labels["http"] == http]
        assert load.value == pytest.approx(of_level["page_load_time"].median() / 1000)
        [size] = [s for s in families["wirepaint_largest_object_bytes"].samples if s.labels["http"] == http]
        assert size.value == pytest.approx(of_level["largest_object"].median() * 1000)
        [visits] = [s for s in families["wirepaint_visits"].samples if s.labels["http"] == http]
        assert visits.value == 4
        created = datetime.fromisoformat(results.manifest["created"])
        assert float(visits.timestamp) == created.timestamp()
    assert families["wirepaint_page_load_time_seconds"].unit == "seconds"
    assert "wirepaint_broken" not in families and "wirepaint_page_type" not in families


def test_visits_that_do_not_count_are_there_by_back_end_and_end(
    results_folder: Callable[..., Path],
) -> None:
    def outcome(run):
        lost = (run.backend, run.congestion, run.network, run.page) == ("testbed", "fld", "lte", "small")
        return Outcome("suspect" if lost else "valid")

    results = Results.open(results_folder(lambda run: 1.0, 2, outcome, backend="both"))
    families = {each.name: each for each in text_string_to_metric_families(openmetrics.text(results))}
    [lost] = families[openmetrics.LEFT_OUT].samples
    axes = {axis: lost.labels[axis] for axis in ("backend", "congestion", "network", "page", "end")}
    assert axes == {
        "backend": "testbed", "congestion": "fld", "network": "lte", "page": "small", "end": "suspect",
    }  # fmt: skip
    assert lost.value == 2
    counted = [s.labels["backend"] for s in families["wirepaint_visits"].samples]
    assert (counted.count("testbed"), counted.count("simulator")) == (7, 8)


def test_hostile_names_stay_inside_their_label(simulated: Path) -> None:
    results = Results.open(simulated)
    results.manifest["title"] = title = 'a"} 1\nevil{x="\\'
    families = list(text_string_to_metric_families(openmetrics.text(results)))
    assert {sample.labels["evaluation"] for family in families for sample in family.samples} == {title}
    assert all(family.name.startswith("wirepaint_") for family in families)


def test_a_table_is_exported_alone(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = ["export", str(simulated), "-o", str(tmp_path)]
    assert invoke([*export, "--to", "csv", "--table", "page"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["page.csv"]
    assert invoke([*export, "--to", "csv", "--table", "page, metrics"]) == 0
    assert (tmp_path / "metrics.csv").is_file()
    assert invoke([*export, "--to", "csv", "--table", "pages"]) == 2
    assert '--table: found "pages"; accepted: one of run, page, object' in capsys.readouterr().err
    assert invoke([*export, "--to", "har", "--table", "page"]) == 2
    assert "--table: found page with --to har; accepted: --to csv or --to parquet" in capsys.readouterr().err
