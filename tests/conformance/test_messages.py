"""A constant rate over TCP: from the write of a message until it has come to the client, in both arms."""

from __future__ import annotations

from pathlib import Path

import arms
import pytest
from arms import SENDERS, Flow, Link, Messages
from tolerances import compare

from wirepaint.runners.testbed.cells import Cells

REPEATS = 3
ATTEMPTS = 3
"""The wake-ups of the machine are part of a delay: Linux runs again if the machine was too busy."""


@pytest.mark.timed
@pytest.mark.parametrize(
    "rate",
    [
        pytest.param(1.6, id="a third of the capacity", marks=pytest.mark.slow),
        pytest.param(4.5, id="close to the capacity"),
    ],
)
@pytest.mark.parametrize("sender", ["cubic", pytest.param("std", marks=pytest.mark.slow)])
def test_messages_take_as_long_as_in_linux(cells: Cells, sender: str, rate: float, tmp_path: Path) -> None:
    flow = Flow(Link(5, 60), SENDERS[sender], 1_000_000, messages=Messages(1000, rate))
    (simulated,) = arms.simulate([flow], tmp_path / "simulated")
    assert all(len(seen.delays_ns) == 1000 for seen in simulated)
    beyond = ["ACKs went unseen each time"]
    for attempt in range(ATTEMPTS):
        linux = arms.in_linux(cells, [flow] * REPEATS, tmp_path / str(attempt))
        assert all(len(seen.delays_ns) == 1000 for seen in linux)
        if counted := arms.worth_comparing(linux):
            beyond = [str(finding) for finding in compare(counted, simulated) if not finding.holds]
        if not beyond:
            break
    assert not beyond
