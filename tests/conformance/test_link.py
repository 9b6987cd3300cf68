"""The link and its queue alone, in the emulator and in the simulator, given the same arrivals."""

from __future__ import annotations

from pathlib import Path

import link_alone
import pytest
from arms import Link

from wirepaint.runners.testbed.cells import Cells


@pytest.mark.timed
@pytest.mark.parametrize("link", link_alone.LINKS, ids=lambda link: link.name)
def test_the_emulators_link_does_with_real_arrivals_what_the_simulators_does(
    cells: Cells, link: Link, tmp_path: Path
) -> None:
    crossed = link_alone.cross(cells, link, tmp_path)
    assert crossed.packets.height > 2000
    assert crossed.drops > 0
    assert crossed.otherwise_dropped == 0
    # By the model's times. How late the emulator's thread wakes is the machine's: benches/emulator.py.
    assert crossed.otherwise_due == 0
