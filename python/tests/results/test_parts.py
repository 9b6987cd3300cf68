"""Runs whose traces are not kept: their metrics stay, are checked, and runs come back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.cli import invoke
from wirepaint.errors import UsageError
from wirepaint.results import Results, parts
from wirepaint.results.verify import verify
from wirepaint.runners import simulator

EVALUATION = """\
title = "h1 or h2?"
backend = "simulator"
[results]
keep = "{keep}"
[scenarios]
network = ["lte"]
http = ["h1", "h2"]
[[user_agents]]
pages = ["agency"]
visits = {visits}
"""


def carried_out(folder: Path, keep: str, visits: int = 4, *more: str) -> Results:
    (folder / "e.toml").write_text(EVALUATION.format(keep=keep, visits=visits))
    asked = ["run", str(folder / "e.toml"), "-o", str(folder / "r"), "--no-rehearse", "--quiet", *more]
    assert invoke(asked) == 0
    return Results.open(folder / "r")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return carried_out(tmp_path_factory.mktemp("whole"), "all")


@pytest.fixture
def thin(tmp_path: Path) -> Results:
    return carried_out(tmp_path, "metrics")


def test_the_metrics_are_those_of_whole_runs(thin: Results, whole: Results) -> None:
    assert metrics.table(thin, None).equals(metrics.table(whole, None))
    assert thin.thin.height == thin.runs("done").height == 10
    assert list((thin.folder / "runs").iterdir()) == []
    assert verify(thin.folder).whole == 10


def test_a_run_that_comes_back_with_another_trace_is_refused(
    thin: Results, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = thin.runs("done")["run_key"][-1]
    monkeypatch.setattr(simulator, "HOST_DELAY_NS", (200_000, 200_001))
    file = str(thin.folder.parent / "e.toml")
    asked = ["run", file, "-o", str(thin.folder), "--no-rehearse", "--quiet", "--only", key]
    assert invoke(asked) == 1
    assert f"{key}: simulated again, it has another trace" in capsys.readouterr().err
    assert list((thin.folder / "runs").iterdir()) == []
    assert verify(thin.folder).whole == 10


def test_medians_are_those_that_the_report_shows(tmp_path: Path, whole: Results) -> None:
    kept = carried_out(tmp_path, "medians")
    there = kept.with_trace(kept.runs("done"))
    assert there.height == 2
    loads = metrics.table(whole).filter(~pl.col("warmup"))
    for row in metrics.table(kept).filter(pl.col("run_key").is_in(there["run_key"].implode())).to_dicts():
        group = loads.filter(pl.col("scenario") == row["scenario"])["page_load_time"]
        nearest = (group - group.median()).abs().min()
        assert abs(row["page_load_time"] - group.median()) == nearest
    assert metrics.table(kept, None).equals(metrics.table(whole, None))
    assert invoke(["report", str(kept.folder)]) == 0
    assert len(re.findall(r'id="visit-\d+"', (kept.folder / "report.html").read_text())) == 2


@pytest.mark.parametrize("fault", ["flipped", "gone"])
def test_a_damaged_part_is_found_and_its_runs_are_carried_out_again(
    thin: Results, whole: Results, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in parts.files(thin.folder):
        if fault == "gone":
            path.unlink()
        else:
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
    assert invoke(["verify", str(thin.folder)]) == 2
    said = capsys.readouterr()
    assert "parts: no metrics of the run" in said.out and "and 9 more" in said.out
    assert invoke(["compare", str(thin.folder), "--factor", "http"]) == 2
    assert "`wirepaint run` carries these runs out again" in capsys.readouterr().err
    assert invoke(["run", str(thin.folder), "--no-rehearse"]) == 0
    assert "its metrics are gone, so it is carried out again" in capsys.readouterr().err
    again = Results.open(thin.folder)
    assert metrics.table(again, None).equals(metrics.table(whole, None))


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_runs_that_no_file_has_are_found_in_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(parts, "_JOINED", at_once)
    traces = [(f"a.v{number:02d}", f"{number:032x}") for number in range(8)]
    for first in (0, 2, 4):
        rows = pl.DataFrame(traces[first : first + 2], schema=parts.OF_RUN, orient="row")
        parts.write(tmp_path, [rows])
    other = ("a.v00", "f" * 32)
    assert sorted(parts.lost(tmp_path, [*traces, other])) == ["a.v00", "a.v06", "a.v07"]
    assert parts.lost(tmp_path, []) == []


def test_more_visits_leave_what_is_there(tmp_path: Path) -> None:
    before = metrics.table(carried_out(tmp_path, "metrics"), None)
    after = carried_out(tmp_path, "metrics", visits=6)
    assert after.runs("done").height == 14
    old = metrics.table(after, None).filter(pl.col("run_key").is_in(before["run_key"].implode()))
    assert old.equals(before)
    assert after.attempts().group_by("run_key").len()["len"].to_list() == [1] * 14


def test_visits_end_early_as_with_traces(tmp_path: Path) -> None:
    ended = {}
    for keep in ("all", "metrics"):
        folder = tmp_path / keep
        folder.mkdir()
        first = ("--stop.visits", "3", "--stop.interval", "10 %")
        carried_out(folder, keep, 5, *first)
        again = carried_out(folder, keep, 30, *first)  # what is known of visits that were there counts, too
        ended[keep] = again.runs().drop("attempts")
    assert ended["metrics"].equals(ended["all"])
    assert 0 < ended["all"].filter(pl.col("state") == "skipped").height < 60


def test_only_carries_out_what_is_named(tmp_path: Path, whole: Results) -> None:
    (tmp_path / "e.toml").write_text(EVALUATION.format(keep="metrics", visits=4))
    key = "lte-cubic-h2.user.agency.v03"
    asked = ["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "r"), "--no-rehearse", "--quiet"]
    assert invoke([*asked, "--only", key, "--json"]) in (0, 1)  # a level has no valid run yet
    first = Results.open(tmp_path / "r")
    assert first.runs("done")["run_key"].to_list() == [key]
    assert first.trace(key, "object").equals(whole.trace(key, "object"))


def test_what_needs_a_trace_says_so(
    thin: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = thin.runs()["run_key"][0]
    with pytest.raises(UsageError, match=r"no trace: results\.keep left it out"):
        thin.trace(key, "object")
    with pytest.raises(UsageError, match="no trace of 8 runs"):
        thin.all("object")
    folder = str(thin.folder)
    for asked in (["explain", folder, "page-load-time", key], ["export", folder, "--to", "har", "-o", "x"]):
        assert invoke(asked) == 2
        assert "no trace" in capsys.readouterr().err
    assert invoke(["export", folder, "--to", "csv", "--table", "page", "-o", str(tmp_path / "csv")]) == 0
    table = pl.read_csv(tmp_path / "csv/page.csv")
    assert table["page_load_time"].null_count() == 0 and table["load_event"].null_count() == table.height
    assert invoke(["report", folder]) == 0
    assert "The traces of the visits were not kept" in (thin.folder / "report.html").read_text()


def test_users_of_a_link_have_no_packets_without_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = EVALUATION.format(keep="metrics", visits=1).replace(
        "visits = 1", 'visits = 1\ntogether = true\ncount = 3\nbrowser = "light"'
    )
    (tmp_path / "e.toml").write_text(text)
    asked = ["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "r"), "--no-rehearse", "--quiet"]
    assert invoke(asked) == 0
    capsys.readouterr()
    assert invoke(["users", str(tmp_path / "r"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["users"]
    assert [(row["users"], row["connections"], row["received_bytes"]) for row in rows] == [
        (3, None, None)
    ] * 2


def test_small_files_are_joined_and_lose_no_row(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    traces = {f"run-{number}": f"{number:032x}" for number in range(40)}
    for key, digest in traces.items():
        rows = pl.DataFrame(
            {"run_key": [key] * 2, "trace": [digest] * 2, "user": ["a", "b"], "value": [1.0, 2.0]}
        )
        parts.write(tmp_path / "r", [rows])
    stale = pl.DataFrame({"run_key": ["run-3"], "trace": ["f" * 32], "user": ["a"], "value": [9.0]})
    parts.write(tmp_path / "r", [stale])
    parts.join(tmp_path / "r", lambda keys: {key: traces.get(key) for key in keys})
    assert len(parts.files(tmp_path / "r")) == 1
    [(_, rows)] = parts.read(tmp_path / "r")
    assert rows.sort("run_key", "user").height == 80 and 9.0 not in rows["value"]
    assert dict(rows.select(parts.OF_RUN).iter_rows()) == traces
    assert parts.lost(tmp_path / "r", traces.items()) == []
