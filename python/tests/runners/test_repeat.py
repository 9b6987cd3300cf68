"""A run is carried out again from its run.json, by one command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from wirepaint import cli
from wirepaint.dataplane import simulate
from wirepaint.dataplane.description import Congestion, Flow, Run, one_path
from wirepaint.results import trace

from .test_simulator import carried_out

WAY = {
    "capacity": {"kind": "rate", "bit_per_s": 10_000_000},
    "delay_ns": 10_000_000,
    "queue": {"kind": "droptail"},
}


def test_a_simulated_visit_repeats_with_the_same_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = next(iter((carried_out(tmp_path) / "runs").iterdir()))
    capsys.readouterr()
    assert cli.invoke(["repeat", str(folder / "run.json"), "-o", str(tmp_path / "again"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["backend"], said["verdict"]) == ("simulator", "valid")
    assert said["load_ms"] == said["before_ms"] > 0
    for table in ("page", "object", "connection", "tcp", "link"):
        assert_frame_equal(trace.read_table(folder, table), trace.read_table(tmp_path / "again", table))
    assert cli.invoke(["repeat", str(folder / "run.json"), "-o", str(tmp_path / "third")]) == 0
    load = f"page load time {said['load_ms']:.1f} ms; {said['load_ms']:.1f} ms before"
    assert load in capsys.readouterr().out


def test_no_trace_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = next(iter((carried_out(tmp_path) / "runs").iterdir()))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert cli.invoke(["repeat", str(folder / "run.json"), "-o", str(folder)]) == 2
    assert "a new or an empty folder" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_page_that_does_not_load_in_time_is_no_valid_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = next(iter((carried_out(tmp_path) / "runs").iterdir()))
    run = json.loads((folder / "run.json").read_text())
    run["visits"][0]["timeout_ns"] = 50_000_000
    (tmp_path / "short.json").write_text(json.dumps(run))
    assert cli.invoke(["repeat", str(tmp_path / "short.json"), "-o", str(tmp_path / "again")]) == 1
    assert "did not load within its time" in capsys.readouterr().err


def test_a_c_file_beside_the_description_is_run_only_if_it_is_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tmp_path / "first"
    first.mkdir()
    shutil.copy(Path(__file__).parents[3] / "congestion/algorithms/std.c", first / "mine.c")
    run = Run(
        id="own",
        trace_dir=first,
        work_dir=first,
        **one_path(WAY, WAY, client="mine", server="mine"),
        congestion=[Congestion(algorithm=str(tmp_path / ".partial-1/mine.c"), name="mine")],
        flows=[Flow(kind={"kind": "bulk", "bytes": 100_000})],
        until_ns=10**10,
    )
    path = str(run.write())
    assert cli.invoke(["repeat", path, "-o", str(tmp_path / "again")]) == 2
    assert "--trust" in capsys.readouterr().err
    assert cli.invoke(["repeat", path, "-o", str(tmp_path / "again"), "--trust"]) == 0
    assert "simulator: valid" in capsys.readouterr().out
    assert trace.read_table(tmp_path / "again", "flow")["received_bytes"].sum() == 100_000


BROWSER_ALONE = json.dumps(
    {
        "format": 5,
        "id": "x",
        "trace_dir": "",
        "work_dir": "",
        "visits": [
            {
                "user_agent": "u",
                "name": "p",
                "timeout_ns": 1,
                "navigation": {"url": "u", "viewport": [1, 1], "mobile": False, "seed": 1, "clock_ms": 1},
            }
        ],
    }
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "found no JSON"),
        ('{"format": 1}', "format: found 1; accepted: 5"),
        ("[]", "format: found no object"),
        ('{"format": 5, "id": "x"}', "trace_dir: found nothing; accepted: this key, it must be there"),
        ('{"format": 5, "id": "x", "trace_dir": "", "work_dir": "", "visits": 5}', "visits: found 5"),
        (BROWSER_ALONE, "accepted: the run.json of a testbed run"),
    ],
)
def test_what_is_no_description_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "run.json").write_text(text)
    assert cli.invoke(["repeat", str(tmp_path / "run.json"), "-o", str(tmp_path / "again")]) == 2
    assert message in capsys.readouterr().err


def test_a_description_without_segments_still_runs(tmp_path: Path) -> None:
    run = Run(
        id="bare",
        trace_dir=tmp_path,
        work_dir=tmp_path,
        hosts=one_path(WAY, WAY, client="std", server="std")["hosts"],
        congestion=[Congestion(algorithm="std", name="std")],
        flows=[Flow(kind={"kind": "bulk", "bytes": 5_000}, through=[])],
        until_ns=10**9,
    )
    assert simulate.one(run)["flows"][0]["received_bytes"] == 5_000
