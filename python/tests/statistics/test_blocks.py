"""Hosts as blocks: a difference between hosts is no difference between what is compared."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wirepaint.statistics import hosts
from wirepaint.statistics.compare import compare

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
