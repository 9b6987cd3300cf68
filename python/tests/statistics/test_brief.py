"""The few lines with which `run` ends."""

from __future__ import annotations

from dataclasses import replace

from wirepaint.results import Results
from wirepaint.results.outcome import Outcome
from wirepaint.statistics import brief, condensed
from wirepaint.statistics.compare import compare_results, factors


def answer(results: Results) -> brief.Answer:
    return brief.answer(results, lambda factor: f"compare --factor {factor}")


def test_a_line_for_each_comparison_names_the_back_end_it_speaks_of(results_folder):
    def stretch(run):
        return (1.2 if run.congestion == "fld" else 1.0) + run.visit / 1000

    results = Results.open(results_folder(stretch, visits=6))
    lines = answer(results).brief
    assert lines == answer(results).every
    assert factors(results) == ["congestion"]
    assert len(lines) == 3
    assert all(line.startswith("testbed: Page load time, ") for line in lines)
    assert sum("fld is slower than cubic" in line for line in lines) == 3
    assert brief.empty_levels(results) == []


def test_of_both_back_ends_each_is_told_apart(results_folder):
    both = Results.open(results_folder(lambda run: 1 + run.visit / 1000, backend="both"))
    assert {line.partition(":")[0] for line in answer(both).every} == {"testbed", "simulator"}


def test_a_level_without_a_valid_run_is_named_with_what_became_of_its_runs(results_folder):
    reason = {"check": "foreign_cpu", "severity": "suspect", "found": "80 %", "expected": "at most 25 %"}

    def outcome(run):
        return Outcome("suspect", [reason]) if run.network == "3g" and run.visit else Outcome("valid")

    results = Results.open(results_folder(lambda run: 1 + run.visit / 1000, outcome=outcome))
    assert brief.empty_levels(results) == [
        "network 3g on the testbed: none of 20 runs is valid, 20 suspect (foreign_cpu)"
    ]
    assert len(answer(results).brief) == 1


def test_a_back_end_without_a_valid_run_is_named_once(results_folder):
    def outcome(run):
        return None if run.backend == "testbed" else Outcome("valid")

    results = Results.open(results_folder(lambda run: 1 + run.visit / 1000, outcome=outcome, backend="both"))
    assert brief.empty_levels(results) == ["testbed: none of 40 runs is valid, 40 failed"]


def test_without_a_valid_run_the_answer_says_so(results_folder):
    results = Results.open(results_folder(lambda run: 1.0, outcome=lambda run: Outcome("suspect")))
    [line] = answer(results).brief
    assert line.startswith("congestion control: nothing to compare; ") and "44 suspect" in line


def test_many_comparisons_are_one_line_for_each_level_and_hide_no_verdict(results_folder):
    def stretch(run):
        slower = {("lte", "h1"): 0.8, ("lte", "h2"): 1.2, ("3g", "h1"): 1.1, ("3g", "h2"): 1.0}
        at = slower[run.network, run.http] if run.congestion == "fld" else 1.0
        return at * (1 + run.visit / 1000)

    folder = results_folder(stretch, visits=6, more_axes='http = ["h1", "h2"]', pages=["small"])
    said = answer(Results.open(folder))
    assert len(said.every) == 10
    of_congestion, every_congestion, of_http, every_http = said.brief
    assert of_congestion.startswith(
        "testbed: Page load time, 1 page: fld against cubic: faster in 1 of 4 (lte / h1: \N{MINUS SIGN}"
    )
    assert "), slower in 2 (+" in of_congestion and "the same in 1 (3g / h2: " in of_congestion
    assert "; all conditions together " in of_congestion
    assert every_congestion == "  each of these 5 comparisons: compare --factor congestion"
    assert of_http.startswith("testbed: Page load time, 1 page: h2 against h1: ")
    assert every_http == "  each of these 5 comparisons: compare --factor http"


def test_levels_without_a_line_of_their_own_are_named_with_their_verdicts(results_folder, monkeypatch):
    monkeypatch.setattr(brief.condensed, "MOST_LINES", 0)
    monkeypatch.setattr(brief, "FEW", 0)

    def stretch(run):
        return (1.2 if run.congestion == "fld" else 1.0) + run.visit / 1000

    line, _ = answer(Results.open(results_folder(stretch, visits=6))).brief
    assert line.startswith(
        "testbed: and 1 more of congestion control: fld slower (slower in 2 of 2 (lte, 3g: +"
    )


def test_pages_that_disagree_are_named_with_their_differences(results_folder):
    def stretch(run):
        apart = {"small": 0.8, "large": 1.2}[run.page] if run.congestion == "fld" else 1.0
        return apart + run.visit / 1000

    folder = results_folder(stretch, visits=6, more_axes='http = ["h1", "h2"]')
    line, *_ = answer(Results.open(folder)).brief
    minus = "\N{MINUS SIGN}"
    assert f"fld against cubic: mixed in 4 of 4 (small {minus}19.9 %, large +19.9 %);" in line


def test_what_is_left_out_of_many_comparisons_is_counted(results_folder):
    results = Results.open(results_folder(lambda run: 1 + run.visit / 1000, visits=6))
    rows = [
        replace(row, baseline=replace(row.baseline, timed_out=2), unpaired=1, dissent=("small",))
        for row in compare_results(results, "congestion", ["page-load-time"], by_page=False)
    ]
    line, _ = condensed.lines(rows, "testbed", "compare")
    assert "; against it: lte / small, 3g / small;" in line
    assert line.endswith(
        "; 4 visits timed out, taken as longer than the limit; 2 left out, alone on their host."
    )


def test_many_levels_under_one_condition_end_with_the_command_that_shows_all(results_folder, monkeypatch):
    monkeypatch.setattr(condensed, "MOST_LINES", 0)
    results = Results.open(results_folder(lambda run: 1 + run.visit / 1000, visits=6))
    rows = compare_results(results, "congestion", ["page-load-time"], by_page=False)[:1]
    assert list(condensed.lines(rows, "testbed", "compare")) == [
        "testbed: and 1 more of congestion control: fld the same in 1 of 1 (lte: +0.0 %).",
        "  all of it: compare",
    ]
