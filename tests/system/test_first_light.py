"""The main job on real parts: an evaluation file in, a comparison and a report out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from disturbed import OF_THE_MACHINE
from proc import alive, descendants, program

from wirepaint.results import Results
from wirepaint.results.trace import read_table, tables

pytestmark = pytest.mark.usefixtures("root")
WIREPAINT = [sys.executable, "-c", "import sys; from wirepaint.cli import main; sys.exit(main())"]
NONE_VALID = 1
"""Exit code of `run` where all visits are suspect, perhaps since others used the machine."""

EVALUATION = """
title = "CUBIC or FLD, quickly"
warmup = false
[scenarios]
network = ["lte"]
congestion = ["cubic", "fld"]
http = ["h2"]
[[user_agents]]
pages = ["blog-small"]
visits = {visits}
"""


def wirepaint(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*WIREPAINT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def leftovers() -> list[str]:
    """The doctor's findings on dead commands."""
    checks = {check["name"]: check for check in json.loads(wirepaint("doctor", "--json").stdout)["checks"]}
    return [checks["leftovers"]["found"]] if checks["leftovers"]["level"] != "ok" else []


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("first-light")
    file = folder / "evaluation.toml"
    file.write_text(EVALUATION.format(visits=2))
    done = wirepaint("run", file, "-o", folder / "results")
    assert done.returncode in (0, NONE_VALID), done.stderr
    return Results.open(folder / "results")


def run_keys(results: Results) -> list[str]:
    return results.runs()["run_key"].to_list()


@pytest.mark.timed
def test_nothing_but_the_machine_is_held_against_a_run(results: Results) -> None:
    runs = results.runs()
    assert runs.height == 4
    for row in runs.iter_rows(named=True):
        severe = {reason["check"] for reason in json.loads(row["reasons"]) if reason["severity"] != "note"}
        assert severe <= {"steal", "foreign_cpu", "lateness", "unseen_acks"}, row


def test_each_run_has_every_table_but_those_of_flows_groups_and_packets(results: Results) -> None:
    for key in run_keys(results):
        for name in tables():
            empty = results.trace(key, name).is_empty()
            assert empty == (name in ("flow", "message", "group", "packet")), f"{key}: {name}"


def test_the_kernel_used_the_congestion_control_that_was_asked_for(results: Results) -> None:
    for key in run_keys(results):
        [used] = set(results.trace(key, "connection").filter(reason="request")["congestion"])
        assert used.startswith("fld_" if "-fld-" in key else "cubic")


def test_every_object_arrived_through_a_connection_whose_sender_was_sampled(results: Results) -> None:
    for key in run_keys(results):
        objects = results.trace(key, "object")
        sampled = set(results.trace(key, "tcp")["connection"].drop_nulls())
        assert objects["failed"].is_null().all()
        assert set(objects["connection"]) <= sampled
        received = results.trace(key, "chunk").group_by("request").agg(pl.col("bytes").sum())
        missing = objects.filter(pl.col("encoded_bytes") > 0).join(received, on="request", how="anti")
        assert missing.is_empty(), missing["url"].to_list()


def test_times_are_in_the_order_of_causes(results: Results) -> None:
    for key in run_keys(results):
        ordered = results.trace(key, "object").filter(
            (pl.col("discovered") <= pl.col("sent"))
            & (pl.col("sent") <= pl.col("first_byte"))
            & (pl.col("first_byte") <= pl.col("last_byte"))
        )
        assert ordered.height == results.trace(key, "object").height
        page = results.trace(key, "page").row(0, named=True)
        assert page["navigation_start"] <= page["base_request_sent"] < page["first_contentful_paint"]
        assert page["first_contentful_paint"] <= page["load_event"] + 10**9


