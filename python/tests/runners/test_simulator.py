"""Page visits in the simulator: through the pool, by the real program, without root or browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from waiting import holds_within

from wirepaint import cli, dataplane, pages
from wirepaint.dataplane import simulate
from wirepaint.errors import Refused, RunFailed
from wirepaint.evaluation import plan
from wirepaint.metrics import table
from wirepaint.results import Results, trace
from wirepaint.runners import backends, description, pool, simulator
from wirepaint.runners.progress import Lines

EVALUATION = """
title = "Simulated"
backend = "simulator"
[scenarios]
network = ["lte"]
congestion = ["cubic", "reno", "fld"]
http = ["h1", "h2"]
[[user_agents]]
pages = ["photos"]
visits = 2
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def carried_out(folder: Path, text: str = EVALUATION) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "evaluation.toml"
    file.write_text(text)
    planned = plan(file)
    pool.carry_out(planned, folder / "results", backends.named(planned.resolved["backend"]), Lines())
    return folder / "results"


def test_every_visit_loads_every_object_and_has_the_metrics_of_a_load(tmp_path: Path):
    results = Results.open(carried_out(tmp_path))
    runs = results.runs()
    assert set(runs["verdict"]) == {"valid"} and set(runs["backend"]) == {"simulator"}
    measured = table(results).filter(~pl.col("warmup"))
    assert measured.height == 3 * 2 * 2
    expected = len(pages.load(pages.shipped()["photos"]).resources)
    assert set(measured["objects"]) == {expected}
    for metric in ("page_load_time", "first_contentful_paint", "idle_time", "effective_concurrency"):
        assert measured[metric].is_not_null().all(), metric
        assert (measured[metric] > 0).all(), metric


def test_the_run_says_what_ran_and_leaves_null_what_a_simulator_does_not_have(tmp_path: Path):
    folder = carried_out(tmp_path)
    row = trace.read_table(folder / "runs/lte-reno-h2.user.photos.v01", "run").row(0, named=True)
    assert (row["backend"], row["congestion"], row["server_congestion"]) == ("simulator", "reno", "std")
    assert row["kernel"] is row["browser"] is None
    host = trace.read_table(folder / "runs/lte-reno-h2.user.photos.v01", "host")
    assert host.height == 1 and all(host[column][0] is None for column in host.columns)
    connections = trace.read_table(folder / "runs/lte-cubic-h2.user.photos.v01", "connection")
    assert set(connections["congestion"]) == {"cubic9438"}
    assert (connections["connected"] > connections["opened"]).all()


def test_a_run_with_reasons_says_them_in_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reason = {"severity": "invalid", "check": "congestion", "found": "std", "expected": "mine"}
    monkeypatch.setattr(simulator, "_differing", lambda *_: [reason])
    folder = carried_out(tmp_path, EVALUATION.replace('"cubic", "reno", "fld"', '"reno"'))
    row = trace.read_table(folder / "runs/lte-reno-h2.user.photos.v01", "run").row(0, named=True)
    assert (row["verdict"], json.loads(row["reasons"])) == ("invalid", [reason])
    assert (row["page"], row["server_congestion"], row["server_initial_window"]) == ("photos", "std", 10)
    assert row["duration"] > 0


