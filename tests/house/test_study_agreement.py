"""HTTP-AE's figures: the simulator stays as near to the testbed's kept runs as it was."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint.cli import invoke

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benches"))

import study_agreement  # noqa: E402

MOST = {
    "connections": (0.001, 0.002),
    "pipelining": (0.0012, 0.0035),
    "users": (0.0016, 0.035),
    "variants": (0.001, 0.045),
    "pep": (0.0115, 0.016),
    "pep-classes": (0.0085, 0.041),
}
"""Median and 90th percentile, about a third above those of 2026-11-30; of the smallest, 0.05 %."""


@pytest.mark.slow
def test_the_papers_figures_are_those_of_the_testbed(tmp_path: Path) -> None:
    sweeps = [part for name in MOST for part in ("--sweep", name)]
    study = ["study", "run", "http-ae-2011", "--backend", "simulator", "--seeds", "3", *sweeps]
    assert invoke([*study, "-o", str(tmp_path / "out")]) == 0
    found = study_agreement.beside(tmp_path / "out/data")
    assert sum(points.height for points in found.values()) == 510
    errors = {name: points["off"].abs() for name, points in found.items()}
    seen = {name: (off.median(), off.quantile(0.9, "linear")) for name, off in errors.items()}
    frame = pl.DataFrame(
        [(name, *seen[name], *most) for name, most in MOST.items()],
        schema=["sweep", "median", "p90", "most", "most_p90"],
        orient="row",
    )
    assert frame.filter(
        (pl.col("median") > pl.col("most")) | (pl.col("p90") > pl.col("most_p90"))
    ).is_empty(), frame