def test_slow_start_of_fld_triples_and_that_of_cubic_doubles_at_most(results: Results) -> None:
    """The first round trip of a connection ends at 30 segments with FLD and at 20 with CUBIC."""
    for key in run_keys(results):
        tcp = results.trace(key, "tcp").filter(pl.col("ssthresh").is_null(), pl.col("delivered") <= 11)
        largest = tcp["cwnd"].max()
        assert isinstance(largest, int)
        assert largest > 20 if "-fld-" in key else largest <= 20, f"{key}: {largest}"


def test_packets_are_conserved_at_the_bottleneck(results: Results) -> None:
    for key in run_keys(results):
        last = results.trace(key, "link").sort("time").group_by("direction").last()
        for row in last.iter_rows(named=True):
            gone = row["delivered_packets"] + row["queue_drops"] + row["random_losses"] + row["queue_packets"]
            assert row["offered_packets"] == gone


def test_compare_report_and_export_speak_of_the_same_runs(results: Results, tmp_path: Path) -> None:
    compared = wirepaint("compare", results.folder, "--factor", "congestion", "--suspect", "--json")
    assert compared.returncode == 0, compared.stderr
    rows = json.loads(compared.stdout)["comparisons"]
    assert {row["metric"] for row in rows} >= {"page-load-time", "first-contentful-paint"}
    words = {row["verdict"] for row in rows}
    decided = {"faster", "slower", "same", "higher", "lower", "better", "worse"}
    assert words <= decided | {"mixed", "too few visits"}
    assert wirepaint("report", results.folder, "-o", tmp_path / "report.html").returncode == 0
    assert "CUBIC or FLD, quickly" in (tmp_path / "report.html").read_text()
    assert wirepaint("export", results.folder, "--to", "csv", "-o", tmp_path / "csv").returncode == 0
    page = pl.read_csv(tmp_path / "csv" / "page.csv")
    assert page["run_key"].sort().to_list() == sorted(run_keys(results))


@pytest.mark.timed
@pytest.mark.parametrize("congestion", ["cubic", "fld"])
def test_a_run_repeats_from_its_run_json(results: Results, congestion: str, tmp_path: Path) -> None:
    [key, *_] = [key for key in run_keys(results) if f"-{congestion}-" in key]
    again = wirepaint(
        "repeat", results.folder / "runs" / key / "run.json", "-o", tmp_path / "again", "--json"
    )
    assert again.returncode == 0, again.stderr
    said = json.loads(again.stdout)
    assert said["backend"] == "testbed"
    severe = {reason["check"] for reason in said["reasons"] if reason["severity"] != "note"}
    assert severe <= {"steal", "foreign_cpu", "lateness", "lateness_max", "unseen_acks"}, said
    assert 0.5 < said["load_ms"] / said["before_ms"] < 2
    first, second = results.trace(key, "object"), read_table(tmp_path / "again", "object")
    assert sorted(first["url"]) == sorted(second["url"])
    [used] = set(read_table(tmp_path / "again", "connection").filter(reason="request")["congestion"])
    assert used.startswith(congestion)


def test_captures_are_sealed_with_their_run_and_exported(tmp_path: Path) -> None:
    file, folder = tmp_path / "evaluation.toml", tmp_path / "results"
    file.write_text(
        EVALUATION.format(visits=1).replace(', "fld"', "").replace("[scenarios]", "[capture]\n[scenarios]")
    )
    done = wirepaint("run", file, "-o", folder)
    assert done.returncode in (0, NONE_VALID), done.stderr
    [reasons] = Results.open(folder).runs()["reasons"]
    severe = {reason["check"] for reason in json.loads(reasons) if reason["severity"] != "note"}
    assert severe <= OF_THE_MACHINE, done.stderr
    key = "lte-cubic-h2.user.blog-small.v01"
    exported = wirepaint("export", folder, "--to", "pcapng", "-o", tmp_path / "out")
    assert exported.returncode == 0, exported.stderr
    captures = {side: folder / f"runs/{key}/captures/user.{side}.pcapng" for side in ("client", "server")}
    for side, capture in captures.items():
        assert (tmp_path / f"out/{key}.user.{side}.pcapng").read_bytes() == capture.read_bytes()
    assert wirepaint("verify", folder).returncode == 0
    with captures["server"].open("r+b") as capture:
        capture.seek(1000)
        capture.write(b"\0wirepaint\0")
    verified = wirepaint("verify", folder)
    assert verified.returncode == 2 and "captures/user.server.pcapng: a damaged file" in verified.stdout
    refused = wirepaint("export", folder, "--to", "pcapng", "-o", tmp_path / "out")
    assert refused.returncode == 2 and "captures/user.server.pcapng: found a damaged file" in refused.stderr


