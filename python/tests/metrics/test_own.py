"""Metrics of a user's own, in a file that the evaluation names."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from simulated_runs import OWN_METRIC, SIMULATED

from wirepaint import metrics
from wirepaint.cli import invoke
from wirepaint.errors import UsageError
from wirepaint.results import Results


def test_it_stands_beside_those_of_wirepaint_in_table_comparison_export_and_report(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results.open(simulated)
    table = metrics.table(results)
    sizes = results.all("object").group_by("run_key").agg(pl.col("encoded_bytes").max() / 1000)
    joined = table.filter(~pl.col("warmup")).join(sizes, on="run_key")
    assert joined.height == 8
    assert joined["largest_object"].to_list() == joined["encoded_bytes"].to_list()
    assert invoke(["compare", str(simulated), "--factor", "http", "--json"]) == 0
    compared = {row["metric"] for row in json.loads(capsys.readouterr().out)["comparisons"]}
    assert {"largest-object", "page-load-time"} <= compared
    assert invoke(["export", str(simulated), "--to", "csv", "-o", str(tmp_path / "csv")]) == 0
    explained = pl.read_csv(tmp_path / "csv/metrics.csv").filter(pl.col("column") == "largest_object")
    assert explained["summary"].to_list() == ["Response bytes of the largest object of the page."]
    assert invoke(["report", str(simulated), "-o", str(tmp_path / "r.html")]) == 0
    assert "Largest object" in (tmp_path / "r.html").read_text()


def test_a_mistake_in_it_is_a_reason_with_its_line_and_loses_no_other_metric(simulated: Path) -> None:
    table = metrics.table(Results.open(simulated))
    assert table["broken"].null_count() == table.height
    assert table["largest_object"].null_count() == 0
    assert json.loads(table["missing"][0])["broken"].startswith("mine.py line 13: ColumnNotFoundError: ")


def test_a_mistake_in_it_is_said_once_by_run_and_by_compare(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "broken has no value in 10 visits: mine.py line 13: ColumnNotFoundError: "
    shutil.copytree(simulated, tmp_path / "r")
    shutil.copy(simulated.parent / "mine.py", tmp_path / "r/mine.py")
    capsys.readouterr()
    assert invoke(["run", str(tmp_path / "r"), "--no-rehearse", "--trust"]) == 0
    assert capsys.readouterr().err.count(said) == 1
    assert invoke(["compare", str(simulated), "--metric", "broken,largest-object"]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(f"! {said}") == 1
    assert invoke(["compare", str(simulated), "--metric", "largest-object"]) == 0
    assert "mine.py" not in capsys.readouterr().out, "nobody asked for it"


def test_beside_an_option_only_what_nobody_trusts_and_what_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("raise SystemExit('was executed')")
    Path("e.toml").write_text(SIMULATED)
    assert invoke(["run", "e.toml", "--cc", "./nosuch.c"]) == 2
    assert capsys.readouterr().err == (
        f"wirepaint: --cc: {tmp_path}/nosuch.c: found no such file or directory; "
        "accepted: a C file that can be read\n"
    )
    assert invoke(["cc", "new", "given"]) == 0
    capsys.readouterr()
    assert invoke(["run", "e.toml", "--cc", "./given.c"]) == 2
    said = capsys.readouterr().err
    assert 'e.toml: metrics[0]: found "./mine.py"; accepted: files of metrics that you trust' in said
    assert "given.c;" not in said and "C files" not in said


def test_the_manifest_has_its_text_and_hash(simulated: Path) -> None:
    [entry] = Results.open(simulated).manifest["evaluation"]["metrics"]
    assert entry["file"] == "mine.py"
    assert entry["text"] == OWN_METRIC
    assert entry["sha256"] == hashlib.sha256(OWN_METRIC.encode()).hexdigest()


def test_nobody_runs_it_without_consent(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('was executed')")
    (tmp_path / "e.toml").write_text(SIMULATED)
    assert invoke(["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "r")]) == 2
    said = capsys.readouterr().err
    assert 'metrics[0]: found "./mine.py"; accepted: files of metrics that you trust' in said
    assert said.rstrip().endswith("--trust") and not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise SystemExit('no')", "mine.py line 1: SystemExit: no"),
        ("def f(:", "mine.py line 1: SyntaxError"),
        ("import no_such_module", "mine.py line 1: ModuleNotFoundError"),
        ("from wirepaint.metrics.idle_time import idle_time", "no metric in mine.py"),
        (OWN_METRIC.replace("largest_object", "idle_time"), "a metric idle-time in mine.py"),
        (OWN_METRIC.replace("largest_object", "verdict"), "a metric verdict in mine.py"),
    ],
)
def test_a_file_that_cannot_serve_is_refused_before_anything_runs(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "e.toml").write_text(SIMULATED)
    arguments = ["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "r"), "--trust", "--no-rehearse"]
    assert invoke(arguments) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_value_that_is_no_number_is_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN_METRIC.replace(".max() / 1000", '.max() * float("nan")'))
    entry = metrics.read(path)
    metrics.trust(entry["sha256"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wirepaint.metrics._registry._of_users", {})
        metrics.enrol([entry], "here")
        reading = metrics.get("largest-object").read(
            lambda _: pl.DataFrame({"visit": [0], "encoded_bytes": [1]})
        )
    assert reading.value is None and reading.reason == "mine.py gave nan, not a finite number"


def test_a_changed_file_is_taken_by_the_same_command_without_a_run_again(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(simulated, tmp_path / "results")
    (tmp_path / "mine.py").write_text(OWN_METRIC.replace("/ 1000", "/ 500"))
    (tmp_path / "e.toml").write_text(SIMULATED)
    before = metrics.table(Results.open(tmp_path / "results"))["largest_object"]
    arguments = ["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "results"), "--no-rehearse", "--trust"]
    assert invoke(arguments) == 0
    after = metrics.table(Results.open(tmp_path / "results"))
    assert after["largest_object"].to_list() == (2 * before).to_list()
    assert set(Results.open(tmp_path / "results").attempts()["number"]) == {1}


def test_in_results_of_others_it_is_null_until_its_text_is_trusted(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    table = metrics.table(Results.open(simulated))
    assert table["largest_object"].null_count() == table.height and table["page_load_time"].null_count() == 0
    assert json.loads(table["missing"][0])["largest-object"].startswith("mine.py is not trusted here")
    assert invoke(["metric", "trust", str(simulated)]) == 2
    assert OWN_METRIC in capsys.readouterr().out
    assert invoke(["metric", "trust", str(simulated), "--trust"]) == 0
    assert metrics.table(Results.open(simulated))["largest_object"].null_count() == 0


def test_an_edited_manifest_is_noticed(simulated: Path) -> None:
    results = Results.open(simulated)
    results.manifest["evaluation"]["metrics"][0]["text"] += "\n"
    with pytest.raises(UsageError, match=r"another text of mine\.py than its SHA-256 says"):
        metrics.own(results)


def test_a_file_that_the_command_line_names_is_found_there_and_needs_no_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN_METRIC)
    line = ["run", "agency", "--network", "lte", "--visits", "1", "--backend", "simulator", "--no-rehearse"]
    assert invoke([*line, "--metrics", "./other.py", "-o", "r"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"wirepaint: --metrics: {tmp_path}/other.py: found no such file or directory")
    assert invoke([*line, "--metrics", "mine.py", "-o", "r"]) == 0
    assert metrics.table(Results.open(tmp_path / "r"))["largest_object"].null_count() == 0


def test_a_metric_of_results_is_shown_with_them_and_the_refusal_says_so(
    simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["metric", "show", "largest-object"]) == 2
    assert "or the name and RESULTS, for a metric of their own files" in capsys.readouterr().err
    assert invoke(["metric", "show", "largest-object", str(simulated)]) == 0
    assert "mine.py" in capsys.readouterr().out
