"""The parts that a cell of these tests starts for a transfer: emulator, probe, congestion controls."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from wirepaint.dataplane.description import Direction, Host, Interfaces, Run, Segment
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
    file, epoch = written(paths, run)
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


def description(folder: Path, name: str, down: Direction, up: Direction, **more: Any) -> dict[str, Any]:
    """A run on one path, without what only the cell can know. ``name`` is the server's congestion control."""
    segment = Segment(down=down, up=up, interfaces=Interfaces(), packet_trace=more.pop("packet_trace", False))
    server = Host(name="server", role="server", congestion=name)
    described = Run(trace_dir=folder, work_dir=folder, hosts=[server], segments=[segment], **more)
    return described.document()


def written(paths: namespaces.Namespaces, run: dict[str, Any]) -> tuple[Path, int]:
    """The file of a run that begins now, and its epoch."""
    epoch = time.monotonic_ns()
    [server] = run["hosts"]
    known = run | {"epoch_ns": epoch, "hosts": [server | {"namespace_inode": namespaces.inode(paths.server)}]}
    file = Path(run["trace_dir"]) / "run.json"
    file.write_text(json.dumps(known))
    return file, epoch