def test_kill_9_ends_the_captures_too(tmp_path: Path) -> None:
    command, _ = started(tmp_path, visits=1, more="[capture]")
    deadline = time.monotonic() + 60
    while not (captures := [pid for pid in descendants(command.pid) if program(pid) == "dumpcap"]):
        assert time.monotonic() < deadline and command.poll() is None
        time.sleep(0.02)
    os.kill(command.pid, signal.SIGKILL)
    command.wait()
    time.sleep(1)
    assert [pid for pid in captures if alive(pid)] == []
    assert leftovers() == []


def started(folder: Path, visits: int, more: str = "") -> tuple[subprocess.Popen[str], Iterator[str]]:
    file = folder / "evaluation.toml"
    file.write_text(EVALUATION.format(visits=visits).replace("[scenarios]", f"{more}\n[scenarios]"))
    command = subprocess.Popen(
        [*WIREPAINT, "run", file, "-o", folder / "results"], stderr=subprocess.PIPE, text=True
    )
    assert command.stderr is not None
    return command, iter(command.stderr)


@pytest.mark.parametrize(
    ("line", "then_s"),
    [
        pytest.param("measuring", 0.5, id="calibration", marks=pytest.mark.slow),
        pytest.param("[0/", 0.3, id="start of the parts", marks=pytest.mark.slow),
        pytest.param("[0/", 1.2, id="page load", marks=pytest.mark.slow),
        pytest.param("[1/", 0.0, id="journal", marks=pytest.mark.slow),
        pytest.param("[1/", 0.7, id="second run", marks=pytest.mark.slow),
    ],
)
def test_kill_9_at_any_stage_leaves_nothing_and_the_same_command_resumes(
    line: str, then_s: float, tmp_path: Path
) -> None:
    command, lines = started(tmp_path, visits=1)
    for found in lines:
        if line in found or (line == "[0/" and "measuring" in found):
            break
    if line == "[0/":
        deadline = time.monotonic() + 60
        while not list((tmp_path / "results" / "runs").glob(".partial-*")):
            assert time.monotonic() < deadline and command.poll() is None
            time.sleep(0.02)
    time.sleep(then_s)
    below = descendants(command.pid)
    assert below
    os.kill(command.pid, signal.SIGKILL)
    command.wait()
    time.sleep(1)
    assert [pid for pid in below if alive(pid)] == []
    assert leftovers() == []

    resumed = wirepaint("run", tmp_path / "evaluation.toml", "-o", tmp_path / "results")
    assert resumed.returncode in (0, NONE_VALID), resumed.stderr
    runs = Results.open(tmp_path / "results").runs()
    assert sorted(runs["run_key"]) == ["lte-cubic-h2.user.blog-small.v01", "lte-fld-h2.user.blog-small.v01"]
    assert set(runs["state"]) == {"done"}
    assert sorted(path.name for path in (tmp_path / "results" / "runs").iterdir()) == sorted(runs["run_key"])


def test_ctrl_c_ends_in_order_and_says_how_to_go_on(tmp_path: Path) -> None:
    command, lines = started(tmp_path, visits=2)
    for found in lines:
        if "[1/" in found:
            break
    command.send_signal(signal.SIGINT)
    rest = "".join(lines)
    assert command.wait(30) == 3
    assert "The same command again resumes" in rest
    assert leftovers() == []
