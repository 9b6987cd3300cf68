"""The parts that a cell of these tests starts for a transfer: emulator, probe, congestion controls."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from wirepaint.runners.testbed import namespaces
from wirepaint.runners.testbed.process import Part

ADDRESS, PORT = "10.65.0.1", 5001
"""Of the server."""
MSS = 1448
START_NS = 500_000_000
"""A timetable's zero, from the run's epoch: everything is connected by then."""


@contextmanager
def running(paths: namespaces.Namespaces, run: dict[str, Any]) -> Iterator[tuple[int, dict[str, Part]]]:
    """Gives the run's epoch (nanoseconds of CLOCK_MONOTONIC) and its parts by name, when all are ready.

    ``run`` is the description without what only the cell can know.
    """
    folder = Path(run["trace_dir"])
    epoch = time.monotonic_ns()
    file = folder / "run.json"
    file.write_text(
        json.dumps(run | {"epoch_ns": epoch, "probe": {"namespace_inode": namespaces.inode(paths.server)}})
    )
    with (folder / "log.txt").open("a") as log, ExitStack() as stack:
        parts = {
            "emulator": Part(["emulate"], file, log, paths.wire),
            "probe": Part(["probe-tcp"], file, log),
        }
        if run["congestion"]:
            parts["congestion"] = Part(["cc", "load"], file, log)
        for part in parts.values():
            stack.callback(part.kill)
        for part in parts.values():
            part.wait_ready()
        yield epoch, parts
