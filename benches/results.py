"""What results cost: `run` beside the simulation itself, readers beside one pass over all bytes.

    .venv/bin/python benches/results.py [--runs N] [--keep FOLDER] [--json FILE]

Simulates N runs (2,000 by default) of shipped pages, then reads them as users do.

- `simulation` is the data plane alone with the same run descriptions. It writes traces, too;
  `run` adds descriptions, hashes, the journal and metrics. Its ratio is its wall time over the CPU time of
  the simulation.
- `verify` is one pass over all bytes: the limit of a reader that takes everything. Readers stand beside it.
- `compare, first` reads results without metrics, as earlier builds left them; the others find metrics.
- `agree` reads as many runs of both back ends. A testbed takes hours for them, so half of the simulated
  traces stand for its own: the cost of reading does not depend on who wrote a trace.

Times depend on what else the machine does; each command is a process of its own. A small round comes first:
it compiles Python's bytecode, which an installation has.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

WIREPAINT = [sys.executable, "-c", "from wirepaint.cli import main; main()"]
EVALUATION = """
title = "What results cost"
backend = "{backend}"
warmup = false
[scenarios]
network = ["lte", "wpt-cable"]
congestion = ["cubic", "fld"]
http = ["h1", "h2"]
[[user_agents]]
pages = ["agency", "blog-small", "kit", "news-medium", "photos"]
visits = {visits}
"""
OF_A_VISIT = 2 * 2 * 2 * 5
"""Runs of one visit of each page in each scenario."""


def timed(argv: Sequence[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command and what it started; its output goes nowhere."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def simulated_alone(results: Path, folder: Path) -> tuple[float, float]:
    """The data plane alone with the runs of results."""
    from wirepaint import dataplane

    asked = []
    for path in sorted((results / "runs").glob("*/run.json")):
        run = json.loads(path.read_bytes()) | {"trace_dir": str(folder / path.parent.name)}
        place = folder / f"{path.parent.name}.json"
        place.write_text(json.dumps(run))
        asked.append(f"{place}\n")
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    workers = str(len(os.sched_getaffinity(0)))
    argv = [dataplane.program(), "simulate", "--workers", workers, "-"]
    subprocess.run(argv, input="".join(asked), text=True, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def with_both(results: Path, place: Path, visits: int) -> Path:
    """A results folder with half of the visits for each back end, all with traces of results."""
    from wirepaint.evaluation import plan
    from wirepaint.results import Results
    from wirepaint.results.outcome import Outcome
    from wirepaint.results.store import Store

    file, folder = place / "both.toml", place / "both"
    file.write_text(EVALUATION.format(backend="both", visits=visits // 2))
    rows = Results.open(results).runs().select("scenario", "page", "visit", "run_key").iter_rows()
    traces = {(*whose, visit): results / "runs" / key for *whose, visit, key in rows}
    with Store(folder, planned := plan(file), {}) as store, store.batches():
        for run in planned.runs:
            later = visits // 2 if run.backend == "simulator" else 0
            attempt, target = store.begin(run.key, make=False)
            scenario = run.scenario.removesuffix(f"-{run.backend}")
            shutil.copytree(traces[scenario, run.page_name, run.visit + later], target)
            store.done(run.key, attempt, Outcome("valid"))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_000, help=f"runs, a multiple of {OF_A_VISIT}")
    parser.add_argument("--keep", type=Path, help="folder to work in, kept")
    parser.add_argument("--json", type=Path, help="file for the times as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = options.keep or Path(scratch)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(place / "bytecode"))
        for folder, runs in (("small", 2 * OF_A_VISIT), ("asked", options.runs)):
            (place / folder).mkdir(parents=True)
            rows = measured(place / folder, max(2, runs // OF_A_VISIT))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def measured(place: Path, visits: int) -> list[dict[str, float | str]]:
    file, results = place / "evaluation.toml", place / "results"
    file.write_text(EVALUATION.format(backend="simulator", visits=visits))
    rows: list[dict[str, float | str]] = []

    def said(what: str, wall: float, cpu: float, beside: float, more: str = "") -> None:
        rows.append({"what": what, "wall_s": wall, "cpu_s": cpu, "ratio": wall / beside})
        print(f"{what:28s} {wall:8.1f} s  CPU {cpu:8.1f} s  {wall / beside:6.2f}  {more}", flush=True)

    run = timed([*WIREPAINT, "run", str(file), "-o", str(results), "--no-rehearse"])
    alone = place / "alone"
    alone.mkdir()
    simulation = simulated_alone(results, alone)
    shutil.rmtree(alone)
    print(f"{visits * OF_A_VISIT} runs; ratios to the CPU time of the simulation, of readers to verify")
    said("simulation", *simulation, simulation[1])
    said("run", *run, simulation[1])
    verify = timed([*WIREPAINT, "verify", str(results)])
    said("verify", *verify, verify[0])
    for reader in ("compare", "report"):
        said(
            f"{reader} --factor http",
            *timed([*WIREPAINT, reader, str(results), "--factor", "http"]),
            verify[0],
        )
    size = (results / "report.html").stat().st_size
    print(f"report.html: {size / 1e6:.1f} MB")
    again = timed([*WIREPAINT, "report", str(results), "--factor", "http"])
    said("report, again", *again, verify[0])
    both = with_both(results, place, visits)
    timed([*WIREPAINT, "agree", str(both)])  # computes the metrics
    said("agree", *timed([*WIREPAINT, "agree", str(both)]), verify[0])
    shutil.rmtree(results / "metrics")
    first = timed([*WIREPAINT, "compare", str(results), "--factor", "http"])
    said("compare, first", *first, verify[0], "without metrics")
    return rows


if __name__ == "__main__":
    main()
