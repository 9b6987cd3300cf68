"""Hosts as blocks: a difference between hosts is no difference between what is compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from wirepaint import report
from wirepaint.cli import invoke
from wirepaint.results import Results
from wirepaint.results.outcome import Outcome
from wirepaint.statistics import brief, hosts
from wirepaint.statistics.compare import compare, compare_results, parted_results

AXES = {"backend": "testbed", "network": "lte", "http": "h2", "initial_window": 10, "page": "news"}


def visits(
    counts: dict[tuple[str, str], int], slower: float = 1.5, effect: float = 1.0, seed: int = 1
) -> pl.DataFrame:
    """Page loads by control and host; lab-b is ``slower``, fld takes ``effect`` times as long as cubic."""
    random = np.random.default_rng(seed)
    rows = [
        AXES
        | {"congestion": control, "host": host, "warmup": False}
        | {
            "page_load_time": 1000
            * (slower if host == "lab-b" else 1)
            * (effect if control == "fld" else 1)
            * random.normal(1, 0.01)
        }
        for (control, host), count in counts.items()
        for _ in range(count)
    ]
    return pl.DataFrame(rows)


UNEVEN = {("cubic", "lab-a"): 18, ("cubic", "lab-b"): 6, ("fld", "lab-a"): 6, ("fld", "lab-b"): 18}
"""Three quarters of the visits with cubic on one host, three quarters of those with fld on the other."""


def test_a_slow_host_does_not_make_a_control_slow() -> None:
    apart = compare(visits(UNEVEN), "congestion", ["page-load-time"])[0]
    together = compare(visits(UNEVEN).drop("host"), "congestion", ["page-load-time"])[0]
    assert apart.verdict == "same" and apart.shift_rel is not None
    assert abs(apart.shift_rel.value) < 0.01
    assert together.verdict == "slower"


def test_a_difference_within_hosts_is_found_and_has_its_size() -> None:
    row = compare(visits(UNEVEN, effect=0.9), "congestion", ["page-load-time"])[0]
    assert row.verdict == "faster" and row.shift_rel is not None
    assert row.shift_rel.value == pytest.approx(-0.1, abs=0.01)
    assert list(row.by_stratum) == ["news"] and row.unpaired == 0
    assert (row.baseline.n, row.candidate.n) == (24, 24)


def test_visits_alone_on_their_host_are_left_out_and_counted() -> None:
    counts = {("cubic", "lab-a"): 6, ("fld", "lab-a"): 6, ("fld", "lab-b"): 3}
    row = compare(visits(counts), "congestion", ["page-load-time"])[0]
    assert row.unpaired == 3 and (row.baseline.n, row.candidate.n) == (6, 6)
    assert "3 left out, alone on their host" in row.sentence
    nothing = compare(visits({("cubic", "lab-a"): 6, ("fld", "lab-b"): 6}), "congestion", ["page-load-time"])
    assert nothing == []


def test_how_much_hosts_differ_is_told_against_the_one_with_most_visits() -> None:
    counts = {(control, host): n for control in ("cubic", "fld") for host, n in (("lab-a", 9), ("lab-b", 6))}
    (one,) = hosts.apart(visits(counts, slower=1.2, effect=0.8), "page-load-time")
    assert (one.baseline, one.host, one.conditions) == ("lab-a", "lab-b", 2)
    assert one.shift.value == pytest.approx(0.2, abs=0.01)
    assert one.shift.low is not None and 0.17 < one.shift.low < one.shift.value
    assert one.sentence.startswith("lab-b against lab-a: page load time +")
    assert hosts.apart(visits({("cubic", "lab-a"): 5}), "page-load-time") == []


def test_levels_that_no_host_shares_are_named(
    results_folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(run: SimpleNamespace) -> Outcome:
        return Outcome("valid", host="lab-a" if run.congestion == "cubic" else "lab-b")

    folder = results_folder(lambda run: 1 + run.visit / 1000, outcome=outcome)
    said = (
        "No host has visits with both cubic and fld in 4 of 4 conditions "
        "(3g / large: cubic on lab-a, fld on lab-b), so they are not compared."
    )
    found = brief.answer(Results.open(folder), str)
    assert found.every == found.brief == [f"congestion control: {said}"]
    assert invoke(["compare", str(folder)]) == 0
    found = " ".join(capsys.readouterr().out.split())
    assert f"! {said}" in found
    assert "No values at two levels of the same page on the same host: page-load-time" in found
    assert invoke(["compare", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [said]
    page = report.build(folder, tmp_path / "report.html").read_text()
    assert "No host has visits with both CUBIC and FLD_TCP in 4 of 4 conditions" in page
    assert "No page has counted visits on both sides" not in page


def test_conditions_that_no_host_shares_are_named_beside_those_that_are_compared(
    results_folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(run: SimpleNamespace) -> Outcome:
        return Outcome("valid", host="lab-b" if (run.network, run.congestion) == ("lte", "fld") else "lab-a")

    folder = results_folder(lambda run: 1 + run.visit / 1000, outcome=outcome)
    assert invoke(["compare", str(folder)]) == 0
    found = " ".join(capsys.readouterr().out.split())
    assert "both cubic and fld in 2 of 4 conditions (lte / large: cubic on lab-a, fld on lab-b)" in found
    assert "3g" in found.partition("Values: medians")[0]
    assert "2 of 4 conditions" in report.build(folder, tmp_path / "report.html").read_text()


def test_back_ends_are_compared_though_simulated_visits_have_no_host(
    results_folder: Callable[..., Path],
) -> None:
    def outcome(run: SimpleNamespace) -> Outcome:
        return Outcome("valid", host=f"lab-{run.visit % 2}" if run.backend == "testbed" else None)

    results = Results.open(results_folder(lambda run: 1 + run.visit / 1000, outcome=outcome, backend="both"))
    rows = compare_results(results, "backend", ["page-load-time"], by_page=False)
    assert {(row.baseline.n, row.candidate.n) for row in rows if row.conditions} == {(10, 10)}
    assert parted_results(results, "backend") == []
