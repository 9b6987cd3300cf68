"""The few lines with which `run` ends."""

from __future__ import annotations

from wirepaint.results import Results
from wirepaint.results.outcome import Outcome
from wirepaint.statistics import brief
from wirepaint.statistics.compare import factors


def test_a_line_for_each_comparison_names_the_back_end_it_speaks_of(results_folder):
    def stretch(run):
        return (1.2 if run.congestion == "fld" else 1.0) + run.visit / 1000

    results = Results.open(results_folder(stretch, visits=6))
    lines = brief.answers(results)
    assert factors(results) == ["congestion"]
    assert len(lines) == 3
    assert all(line.startswith("testbed: Page load time, ") for line in lines)
    assert sum("fld is slower than cubic" in line for line in lines) == 3
    assert brief.empty_levels(results) == []


def test_of_both_back_ends_each_is_told_apart(results_folder):
    both = Results.open(results_folder(lambda run: 1 + run.visit / 1000, backend="both"))
    assert {line.partition(":")[0] for line in brief.answers(both)} == {"testbed", "simulator"}


def test_a_level_without_a_valid_run_is_named_with_what_became_of_its_runs(results_folder):
    reason = {"check": "foreign_cpu", "severity": "suspect", "found": "80 %", "expected": "at most 25 %"}

    def outcome(run):
        return Outcome("suspect", [reason]) if run.network == "3g" and run.visit else Outcome("valid")

    results = Results.open(results_folder(lambda run: 1 + run.visit / 1000, outcome=outcome))
    assert brief.empty_levels(results) == [
        "network 3g on the testbed: none of 20 runs is valid, 20 suspect (foreign_cpu)"
    ]
    assert len(brief.answers(results)) == 1


def test_a_back_end_without_a_valid_run_is_named_once(results_folder):
    def outcome(run):
        return None if run.backend == "testbed" else Outcome("valid")

    results = Results.open(results_folder(lambda run: 1 + run.visit / 1000, outcome=outcome, backend="both"))
    assert brief.empty_levels(results) == ["testbed: none of 40 runs is valid, 40 failed"]


def test_without_a_valid_run_the_answer_says_so(results_folder):
    results = Results.open(results_folder(lambda run: 1.0, outcome=lambda run: Outcome("suspect")))
    [line] = brief.answers(results)
    assert line.startswith("congestion control: nothing to compare; ") and "44 suspect" in line
