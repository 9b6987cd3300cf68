"""``wirepaint list RESULTS``: the runs, some of them, and how many more there are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from wirepaint.cli import invoke
from wirepaint.results.outcome import Outcome

REASON = {"check": "congestion", "severity": "invalid", "found": "bbr", "expected": "fld"}


@pytest.fixture
def results(results_folder: Callable[..., Path]) -> Path:
    """Two visits of each page; of fld on lte one page is invalid, the other fails."""

    def outcome(run):
        if run.congestion == "fld" and run.network == "lte":
            return Outcome("invalid", [REASON]) if run.page == "small" else None
        return Outcome("valid")

    return results_folder(lambda run: 2.0, 8, outcome)


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    assert invoke(["list", *arguments]) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_page_of_runs_is_listed_and_the_number_of_the_others(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *rows, last = listed(capsys, str(results))
    every = listed(capsys, str(results), "--all")
    assert head == ["run", "backend", "scenario", "page", "visit", "verdict", "page-load-time"]
    assert {row[1] for row in rows} == {"testbed"}
    assert len(rows) == 20
    assert last == ["and", str(len(every) - 21), "more", "(--all)"]
    assert rows == every[1:21]


def test_options_choose_runs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("--network", "lte", "--congestion", "cubic,fld", "--page", "small", "--verdict", "invalid")
    _, *rows = listed(capsys, str(results), *chosen)
    assert rows
    assert {(row[3], row[5]) for row in rows} == {("small", "invalid")}
    assert all("fld" in row[2] for row in rows)
    key = rows[0][0]
    assert listed(capsys, str(results), "--only", key)[1:] == [rows[0]]


def test_a_failed_run_has_no_number_and_a_cause(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, first, *_ = listed(capsys, str(results), "--verdict", "failed")
    assert first[-1] == "-"
    assert invoke(["list", str(results), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(listed(capsys, str(results), "--all")) - 1, "JSON has all runs"
    (failed,) = (row for row in rows if row["run_key"] == first[0])
    assert (failed["verdict"], failed["page_load_time"]) == ("failed", None)
    assert failed["cause"]
    valid = {row["page_load_time"] for row in rows if (row["page"], row["verdict"]) == ("small", "valid")}
    assert valid == {600.0}


def test_a_verdict_that_no_run_has_is_an_empty_list(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (head,) = listed(capsys, str(results), "--verdict", "suspect")
    assert head[0] == "run"
    assert invoke(["list", str(results), "--verdict", "suspect,timed out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert invoke(["list", str(results), "--verdict", "invalide"]) == 2
    assert '(did you mean "invalid"?)' in capsys.readouterr().err


def test_readers_of_values_that_are_kept_say_that_run_folders_are_missing(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed(capsys, str(results), "--all")
    budget = results.parent / "budget.toml"
    budget.write_text('[[rules]]\nmetric = "page-load-time"\nat_most = 900_000\n')
    for run in [*(results / "runs").glob("*.small.v0[12]")]:
        shutil.rmtree(run)
    for command in (["compare"], ["list"], ["check", "--budget", str(budget)]):
        assert invoke([command[0], str(results), *command[1:]]) in (0, 99)
        err = capsys.readouterr().err
        assert err.count(" run folders are missing; ") == 1, command
        assert f"wirepaint verify {results} tells which." in err


def test_a_value_that_no_run_has_is_refused(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["list", str(results), "--network", "ltee"]) == 2
    assert 'wirepaint: --network: found "ltee"; accepted: one of 3g, lte' in capsys.readouterr().err