def test_each_visit_draws_what_the_hosts_take_and_when_it_begins(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    way = '{delay = "20 ms", changes = [{at = "1 s", delay = "45 ms"}]}'
    file.write_text(EVALUATION.replace('"lte"', f'{{title = "slower", down = {way}, up = {way}}}'))
    planned = plan(file)
    run = planned.runs[0]
    said = simulator.describe(run, tmp_path)
    least, most = simulator.HOST_DELAY_NS
    for direction in ("down", "up"):
        asked, drawn = run.network.direction(direction), getattr(said.segments[0], direction)
        added = drawn["delay_ns"] - asked["delay_ns"]
        assert least <= added <= most
        (change,) = (each["delay_ns"] for each in drawn["changes"])
        assert change - asked["changes"][0]["delay_ns"] == added
    assert simulator.describe(run, tmp_path) == said
    describer = simulator.Describer()
    described = [describer.describe(each, tmp_path) for each in planned.runs]
    assert described == [simulator.describe(each, tmp_path) for each in planned.runs]
    begins = {each.visits[0].start_ns for each in described}
    assert len(begins) > 1 and all(0 <= at < simulator.TICKS_NS for at in begins)


def test_hosts_jitter_where_the_network_does_not(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    own = {"kind": "normal", "stddev_ns": 3_000_000, "reorder": False}
    jitter = 'jitter = {kind = "normal", stddev = "3 ms", reorder = false}'
    handover = 'changes = [{at = "1 s", network = "3g"}]'
    network = f'{{title = "x", down = {{delay = "20 ms", {jitter}}}, up = {{}}, {handover}}}'
    file.write_text(EVALUATION.replace('"lte"', network))
    (said,) = simulator.describe(plan(file).runs[0], tmp_path).segments
    assert said.down["jitter"] == own
    others = [said.up, *said.up["changes"], *said.down["changes"]]
    assert [each["jitter"] for each in others] == [simulator.HOST_JITTER] * 3
    assert simulator.HOST_JITTER["range_ns"] <= simulator.HOST_DELAY_NS[0]


FLOWS = """
title = "Flows"
backend = "simulator"
duration = "10 s"
[scenarios]
network = ["lte"]
[[flows]]
name = "many"
count = 3
bulk = "1 MB"
[[flows]]
name = "later"
start = "1 s"
bulk = "1 MB"
[[flows]]
name = "then"
after = "later"
bulk = "1 MB"
"""


@pytest.mark.parametrize(
    ("rate", "mean_ns"),
    [("1 Gbit/s", 10_000), ("100 Mbit/s", 14_000), ("12500 kbit/s", 22_700), ("", 14_000)],
)
def test_hosts_of_flows_answer_sooner_the_faster_the_link(tmp_path: Path, rate: str, mean_ns: int):
    file = tmp_path / "evaluation.toml"
    down = f'{{delay = "20 ms"{f", rate = {rate!r}" if rate else ""}}}'
    file.write_text(FLOWS.replace('"lte"', f'{{title = "x", down = {down}, up = {{delay = "20 ms"}}}}'))
    for run in plan(file).runs:
        (said,) = simulator.describe(run, tmp_path).segments
        for direction, (least, most) in zip((said.down, said.up), simulator.FLOWS_DELAY_NS, strict=True):
            assert least <= direction["delay_ns"] - 20_000_000 <= most
            assert direction["jitter"] == {"kind": "exponential", "mean_ns": mean_ns, "reorder": False}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def test_a_line_for_the_simulator_says_what_the_file_would(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    file.write_text(EVALUATION.replace('"lte"', '"lte", "3g"'))
    describer = simulator.Describer(share_files=True)
    for number, run in enumerate(plan(file).runs):
        described = describer.describe(run, tmp_path)
        name, text, pages = described.line(f"run {number}", "some pages").split("\t")
        assert (name, pages) == (f"run {number}", "some pages")
        said = without_nulls(json.loads(described.text()))
        assert without_nulls(json.loads(text)) | {"pages": without_nulls(described.pages)} == said
        assert said == without_nulls(json.loads(replace(described, alike=None).text()))


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"visit": "first"}, 'row.visit: found "first", accepted: an integer'),
        ({"visits": 1}, "row.visits: found no column of the table run"),
    ],
)
def test_cells_of_the_table_run_must_fit_it(tmp_path: Path, cells: dict[str, Any], said: str):
    file = tmp_path / "evaluation.toml"
    file.write_text(FLOWS)
    run = simulator.describe(plan(file).runs[0], tmp_path)
    with pytest.raises(RunFailed, match=said):
        simulate.one(replace(run, row=cells))
    assert not (tmp_path / "run.parquet").exists()


