"""Flows beside each other: the simulator stays as near to the testbed's kept runs as it was."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benches"))

import flows_agreement  # noqa: E402


@pytest.mark.slow
def test_flows_get_what_they_got_on_the_testbed(tmp_path: Path) -> None:
    """Bounds a third above the errors of 2026-11-28: which flow wins is chance, on the testbed too."""
    ours = pl.concat([flows_agreement.simulated(name, 20, tmp_path) for name in flows_agreement.EXAMPLES])
    found = flows_agreement.beside(pl.read_csv(flows_agreement.KEPT), ours)
    assert found.height == 4 * 5 and found["error"].null_count() == 0
    off = found.with_columns(pl.col("error").abs())
    of_bbr = off.filter(pl.col("name") == "bbr")["error"].to_list()
    assert max(of_bbr) < 0.035, of_bbr
    medians = off.group_by("link").agg(pl.col("error").median())["error"].to_list()
    assert max(medians) < 0.08, medians
