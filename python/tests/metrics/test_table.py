"""Metrics of a whole evaluation."""

import json

import pytest

from wirepaint import metrics
from wirepaint.errors import UsageError
from wirepaint.metrics import _computing
from wirepaint.results import Results, trace
from wirepaint.results.outcome import Outcome

REASONS = [{"check": "congestion", "severity": "invalid", "found": "bbr", "expected": "fld"}]


def outcome(run):
    if run.page == "large" and run.congestion == "fld" and run.visit == 1:
        return None if run.network == "lte" else Outcome("invalid", REASONS)
    return Outcome("valid")


@pytest.fixture
def results(results_folder):
    return Results.open(results_folder(lambda run: 2.0 if run.page == "large" else 1.0, 2, outcome))


def test_a_row_is_a_valid_run_with_its_axes_and_metrics(results):
    table = metrics.table(results)
    assert table.height == 4 + 2 * 2 * 2 * 2 - 2  # warm-ups, runs, less those without a valid result
    assert set(table["valid"]) == {True}
    small = table.filter((table["page"] == "small") & (table["visit"] == 1))
    assert set(small["page_load_time"]) == {300.0}
    assert set(table.filter(table["page"] == "large")["page_load_time"]) == {600.0}
    assert json.loads(table["missing"][0])["speed-index"] == "the visit has no speed_index"


def test_rows_stand_in_the_order_of_the_evaluation_file(results):
    table = metrics.table(results)
    assert table["network"].unique(maintain_order=True).to_list() == ["lte", "3g"]
    assert table["congestion"].unique(maintain_order=True).to_list() == ["cubic", "fld"]
    assert table["page"].unique(maintain_order=True).to_list() == ["small", "large"]


def test_all_verdicts_show_the_invalid_run_with_reasons_and_the_failed_one_without_a_number(results):
    table = metrics.table(results, verdicts=None)
    assert table.height == 4 + 16
    invalid = table.filter(table["verdict"] == "invalid")
    assert invalid["valid"].to_list() == [False]
    assert json.loads(invalid["reasons"][0]) == REASONS
    failed = table.filter(table["state"] == "failed")
    assert failed["valid"].to_list() == [False]
    assert failed["cause"].to_list() == ["the browser ended by itself"]
    columns = [metric.column for metric in metrics.registry().values()]
    assert set(failed.select(columns).row(0)) == {None}


def test_a_distribution_joins_the_items_with_their_runs(results):
    items = metrics.distribution("connection-duration", results)
    assert items.height == 2 * metrics.table(results).height
    plain = items.filter((items["protocol"] == "http/1.1") & (items["page"] == "large"))
    assert set(plain["value"]) == {216.0}
    assert metrics.distribution("page-load-time", results).is_empty()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pntt", "page-net-transfer-time"),
        ("page-load-tim", "page-load-time"),
        ("zz9", ""),
    ],
)
def test_an_unknown_metric_is_refused_with_the_one_that_is_meant(name: str, meant: str):
    with pytest.raises(UsageError) as caught:
        metrics.get(name)
    hint = f' (did you mean "{meant}"?)' if meant else ""
    assert str(caught.value) == f'metric: found "{name}"; accepted: a name of `wirepaint metric list`{hint}'


@pytest.mark.parametrize("name", ["LCP", "lcp", "largest_contentful_paint", "largest-contentful-paint"])
def test_a_metric_is_known_by_its_short_name_too(name: str):
    assert metrics.get(name).name == metrics.full(name) == "largest-contentful-paint"


def test_a_text_that_equal_users_do_not_share_is_missing_with_a_reason(tmp_path):
    pages = [{"visit": at, "user_agent": f"chrome.{at + 1}", "page": "news"} for at in range(3)]
    connections = [{"visit": at, "objects": 1, "encrypted": at != 1} for at in range(3)]
    tables = {
        name: trace.write_table(tmp_path, name, rows)
        for name, rows in {"page": pages, "connection": connections}.items()
    }
    [row] = _computing.computed([_computing.Run("key", "digest", tables.get)], [metrics.get("page-type")])
    assert (row["page_type"], row["page_type: missing"]) == (None, "equal users differ in it")