def test_flows_that_begin_at_once_begin_one_after_another(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    file.write_text(FLOWS)
    apart = set()
    for run in plan(file).runs:
        begun = [flow.start_ns for flow in simulator.describe(run, tmp_path).flows]
        assert begun == [0, begun[1], 2 * begun[1], 1_000_000_000, 0]
        apart.add(begun[1])
    least, most = simulator.FLOW_OPENS_NS
    assert all(least <= one <= most for one in apart)
    assert len(apart) > 1


def test_runs_of_other_conditions_are_described_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "evaluation.toml"
    more = 'proxy = ["none", "split", "pep"]\ninitial_window = [10, 32]\n[[user_agents]]'
    file.write_text(EVALUATION.replace('"lte"', '"lte", "3g"').replace("[[user_agents]]", more))
    runs = plan(file).runs
    # Forgotten in between, too: the numbers of objects that are gone are given again.
    monkeypatch.setattr(simulator, "_CONDITIONS", 5)
    describer = simulator.Describer()
    for run in runs:
        assert describer.describe(run, tmp_path) == simulator.describe(run, tmp_path), run.key


def test_each_run_has_a_copy_of_a_c_file_unless_runs_share_it(tmp_path: Path):
    assert cli.invoke(["cc", "new", "own", "-o", str(tmp_path / "own")]) == 0
    file = tmp_path / "evaluation.toml"
    file.write_text(EVALUATION.replace('["cubic", "reno", "fld"]', '["./own/own.c"]').replace('"h1", ', ""))
    first, second = plan(file, trust=lambda _: True).runs[-2:]
    folders = tmp_path / "first", tmp_path / "second"
    for share_files, expected in [(False, folders), (True, folders[:1] * 2)]:
        describer = simulator.Describer(share_files=share_files)
        said = [describer.describe(run, of) for run, of in zip((first, second), folders, strict=True)]
        found = [
            Path(control.algorithm) for run in said for control in run.congestion if "/" in control.algorithm
        ]
        assert [path.parent for path in found] == list(expected)
        assert all(path.read_text() == (tmp_path / "own/own.c").read_text() for path in found)


@pytest.mark.parametrize("servers", ["apart", "together"])
def test_connections_share_state_with_those_of_their_server(tmp_path: Path, servers: str):
    text = EVALUATION.replace('["cubic", "reno", "fld"]', f'["tcbe"]\nservers = "{servers}"')
    name = "-together" if servers == "together" else ""
    folder = (
        carried_out(tmp_path, text.replace("photos", "shop-large"))
        / f"runs/lte-tcbe-h2{name}.user.shop-large.v01"
    )
    hosts = trace.read_table(folder, "connection")["server_address"].n_unique()
    of_server = trace.read_table(folder, "group").group_by("server").agg(pl.n_unique("server_address"))
    spans = of_server["server_address"].to_list()
    assert hosts > 1 and spans == ([hosts] if servers == "together" else [1] * hosts)


def _opened(folder: Path) -> set[int]:
    return {
        window
        for path in sorted(folder.glob("runs/*v01"))
        for window in trace.read_table(path, "connection")["initial_window"].drop_nulls()
    }


def test_connections_say_the_window_that_they_opened_with(tmp_path: Path):
    shared = EVALUATION.replace('"cubic", "reno", "fld"', '"tcbe"').replace('"photos"', '"news-medium"')
    folder = carried_out(tmp_path, shared)
    assert len(_opened(folder)) > 1, "who joins others takes a share of their window"
    assert set(Results.open(folder).runs()["verdict"]) == {"valid"}


def test_after_a_lost_syn_ack_a_connection_opens_with_one_segment(tmp_path: Path):
    lossy = """[[scenarios.network]]
title = "Lossy"
down = { rate = "20 Mbit/s", delay = "10 ms", loss = { kind = "independent", probability = "15 %" } }
up = { rate = "20 Mbit/s", delay = "10 ms" }
[[user_agents]]"""
    text = EVALUATION.replace('network = ["lte"]\n', "").replace("[[user_agents]]", lossy)
    folder = carried_out(
        tmp_path, text.replace('"photos"', '"travel-large"').replace("[scen", 'timeout = "600 s"\n[scen', 1)
    )
    assert _opened(folder) == {1, 10}
    assert set(Results.open(folder).runs()["verdict"]) == {"valid"}


def test_another_window_than_was_asked_makes_a_run_invalid(tmp_path: Path):
    folder = carried_out(tmp_path) / "runs/lte-reno-h2.user.photos.v01"
    [run] = [run for run in plan(tmp_path / "evaluation.toml").runs if run.key == folder.name]
    connections = dataplane.call("simulate", str(folder / "run.json"))["connections"]
    table = trace.read_table(folder, "connection").select(
        "protocol", "congestion", "initial_window", retransmitted=pl.col("retransmitted_segments") > 0
    )
    assert connections == [{"flow": None, **row} for row in table.unique(maintain_order=True).to_dicts()]
    assert list(simulator._differing(run, connections)) == []
    without_loss = [each | {"initial_window": 1, "retransmitted": False} for each in connections]
    assert [r["severity"] for r in simulator._differing(run, without_loss)] == ["invalid"]
    other = run.model_copy(update={"congestion": run.congestion.model_copy(update={"name": "cubic"})})
    assert {r["check"] for r in simulator._differing(other, connections)} == {"congestion"}


def test_the_same_evaluation_gives_the_same_traces(tmp_path: Path):
    first, second = carried_out(tmp_path / "one"), carried_out(tmp_path / "two")
    for run in sorted((first / "runs").iterdir()):
        for name in ("page", "object", "chunk", "connection", "tcp", "link"):
            tables = [trace.read_table(folder / "runs" / run.name, name) for folder in (first, second)]
            assert tables[0].height > 0, name
            assert_frame_equal(*tables)


def test_pages_that_do_not_load_in_time_are_failed_and_the_others_are_reached(tmp_path: Path):
    narrow = '{title = "narrow", down = {rate = "0.1 Mbit/s", delay = "20 ms"}, up = {delay = "20 ms"}}'
    text = EVALUATION.replace("backend =", 'timeout = "10 s"\norder = "sequential"\nbackend =')
    folder = carried_out(tmp_path, text.replace('["lte"]', f'[{narrow}, "lte"]'))
    runs = Results.open(folder).runs()
    failed = runs.filter(pl.col("network") == "narrow")
    assert failed.group_by("state").len().sort("state").rows() == [("failed", 3 * 2 * 2), ("skipped", 3 * 2)]
    assert failed["verdict"].is_null().all(), "a failure is never a number"
    said = r"^(the page cannot count: )?the page did not load within 10 s: \d+ of \d+ objects$"
    assert failed["cause"].str.contains(said).all()
    assert set(runs.filter(pl.col("network") == "lte")["state"]) == {"done"}


def test_what_the_simulator_refuses_ends_the_evaluation_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(description.BASELINE_SYSCTLS, "net.ipv4.tcp_rmem", "many")
    # Runs go side by side, so either of the first two may be told first.
    with pytest.raises(Refused, match=r"^lte-cubic-h[12].user.photos.\w+: .*tcp_rmem: found \"many\""):
        carried_out(tmp_path)
    assert not list((tmp_path / "results/runs").iterdir())


def test_runs_that_fail_one_after_the_other_end_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(simulator, "_outcome", lambda *_: RunFailed("an accident"))
    with pytest.raises(RunFailed, match=r"3 runs in a row failed.*an accident"):
        carried_out(tmp_path)


def test_a_stopped_evaluation_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    outcome = simulator._outcome

    def fails_once(run, said):
        monkeypatch.setattr(simulator, "_outcome", outcome)
        return RunFailed("an accident")

    monkeypatch.setattr(simulator, "_outcome", fails_once)
    folder = carried_out(tmp_path)
    assert Results.open(folder).runs("failed").height == 1
    carried_out(tmp_path)
    assert set(Results.open(folder).runs()["state"]) == {"done"}


def test_visits_end_early_when_the_interval_is_narrow(tmp_path: Path):
    stop = '[stop]\nvisits = 3\ninterval = "50 %"\n[scenarios]'
    text = EVALUATION.replace("[scenarios]", stop).replace("visits = 2", "visits = 6")
    file = tmp_path / "evaluation.toml"
    file.write_text(text)
    planned = plan(file)
    pool.carry_out(
        planned, tmp_path / "r", [backends.simulator()], Lines(), lambda times, width: len(times) >= 3
    )
    runs = Results.open(tmp_path / "r").runs()
    skipped = runs.filter(pl.col("state") == "skipped")
    assert set(skipped["visit"]) == {4, 5, 6} and skipped.height == 3 * 6


def test_the_description_in_the_folder_repeats_the_run(tmp_path: Path):
    run = next(iter((carried_out(tmp_path) / "runs").iterdir()))
    again = json.loads((run / "run.json").read_text()) | {"trace_dir": str(tmp_path)}
    (tmp_path / "again.json").write_text(json.dumps(again))
    said = dataplane.call("simulate", str(tmp_path / "again.json"))
    assert said["unfinished"] == 0 and said["faults"] == []
    assert_frame_equal(trace.read_table(run, "object"), trace.read_table(tmp_path, "object"))


def test_the_description_in_the_guide_runs_and_has_rows_in_its_tables(tmp_path: Path):
    guide = (Path(__file__).parents[3] / "docs/guide/simulation-by-hand.md").read_text()
    example = json.loads(guide.partition("```json\n")[2].partition("```")[0]) | {"trace_dir": str(tmp_path)}
    (tmp_path / "run.json").write_text(json.dumps(example))
    said = dataplane.call("simulate", str(tmp_path / "run.json"))
    assert (said["unfinished"], said["faults"]) == (0, [])
    assert [flow["received_bytes"] for flow in said["flows"]] == [2_000_000, 512_000]
    assert (
        0
        < said["links"]["narrow.down"]["delivered_packets"]
        < said["links"]["wide.down"]["delivered_packets"]
    )
    received = trace.read_table(tmp_path, "flow").group_by("connection").agg(pl.col("received_bytes").sum())
    assert sorted(received["received_bytes"]) == [512_000, 2_000_000]
    assert set(trace.read_table(tmp_path, "link")["segment"]) == {"wide", "narrow"}


def a_program(folder: Path, text: str) -> str:
    """A data plane that prints its version and then runs ``text``."""
    file = folder / "program"
    file.write_text(f'#!/bin/sh\nif [ "$1" = simulate ]; then\n{text}\nfi\nexec {dataplane.program()} "$@"\n')
    file.chmod(0o755)
    return str(file)


def test_a_simulator_that_dies_of_every_run_ends_the_evaluation_and_nothing_stays_begun(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("WIREPAINT_DATAPLANE", a_program(tmp_path, "read one; kill -9 $$"))
    with pytest.raises(
        RunFailed, match=r"3 runs in a row failed.*the simulator ended during the run: killed by SIGKILL"
    ):
        carried_out(tmp_path)
    assert not list((tmp_path / "results/runs").iterdir())


DIES = """
while read -r path; do
  case $path in *reno-h1*) echo "thread panicked: out of luck" >&2; echo "note: a hint" >&2; exit 101;; esac
  PROGRAM simulate "$path"
done
exit
"""


def test_a_run_of_which_the_simulator_dies_fails_and_all_others_are_carried_out(tmp_path: Path, monkeypatch):
    program = a_program(tmp_path, DIES.replace("PROGRAM", str(dataplane.program())))
    monkeypatch.setenv("WIREPAINT_DATAPLANE", program)
    runs = Results.open(carried_out(tmp_path)).runs()
    dead = runs.filter(pl.col("scenario") == "lte-reno-h1")
    cause = "the simulator ended during the run: exit code 101: thread panicked: out of luck"
    assert dead["cause"].to_list() == [cause, *[f"the page cannot count: {cause}"] * 2]
    others = runs.filter(pl.col("scenario") != "lte-reno-h1")
    assert set(others["verdict"]) == {"valid"} and set(others["attempts"]) == {1}


SILENT = """
while read -r path; do
  case $path in *reno-h1*) lost=1;; *) PROGRAM simulate "$path";; esac
done
exit $lost
"""


def test_a_run_that_gets_no_answer_fails_when_the_simulator_ends(tmp_path: Path, monkeypatch):
    program = a_program(tmp_path, SILENT.replace("PROGRAM", str(dataplane.program())))
    monkeypatch.setenv("WIREPAINT_DATAPLANE", program)
    runs = Results.open(carried_out(tmp_path)).runs()
    assert set(runs.filter(pl.col("scenario") == "lte-reno-h1")["state"]) == {"failed", "skipped"}
    assert set(runs.filter(pl.col("scenario") != "lte-reno-h1")["verdict"]) == {"valid"}


def a_damaged_page(folder: Path, damage) -> Path:
    """A copy of a page that ships with wirepaint, changed by ``damage`` (of its index and folder)."""
    shutil.copytree(pages.shipped()["photos"], folder)
    index = json.loads((folder / "page.json").read_text()) | {"name": folder.name}
    damage(index, folder)
    (folder / "page.json").write_text(json.dumps(index))
    return folder


def typed_data(index, folder: Path) -> None:
    index["resources"][0]["type"] = "data"


def without_a_body(index, folder: Path) -> None:
    (folder / "bodies" / index["resources"][1]["body"]).unlink()


@pytest.mark.parametrize(
    ("damage", "why"),
    [(typed_data, "type: found data, accepted: html"), (without_a_body, r"resources\[\d+\].body: ")],
    ids=["typed data", "without a body"],
)
def test_one_of_two_pages_is_refused_and_the_other_counts(tmp_path: Path, capsys, damage, why: str):
    a_damaged_page(tmp_path / "bad", damage)
    file, results = tmp_path / "evaluation.toml", tmp_path / "results"
    file.write_text(EVALUATION.replace('"photos"', '"bad", "photos"'))
    assert cli.invoke(["run", str(file), "--no-rehearse", "-o", str(results), "--json"]) == 1
    out, err = capsys.readouterr()
    said = json.loads(out)
    # The warm-ups of the bad page are in three scenarios, one or two of each HTTP version.
    assert said["counts"]["valid"] == 3 + 3 * 2 * 2
    assert said["counts"]["failed"] + said["counts"]["cannot count"] == 3 + 3 * 2 * 2
    assert list(said["cannot_count"]) == ["bad"] and re.search(why, said["cannot_count"]["bad"])
    assert (said["repeats"], said["repeats_in_vain"]) == (0, 0)
    assert re.search(rf"^bad cannot count: .*{why}", err, re.MULTILINE)
    assert re.search(r"^wirepaint: .*1 page cannot count; \d+ runs failed; ", err, re.MULTILINE)
    runs = Results.open(results).runs()
    assert set(runs.filter(pl.col("page") == "photos")["verdict"]) == {"valid"}
    assert set(runs.filter(pl.col("page") == "bad")["state"]) == {"failed", "skipped"}


def test_what_is_skipped_does_not_depend_on_which_run_ends_first(tmp_path: Path):
    a_damaged_page(tmp_path / "bad", typed_data)
    text = EVALUATION.replace('"photos"', '"bad", "photos"').replace("visits = 2", "visits = 4")
    stands = []
    for name in ("one", "two"):
        (tmp_path / "evaluation.toml").write_text(text)
        planned = plan(tmp_path / "evaluation.toml")
        pool.carry_out(planned, tmp_path / name, [backends.simulator()], Lines())
        stands.append(Results.open(tmp_path / name).runs()["run_key", "state", "verdict", "cause"])
    assert_frame_equal(*stands)


def test_a_killed_command_leaves_no_simulator():
    reading, writing = os.pipe()  # its input stays open, so only the kernel ends it
    code = """
import os, subprocess, sys, time
argv = [sys.argv[1], "simulate", "--parent", str(os.getpid()), "-"]
print(subprocess.Popen(argv, stdin=int(sys.argv[2])).pid, flush=True)
time.sleep(60)
"""
    argv = [sys.executable, "-c", code, dataplane.program(), str(reading)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, pass_fds=[reading]) as command:
        assert command.stdout is not None
        status = Path("/proc", command.stdout.readline().strip(), "status")
        assert holds_within(60, lambda: "Name:\twirepaint" in status.read_text())
        command.kill()

    def ended() -> bool:
        try:
            return "State:\tZ" in status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True

    assert holds_within(10, ended)
    os.close(reading)
    os.close(writing)


def test_a_simulator_whose_command_is_gone_does_not_begin():
    with subprocess.Popen(["true"]) as gone:
        pass
    argv = [dataplane.program(), "simulate", "--parent", str(gone.pid), "-"]
    assert subprocess.run(argv, stdin=subprocess.DEVNULL).returncode == 1


def test_a_simulator_begins_for_a_command_of_another_user():
    # Nobody but root may send a signal to process 1.
    user = 65534 if os.geteuid() == 0 else None
    argv = [dataplane.program(), "simulate", "--parent", "1", "-"]
    assert subprocess.run(argv, stdin=subprocess.DEVNULL, user=user, cwd="/").returncode == 0


def test_a_disk_that_is_full_is_no_failure_of_the_run():
    run: Any = SimpleNamespace(key="lte-reno-h2.user.photos.v01")
    full = {"error": "writing /r/page.parquet: No space left on device (os error 28)", "exit_code": 1}
    with pytest.raises(OSError, match="No space left on device"):
        simulator._outcome(run, full)
    other = full | {"error": "writing /r/page.parquet: Is a directory (os error 21)"}
    assert isinstance(simulator._outcome(run, other), RunFailed)
