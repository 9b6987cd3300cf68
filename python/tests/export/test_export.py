"""Exports: what other programs read."""

import csv
import json
import sys
from datetime import datetime
from pathlib import Path

import jsonschema
import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.errors import UsageError
from wirepaint.export import export
from wirepaint.results import Results, contents, journal, journal_tables
from wirepaint.results.outcome import Outcome
from wirepaint.results.trace import polars_schema, tables, write_table

sys.path.insert(0, str(Path(__file__).parent))
from har_schema import SCHEMA

REASONS = [{"check": "server_congestion", "severity": "invalid", "found": "bbr", "expected": "fld"}]


def outcome(run):
    """One visit is invalid and one fails; all others are valid."""
    if (run.congestion, run.page, run.visit) == ("fld", "large", 1):
        return Outcome("invalid", REASONS) if run.network == "3g" else None
    return Outcome("valid")


@pytest.fixture
def folder(results_folder):
    return results_folder(lambda run: 2.0 if run.page == "large" else 1.0, 1, outcome)


def kept(folder, key):
    """Journals the run again with the present content of its folder."""
    journal_of = journal.Journal(folder)
    journal_of.done(key, 1, Outcome("valid"), contents.record(folder / "runs" / key))
    journal_of.close()


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_one_file_per_table_and_one_that_explains_the_metrics(folder, tmp_path):
    files = export(folder, "csv", tmp_path / "out")
    assert {file.name for file in files} == {f"{name}.csv" for name in [*tables(), "metrics"]}
    explained = {row["column"]: row for row in read(tmp_path / "out/metrics.csv")}
    assert set(explained) == {metric.column for metric in metrics.registry().values()}
    assert explained["page_load_time"]["unit"] == "ms"


def test_page_csv_has_axes_metrics_validity_and_reasons_of_every_run_that_ended(folder, tmp_path):
    export(folder, "csv", tmp_path / "out")
    rows = {row["run_key"]: row for row in read(tmp_path / "out/page.csv")}
    assert len(rows) == 4 + 8
    good = rows["lte-cubic-h2.user.large.v01"]
    assert {axis: good[axis] for axis in journal_tables.AXES} == {
        "scenario": "lte-cubic-h2", "backend": "testbed", "network": "lte", "congestion": "cubic",
        "initial_window": "10", "background": "none",
        "http": "h2", "proxy": "none", "user_agent": "user", "page": "large",
    }  # fmt: skip
    assert (good["valid"], good["verdict"], good["warmup"]) == ("true", "valid", "false")
    assert float(good["page_load_time"]) == 600 and float(good["idle_time"]) == 440
    assert good["speed_index"] == ""
    assert int(good["load_event"]) - int(good["navigation_start"]) == 600_000_000

    bad = rows["3g-fld-h2.user.large.v01"]
    assert (bad["valid"], json.loads(bad["reasons"])) == ("false", REASONS)
    failed = rows["lte-fld-h2.user.large.v01"]
    assert (failed["valid"], failed["state"], failed["kind"]) == ("false", "failed", "crash")
    assert good["kind"] == ""
    assert failed["cause"] == "the browser ended by itself"
    assert failed["page_load_time"] == failed["load_event"] == ""


def test_every_table_begins_with_the_conditions(folder, tmp_path):
    export(folder, "csv", tmp_path / "out")
    for name in set(tables()) - {"page"}:
        with (tmp_path / f"out/{name}.csv").open() as file:
            header = file.readline().strip().split(",")
        first = ["run_key", *journal_tables.AXES, "visit"]
        assert header[: len(first)] == first
        assert set(header[len(first) :]) == set(polars_schema(name)) - set(first)
    assert len(read(tmp_path / "out/object.csv")) == 4 * 11


def test_parquet_holds_the_same_with_types(folder, tmp_path):
    export(folder, "parquet", tmp_path / "out")
    objects = pl.read_parquet(tmp_path / "out/object.parquet")
    assert objects.height == 4 * 11
    assert objects.schema["first_byte"] == pl.Int64
    page = pl.read_parquet(tmp_path / "out/page.parquet")
    assert page.schema["page_load_time"] == pl.Float64 and page.schema["valid"] == pl.Boolean
    assert pl.read_parquet(tmp_path / "out/packet.parquet").is_empty()


def test_har_is_har_1_2_and_one_file_per_run_with_a_result(folder, tmp_path):
    files = export(folder, "har", tmp_path / "out")
    assert len(files) == 11
    for file in files:
        jsonschema.validate(json.loads(file.read_text()), SCHEMA)


@pytest.fixture
def archive(folder, tmp_path):
    export(folder, "har", tmp_path / "out")
    return json.loads((tmp_path / "out/3g-fld-h2.user.small.v01.har").read_text())["log"]


def test_the_parts_of_an_entrys_time_add_up(archive):
    for entry in archive["entries"]:
        parts = [entry["timings"][part] for part in ("blocked", "dns", "connect", "send", "wait", "receive")]
        assert sum(part for part in parts if part >= 0) == pytest.approx(entry["time"])
        assert entry["timings"]["dns"] == -1
        assert entry["timings"]["ssl"] <= max(entry["timings"]["connect"], 0)


