"""Linux's own congestion controls as oracle for ours, on the same emulated paths.

One path of the twelve of ``benches/oracle.py`` for each pair; the benchmark has the rest.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from wirepaint.runners.testbed.cells import Cells

sys.path.append(str(Path(__file__).parents[2] / "benches"))

import oracle

ATTEMPTS = 3
"""A disturbance of the machine stretches one of the two transfers, a wrong algorithm each pair."""


@pytest.mark.timed
@pytest.mark.parametrize(
    ("pair", "path"),
    [
        ("cubic", "20M-60ms-1bdp"),
        pytest.param("reno", "20M-60ms-1bdp", marks=pytest.mark.slow),
        pytest.param("bbr", "10M-50ms-0.5bdp", marks=pytest.mark.slow),
    ],
)
def test_ours_takes_as_long_as_linux_s_own(cells: Cells, tmp_path: Path, pair: str, path: str) -> None:
    """Completion of one bulk flow within 5 %."""
    [chosen] = [one for one in oracle.PATHS if one.name == path]
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        ratio = oracle.compare(cells, oracle.PAIRS[pair], chosen, folder, seed=1)["time"]
        if abs(ratio - 1) <= oracle.WITHIN:
            return
        warnings.warn(f"{pair} on {path}: ours took {ratio:.3f} of Linux's time; once more", stacklevel=1)
    pytest.fail(f"{pair} on {path}: {ATTEMPTS} times not within {oracle.WITHIN:.0%}")
