"""The simulator beside Linux: the same flow on the same path, within the tolerances.

Six paths that differ in what they bring out; benches/agreement.py has the whole matrix.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import arms
import pytest
from arms import SENDERS, Flow, Link
from tolerances import compare

from wirepaint.runners.testbed.cells import Cells

SENT = 1_000_000
"""Bytes of each flow."""
REPEATS = 6
"""Linux is asked again, so often at most, where the arms do not agree at first."""


@pytest.mark.timed
@pytest.mark.parametrize(
    "link",
    [
        Link(10, 100, 2),  # slow start alone
        Link(25, 26),  # the receiver's window opens late
        pytest.param(Link(5, 40, 4), marks=pytest.mark.slow),  # a deep queue, then a long recovery
        Link(20, 60, None),  # CoDel
        pytest.param(Link(20, 150, 0.25), marks=pytest.mark.slow),  # an early loss
        pytest.param(Link(50, 100, 0.75), marks=pytest.mark.slow),  # no loss: all fits the queue
    ],
    ids=lambda link: link.name,
)
def test_a_flow_goes_as_in_linux(cells: Cells, link: Link, tmp_path: Path) -> None:
    flows = [Flow(link, SENDERS[name], SENT) for name in ("std", "cubic", "bbr", "cwv", "fld")]
    simulated = arms.simulate(flows, tmp_path / "simulated")
    linux: dict[str, list[arms.Seen]] = {flow.name: [] for flow in flows}
    beyond: dict[str, list[str]] = {}
    due = list(flows)
    for repeat in range(REPEATS):
        for seen in arms.in_linux(cells, due, tmp_path / str(repeat)):
            if not seen.counts:
                warnings.warn(f"{seen.flow.name}: no BPF program ran for some ACKs", stacklevel=1)
            linux[seen.flow.name].append(seen)
        beyond = {}
        for flow, ours in zip(flows, simulated, strict=True):
            counted = arms.worth_comparing(linux[flow.name])
            if not any(seen.sampled for seen in counted):
                beyond[flow.name] = ["the machine is too busy: ACKs went unseen each time"]
                continue
            findings = compare(counted, ours)
            if wrong := [str(finding) for finding in findings if not finding.holds]:
                beyond[flow.name] = wrong
        due = [flow for flow in flows if flow.name in beyond]
        if not due:
            break
    assert not beyond
