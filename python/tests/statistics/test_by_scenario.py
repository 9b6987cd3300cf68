"""What the tables of users and flows say beside their numbers: whose they are, and what was left out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from wirepaint.cli import invoke
from wirepaint.results.outcome import Outcome


@pytest.fixture
def folder(results_folder: Callable[..., Path]) -> Path:
    """Both back ends; on the testbed no run of fld counts."""

    def outcome(run):
        return Outcome("suspect" if (run.backend, run.congestion) == ("testbed", "fld") else "valid")

    return results_folder(lambda run: 1.0, 1, outcome, backend="both")


def test_each_table_names_its_back_end_and_the_end_says_what_was_left_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["users", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(", median")[0] for line in lines if ", median" in line] == [
        "testbed: lte-cubic-h2", "testbed: 3g-cubic-h2",
        "simulator: lte-cubic-h2", "simulator: lte-fld-h2",
        "simulator: 3g-cubic-h2", "simulator: 3g-fld-h2",
    ]  # fmt: skip
    assert lines[-4:] == [
        "testbed: 4 of 8 visits count; 4 suspect.",
        "simulator: 8 of 8 visits count.",
        "lte-fld-h2-testbed: 0 of 2 visits count; 2 suspect.",
        "3g-fld-h2-testbed: 0 of 2 visits count; 2 suspect.",
    ]


def test_json_has_the_back_end_in_each_row_and_how_all_visits_ended(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["users", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {(row["backend"], row["scenario"]) for row in told["users"] if "lte" in row["scenario"]} == {
        ("testbed", "lte-cubic-h2-testbed"),
        ("simulator", "lte-cubic-h2-simulator"),
        ("simulator", "lte-fld-h2-simulator"),
    }
    assert [(each["level"], each["lost"]) for each in told["backends"]] == [("testbed", 4), ("simulator", 0)]
    ended = {each["level"]: (each["counted"], each["left_out"]) for each in told["losses"]}
    assert len(ended) == 8
    assert ended["lte-fld-h2-testbed"] == (0, {"suspect": 2})
    assert ended["lte-fld-h2-simulator"] == (2, {})


def test_results_without_a_run_that_counts_say_why(
    results_folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results_folder(lambda run: 1.0, 1, lambda run: Outcome("suspect"))
    assert invoke(["users", str(folder)]) == 2
    assert "found no run with users that counts; testbed: 8 suspect; accepted" in capsys.readouterr().err


def test_groups_that_share_no_run_have_tables_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["wirepaint"])
    agents = "".join(
        f'[[user_agents]]\nname = "{name}"\npages = ["{page}"]\nvisits = 1\ntogether = "{group}"\n'
        for name, page, group in (("a", "photos", "two"), ("b", "agency", "two"), ("c", "photos", "one"))
    )
    file = tmp_path / "groups.toml"
    file.write_text(
        f'title = "Groups"\nbackend = "simulator"\nwarmup = false\n[scenarios]\nnetwork = ["lte"]\n{agents}'
    )
    results = tmp_path / "results"
    assert invoke(["run", str(file), "-o", str(results), "--no-rehearse", "--quiet"]) == 0
    capsys.readouterr()
    assert invoke(["users", str(results)]) == 0
    tables = capsys.readouterr().out.split("\n\n")
    found = {table.partition(",")[2].partition(",")[0].strip(): table.splitlines() for table in tables[:2]}
    rows = {
        group: [line[0] for line in lines if line[:2] in ("a ", "b ", "c ")] for group, lines in found.items()
    }
    assert rows == {"two": ["a", "b"], "one": ["c"]}
    below = {group: " ".join(lines) for group, lines in found.items()}
    assert re.search(r"Link utilisation [\d.]+ %; ", below["one"])
    assert re.search(r"Link utilisation while a loads [\d.]+ %, b +loads [\d.]+ %; ", below["two"])
    assert "Jain's index of the users 0." in below["two"] and "Jain" not in below["one"]
