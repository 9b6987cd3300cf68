"""A sweep of simulated loads that goes on while its parts are killed, and what must hold in the end."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from dask_cluster import WIREPAINT
from waiting import holds_within

from wirepaint import metrics
from wirepaint.results import Results
from wirepaint.results.verify import verify

EVALUATION = """\
title = "A sweep"
backend = "simulator"
warmup = false
[results]
keep = "metrics"
[scenarios]
network = ["lte", "wpt-cable"]
congestion = ["cubic", "fld"]
http = ["h1", "h2"]
"""
AGENT = """\
[[user_agents]]
pages = {pages}
visits = {visits}
"""
OF_A_VISIT = 2 * 2 * 2
MOST_VISITS = 10_000
"""Of a user agent."""


def written(file: Path, runs: int, pages: Sequence[str] = ("blog-small",)) -> int:
    """Writes the evaluation of about so many loads of pages; returns their number."""
    of_visit = OF_A_VISIT * len(pages)
    visits = max(1, runs // of_visit)
    agents = -(-visits // MOST_VISITS)
    agent = AGENT.format(pages=json.dumps(list(pages)), visits=visits // agents)
    file.write_text(EVALUATION + agent * agents)
    return visits // agents * agents * of_visit


def command(file: Path, results: Path, on: str = "local") -> list[str | Path]:
    """The command that begins a sweep, and goes on with it."""
    return [WIREPAINT, "run", file, "-o", results, "--no-rehearse", "--quiet", "--on", on]


class Sweep:
    """A sweep on a scheduler in a folder; ``log`` has what its commands say."""

    def __init__(
        self, folder: Path, runs: int, env: Mapping[str, str] | None = None, within: str = "."
    ) -> None:
        """The results are ``within`` a folder in the folder."""
        self.file, self.results, self.log = folder / "e.toml", folder / within / "r", folder / "run.log"
        self.runs = written(self.file, runs)
        self._env = os.environ | dict(env or {})

    def start(self, on: str, *, start_new_session: bool = False) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command(self.file, self.results, on),
                stdout=log,
                stderr=log,
                env=self._env,
                start_new_session=start_new_session,
            )

    def said(self) -> str:
        return self.log.read_text()

    def done(self) -> int:
        """Runs that are done as the journal says."""
        try:
            with sqlite3.connect(f"file:{self.results}/journal.sqlite?mode=ro", uri=True) as book:
                return book.execute("SELECT count(*) FROM run WHERE state = 'done'").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    def goes_on(self, run: subprocess.Popen[bytes], before: int) -> bool:
        """Waits until more than ``before`` runs are done, or the command has ended."""
        return holds_within(120, lambda: self.done() > before or run.poll() is not None)

    def wrong(self, expected: Path) -> list[str]:
        """What of the results is not as it is in those of the same sweep without faults."""
        found, results = [], Results.open(self.results)
        rows = results.runs("done")
        if rows.height != self.runs:
            found.append(f"{rows.height} runs of {self.runs}")
        if rows["run_key"].n_unique() != rows.height:
            found.append("a key is there twice")
        without = Results.open(expected)
        if not rows.drop("attempts").equals(without.runs("done").drop("attempts")):
            found.append("rows of runs differ")
        if not metrics.table(results).equals(metrics.table(without)):
            found.append("metrics differ")
        return found + [f"{fault.path}: {fault.found}" for fault in verify(self.results).faults]
