"""The emulated hops of a run beside the main one: an emulator each, in a wire of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.results import trace
from wirepaint.runners.testbed.proxying import Start
from wirepaint.runners.testbed.route import OTHER_EMULATOR

_TABLES = ("link", "packet")
_SEED_STEP = 0x9E37_79B9_7F4A_7C15
"""Between the seeds of a run's segments, as in the simulator (crates/simulator/src/engine.rs)."""
_INTERFACES = {"client": "c1", "server": "s1"}


class Emulators:
    """The emulators of the segments beside the first one."""

    def __init__(
        self,
        run: Mapping[str, Any],
        work: Path,
        emulate: Sequence[str],
        wires: Mapping[str, int],
        start: Start,
    ) -> None:
        """Starts one, with the command ``emulate``, in each of ``wires``: namespaces by name of segment."""
        self._parts = {}
        self._folders = {}
        self._wait: list[str] = []
        for place, segment in enumerate(run["segments"][1:], 1):
            name = segment["name"]
            folder = self._folders[name] = work / f"segment-{name}"
            folder.mkdir()
            file = folder / "run.json"
            emulated = segment | {"interfaces": _INTERFACES}
            seed = (run["seed"] + _SEED_STEP * place) % 2**64
            told = {**run, "seed": seed, "segments": [emulated], "path": [], "trace_dir": str(folder)}
            file.write_text(json.dumps(told))
            waits = segment["changes_wait"]
            part = start(f"{OTHER_EMULATOR}{name}", emulate, wires[name], listens=waits, run_file=file)
            self._parts[name] = part
            self._wait += [name] if waits else []

    def begin(self, at_ns: int) -> None:
        """The changes of their links count from this time of the run."""
        for name in self._wait:
            self._parts[name].tell(str(at_ns))

    def stop(self, folder: Path) -> dict[str, dict[str, Any]]:
        """Ends them, and adds their tables to those of the run in ``folder``. Returns their summaries."""
        summaries = {f"{OTHER_EMULATOR}{name}": part.stop() for name, part in self._parts.items()}
        for name in _TABLES if self._parts else ():
            tables = [trace.read_table(place, name) for place in (folder, *self._folders.values())]
            if any(table.height for table in tables):
                trace.write_frame(folder, name, pl.concat(tables))
        return summaries
