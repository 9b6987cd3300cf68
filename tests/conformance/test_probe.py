"""The summary of the sampling of the kernel's TCP."""

from __future__ import annotations

from pathlib import Path

from wirepaint.dataplane.description import Host, Run
from wirepaint.runners.testbed.cells import Cells


def test_segments_that_the_probe_did_not_see_are_counted(cells: Cells, tmp_path: Path) -> None:
    """Those before the probe was attached, without the SYN and the ACK of the handshake.

    On some machines the kernel runs no BPF program for some of the later segments either.
    """
    server = Host(name="server", role="server", congestion="reno")
    run = Run(id="late", trace_dir=tmp_path, work_dir=tmp_path, hosts=[server]).document()
    answer = cells.call("late_probe:carry_out", {"run": run}, timeout_s=30, log=tmp_path / "cell.txt")
    [connection] = answer["probe"]["unseen"]
    before, after = answer["before"] - 2, answer["after"] - 2
    assert 0 < before <= connection["segments"] < after
    assert (connection["server_address"], connection["server_port"]) == ("10.65.0.1", 5001)