def test_the_first_request_of_a_connection_carries_its_handshake(archive):
    document, style, _, script = archive["entries"]
    assert document["timings"] == pytest.approx(
        {"blocked": 0, "dns": -1, "connect": 52, "ssl": 26, "send": 0, "wait": 28, "receive": 10}
    )
    assert style["timings"]["connect"] == style["timings"]["ssl"] == -1
    assert script["timings"] == pytest.approx(
        {"blocked": 1, "dns": -1, "connect": 26, "ssl": -1, "send": 0, "wait": 32, "receive": 50}
    )


def test_connections_priorities_and_initiators_are_filled(archive):
    assert [entry["connection"] for entry in archive["entries"]] == ["1", "1", "1", "2"]
    assert {entry["_priority"] for entry in archive["entries"]} == {"High"}
    assert [entry["_initiator"] for entry in archive["entries"]] == [None, *["https://a.test/"] * 3]
    assert archive["entries"][0]["serverIPAddress"] == "10.1.0.1"
    assert archive["entries"][0]["request"]["httpVersion"] == "HTTP/2"


def test_the_page_has_its_instants_and_the_runs_verdict(archive):
    (page,) = archive["pages"]
    assert page["pageTimings"] == pytest.approx(
        {
            "onContentLoad": 220, "onLoad": 300, "_firstPaint": 205, "_firstContentfulPaint": 210,
            "_largestContentfulPaint": 250, "_viewportComplete": None,
        }
    )  # fmt: skip
    assert page["_run"]["verdict"] == "valid" and page["_run"]["network"] == "3g"
    began = datetime.fromisoformat(page["startedDateTime"])
    assert began.timestamp() == pytest.approx(1_760_000_000.1)


def test_recorded_response_headers_come_from_the_run_description(folder, tmp_path):
    key = "lte-cubic-h2.user.small.v01"
    response = {
        "method": "GET",
        "url": "https://a.test/style.css",
        "headers": [["content-type", "text/css; x"]],
    }
    (folder / "runs" / key / "run.json").write_text(
        json.dumps({"sites": {"page": {"responses": [response]}}})
    )
    kept(folder, key)
    export(folder, "har", tmp_path / "out")
    entries = json.loads((tmp_path / f"out/{key}.har").read_text())["log"]["entries"]
    assert entries[1]["response"]["content"]["mimeType"] == "text/css; x"
    assert entries[1]["response"]["headers"] == [{"name": "content-type", "value": "text/css; x"}]
    assert entries[0]["response"]["content"]["mimeType"] == "text/html"


def test_a_failed_request_is_in_the_archive_without_invented_times(folder, tmp_path):
    key = "lte-cubic-h2.user.small.v01"
    rows = Results.open(folder).trace(key, "object").to_dicts()
    lost = rows[1] | {"status": None, "failed": "net::ERR_CONNECTION_RESET", "connection": None,
                      "sent": None, "first_byte": None, "last_byte": None, "encoded_bytes": None}  # fmt: skip
    write_table(folder / "runs" / key, "object", [rows[0], lost, *rows[2:]])
    kept(folder, key)
    export(folder, "har", tmp_path / "out")
    document = json.loads((tmp_path / f"out/{key}.har").read_text())
    jsonschema.validate(document, SCHEMA)
    entry = document["log"]["entries"][1]
    assert entry["time"] == 0 and entry["response"]["status"] == 0
    assert entry["response"]["_error"] == "net::ERR_CONNECTION_RESET"
    assert "connection" not in entry


def test_an_unknown_form_is_refused_with_the_known_ones(folder, tmp_path):
    with pytest.raises(UsageError, match='--to: found "xlsx"; accepted: one of csv, parquet, har'):
        export(folder, "xlsx", tmp_path / "out")


def test_a_file_in_place_of_the_folder_is_refused(folder, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match=r"out: found file exists; accepted: a folder that can be written"):
        export(folder, "csv", tmp_path / "out")


@pytest.mark.parametrize("form", ["csv", "parquet", "har"])
@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(b"PAR1")], ids=["missing", "damaged"]
)
def test_nothing_is_written_where_a_table_is_missing_or_damaged(folder, tmp_path, form, damage):
    damage(folder / "runs/lte-cubic-h2.user.small.v01/connection.parquet")
    with pytest.raises(UsageError, match=r"v01/connection.parquet: found (no such|a damaged) file"):
        export(folder, form, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("form", "name"), [("csv", "page.csv"), ("har", "3g-fld-h2.user.small.v01.har")])
def test_no_link_is_followed_to_a_file_outside(folder, tmp_path, form, name):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to(outside)
    export(folder, form, tmp_path / "out")
    assert outside.read_text() == "mine" and not (tmp_path / "out" / name).is_symlink()
    (folder / "export").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="export: found a symbolic link"):
        export(folder, form, folder / "export")
