"""The rows from which a number was computed."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.cli import invoke
from wirepaint.errors import UsageError
from wirepaint.results import Results

RUN = "lte-cubic-h1.user.agency.v01"


@pytest.fixture(scope="module")
def results(simulated: Path) -> Results:
    return Results.open(simulated)


def used(results: Results, metric: str) -> dict[str, metrics.Used]:
    return {one.table: one for one in metrics.explain(results, metric, RUN).used}


def test_the_number_is_the_one_of_the_table(results: Results) -> None:
    row = metrics.table(results).row(by_predicate=pl.col("run_key") == RUN, named=True)
    for name, metric in metrics.registry().items():
        if metric.over == "visit" and name != "broken":
            assert metrics.explain(results, name, RUN).reading.value == row[metric.column], name


def test_the_columns_are_those_that_the_metric_reads(results: Results) -> None:
    assert used(results, "page-load-time")["page"].columns == ("navigation_start", "load_event")
    assert used(results, "largest-object")["object"].columns == ("encoded_bytes",)


def test_a_row_counts_if_the_number_is_another_without_it(results: Results) -> None:
    [largest] = used(results, "largest-object")["object"].counted.iter_rows(named=True)
    objects = results.trace(RUN, "object")
    assert (
        objects["encoded_bytes"][largest["row"]] == objects["encoded_bytes"].max() == largest["encoded_bytes"]
    )
    carried = used(results, "bytes-transferred")
    assert set(carried) == {"page"} and carried["page"].counted["row"].to_list() == [0]


def test_of_a_moment_the_requests_that_ended_last_before_it_are_named(
    results: Results, simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = metrics.explain(results, "lcp", RUN)
    [moment], objects = found.used, results.trace(RUN, "object")
    start, paint = moment.counted.select("navigation_start", "largest_contentful_paint").row(0)
    ended = sorted((end for end in objects["last_byte"].drop_nulls() if end <= paint), reverse=True)
    assert found.before is not None
    assert found.before["ended_ms"].to_list() == pytest.approx([(end - start) / 1e6 for end in ended[:3]])
    assert found.before["url"][0] == objects.filter(pl.col("last_byte") == ended[0])["url"][0]
    assert metrics.explain(results, "bytes-transferred", RUN).before is None
    assert invoke(["explain", str(simulated), "lcp", RUN]) == 0
    assert "Requests that ended last before it" in capsys.readouterr().out


def test_in_a_long_table_the_same_rows_are_found(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    singly = used(results, "largest-object")["object"]
    monkeypatch.setattr("wirepaint.metrics._explain.SINGLY", 2)
    assert used(results, "largest-object")["object"].counted.equals(singly.counted)
    monkeypatch.setattr("wirepaint.metrics._explain.MOST_TRIALS", 1)
    assert used(results, "largest-object")["object"].untried > 0


def test_a_missing_number_is_explained_by_its_reason(
    results: Results, simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", str(simulated), "goodput", RUN]) == 2
    assert "no name of flows; accepted: a run of flows" in capsys.readouterr().err
    assert invoke(["explain", str(simulated), "cache-hit-share", RUN, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["value"] is None or said["reason"] is None
    assert said["definition"].startswith("Response bytes of the page that a proxy's cache answered with")


@pytest.mark.parametrize(
    ("name", "run", "visit", "words"),
    [
        ("page-load-tim", RUN, 0, 'metric: found "page-load-tim"'),
        ("page-load-time", RUN.replace("v01", "v09"), 0, "no run lte-cubic-h1.user.agency.v09 with a result"),
        ("page-load-time", RUN, 3, "no visit 3; accepted: 0"),
    ],
)
def test_what_does_not_exist_is_refused(
    results: Results, name: str, run: str, visit: int, words: str
) -> None:
    with pytest.raises(UsageError) as raised:
        metrics.explain(results, name, run, visit)
    assert words in str(raised.value)


def test_the_command_prints_definition_value_and_rows(
    simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", str(simulated), "largest-object", RUN]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"simulator: largest-object of {RUN}: ") and said[0].endswith(" kB")
    assert said[1] == "Response bytes of the largest object of the page."
    assert said[3].startswith("Table object: 1 of ")
    assert said[4].split() == ["row", "url", "encoded_bytes"]


def test_without_a_run_the_command_names_metrics_and_median_runs(
    results: Results, simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", str(simulated)]) == 0
    metrics_line, runs_line, head, *rows, ask = capsys.readouterr().out.splitlines()
    assert metrics_line.startswith("Metrics: page-load-time, ") and "largest-object" in metrics_line
    assert runs_line.startswith("Runs: the median visits of page-load-time;")
    assert head.split() == ["backend", "run", "page", "page-load-time"]
    assert len(rows) == 2 and all(row.split()[0] == "simulator" for row in rows)
    key = rows[0].split()[1]
    assert ask == f"Ask: wirepaint explain {simulated} page-load-time {key}"
    table = metrics.table(results).filter(~pl.col("warmup") & (pl.col("http") == "h1"))
    loads = dict(table.select("run_key", "page_load_time").iter_rows())
    middle = table["page_load_time"].median()
    assert key == min(loads, key=lambda run: abs(loads[run] - middle))


def test_of_a_metric_alone_its_own_medians_are_named(
    simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", str(simulated), "page-type", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {row["metric"] for row in said["runs"]} == {"page-type"} and len(said["runs"]) == 2
    assert invoke(["explain", str(simulated), "page-load-tim"]) == 2
    assert 'did you mean "page-load-time"' in capsys.readouterr().err
    assert invoke(["explain", str(simulated), "verdict"]) == 0
    assert capsys.readouterr().out == "All runs are valid.\n"
