"""``wirepaint explain RESULTS verdict RUN``: why a run does not count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from wirepaint.cli import invoke
from wirepaint.results.outcome import Outcome

REASON = {"check": "congestion", "severity": "invalid", "found": "bbr", "expected": "fld"}
INVALID, FAILED = "lte-fld-h2.user.small.v01", "lte-fld-h2.user.large.v01"


@pytest.fixture
def results(results_folder: Callable[..., Path]) -> Path:
    def outcome(run):
        if run.congestion == "fld" and run.network == "lte":
            return Outcome("invalid", [REASON]) if run.page == "small" else None
        return Outcome("valid")

    return results_folder(lambda run: 1.0, 1, outcome)


def test_the_reasons_are_in_words_with_what_was_found(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", str(results), "verdict", INVALID]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"testbed: verdict of {INVALID}: invalid",
        "",
        "invalid: The kernel reports another congestion control for a server socket than the one asked for.",
        "  congestion: found bbr, expected fld",
    ]
    assert invoke(["explain", str(results), "verdict", INVALID, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["backend"], told["reasons"]) == ("testbed", [REASON])


def test_a_run_without_a_verdict_has_its_cause(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", str(results), "verdict", FAILED]) == 0
    assert capsys.readouterr().out == f"testbed: verdict of {FAILED}: failed: the browser ended by itself\n"


def test_an_unknown_run_is_refused_with_the_most_similar(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", str(results), "verdict", FAILED.replace("v01", "v07")]) == 2
    assert f'did you mean "{FAILED}"?' in capsys.readouterr().err


def test_without_a_run_those_that_are_not_valid_are_named(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", str(results)]) == 0
    said = capsys.readouterr().out.splitlines()
    title, head, *rows, ask = said[said.index("Runs that are not valid:") :]
    assert head.split() == ["backend", "run", "page", "verdict"]
    found = [row.split()[1:] for row in rows]
    assert [FAILED, "large", "failed"] in found and [INVALID, "small", "invalid"] in found
    assert all(row[0].startswith("lte-fld-h2.") for row in found)
    assert ask == f"Ask: wirepaint explain {results} verdict {found[0][0]}"
    assert invoke(["explain", str(results), "verdict"]) == 0
    assert capsys.readouterr().out.splitlines() == [title, head, *rows, ask]
