"""Sweeps on Dask: two workers beside one, what all that is no simulation costs, and the scheduler alone.

    .venv/bin/python benches/cluster.py [--runs N] [--visits-of PAGE] [--tasks N] [--json FILE]

- One evaluation of N simulated loads is carried out by one worker and by two, each time with a scheduler and
  a client of its own, all on this machine. On two cores scheduler and client share them with the workers.
- `workers` is their CPU time with that of their simulators, `client` and `scheduler` that of these processes.
  The simulation alone is the CPU time of the data plane. The rest is `engine`: Dask, pickling, Arrow, journal
  and Parquet, without the metrics, which are computed wherever runs are carried out.
- `reading` is what list, verify, compare and report of the results take.
- `scheduler` is how many tasks that do nothing but sleep one scheduler hands out in a second. Divided by the
  batches that a worker asks for in a second it says how many workers one scheduler feeds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "python/tests"))

from dask_cluster import WIREPAINT, cluster  # noqa: E402
from sweeps import OF_A_VISIT, command, written  # noqa: E402

BATCH_S = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """CPU time of a process, of its children that ended, and of those that live."""
    total = 0.0
    for one in tree(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) / _TICKS
    return total


def tree(pid: int) -> Iterator[int]:
    yield pid
    for of_thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = of_thread.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from tree(int(child))


def peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def timed(argv: Sequence[str | Path]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MiB of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    peak = 0.0
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            try:
                peak = max(peak, peak_mib(process.pid))
            except OSError:
                break
            time.sleep(0.05)
    assert process.returncode == 0, argv
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


def sweep(file: Path, results: Path, number: int) -> dict[str, Any]:
    """One evaluation on so many workers."""
    folder = results.with_name(f"{results.name}-logs")
    folder.mkdir()
    with cluster(folder) as dask:
        of_workers, of_scheduler = dask.start_worker(number).pid, dask.scheduler.pid
        before = cpu_s(of_workers), cpu_s(of_scheduler)
        wall, client, peak = timed(command(file, results, dask.address))
        return {
            "workers": number,
            "wall_s": wall,
            "client_cpu_s": client,
            "client_peak_mib": peak,
            "scheduler_cpu_s": cpu_s(of_scheduler) - before[1],
            "scheduler_peak_mib": peak_mib(of_scheduler),
            "workers_cpu_s": cpu_s(of_workers) - before[0],
        }


def parts(file: Path, runs: int) -> Mapping[str, float]:
    """CPU ms of a run on a worker: the simulator, the metrics, and all else of a batch."""
    code = """
import json, pickle, resource, sys, time
from pathlib import Path
from wirepaint import metrics
from wirepaint.cluster import batch
from wirepaint.evaluation import plan
import distributed
every = plan(Path(sys.argv[1])).runs
runs = [every[place] for place in sorted(range(int(sys.argv[2])), key=every.condition_of)]
packer = batch.Packer()
packed, needed = packer.pack(runs, traces=False)
shared = {digest: packer.shared[digest] for digest in needed}
batch.carry_out(packer.pack(runs[:1], traces=False)[0], shared)
spent = [0.0]
thin = metrics.thin_of
def measured(runs):
    began = time.process_time()
    found = thin(runs)
    spent[0] += time.process_time() - began
    return found
metrics.thin_of = measured
def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
before, of_children = time.process_time(), children()
batch.carry_out(packed, shared)
whole, simulator = time.process_time() - before, children() - of_children
per = 1000 / len(runs)
print(json.dumps({"simulator": simulator * per, "metrics": spent[0] * per, "rest": (whole - spent[0]) * per}))
"""
    env = os.environ | {"POLARS_MAX_THREADS": "1"}
    asked = [sys.executable, "-c", code, str(file), str(runs)]
    return json.loads(subprocess.run(asked, check=True, capture_output=True, text=True, env=env).stdout)


def handed_out(tasks: int, sleep_s: float = 0.01, threads: int = 64) -> float:
    """Tasks in a second that one scheduler hands to a worker of many threads, where each task sleeps."""
    from wirepaint.cluster.address import needs_dask

    needs_dask()  # before the import: Dask's log of its own end is none of the figures
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=threads, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.gather(client.map(time.sleep, [0.0] * threads, pure=False))
        began = time.monotonic()
        client.gather(client.map(time.sleep, [sleep_s] * tasks, pure=False))
        return tasks / (time.monotonic() - began)


def pages_of(named: str) -> list[str]:
    found = sorted(str(index.parent.resolve()) for index in Path(named).glob("*/page.json"))
    return found or [named]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=4_000, help="simulated loads")
    parser.add_argument(
        "--visits-of",
        default="blog-small",
        metavar="PAGE",
        help="page that is loaded, or a folder whose pages are, each as often",
    )
    parser.add_argument("--tasks", type=int, default=5_000, help="sleeping tasks for the scheduler alone")
    parser.add_argument("--one", action="store_true", help="only two workers, not one worker beside them")
    parser.add_argument("--json", type=Path, help="file for the numbers as JSON")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        file = place / "sweep.toml"
        pages = pages_of(options.visits_of)
        runs = written(file, options.runs, pages)
        found["runs"], found["of a run"] = (
            runs,
            parts(file, min(runs, max(800, 10 * OF_A_VISIT * len(pages)))),
        )
        of_run = ", ".join(f"{name} {ms:.1f} ms" for name, ms in found["of a run"].items())
        print(f"{runs} loads of {options.visits_of}; CPU of a run on a worker: {of_run}", flush=True)
        found["sweeps"] = []
        for number in (2,) if options.one else (1, 2):
            one = sweep(file, place / f"results-{number}", number)
            found["sweeps"].append(one)
            print(
                f"{number} workers: {one['wall_s']:.1f} s; CPU: workers {one['workers_cpu_s']:.1f} s, client "
                f"{one['client_cpu_s']:.1f} s (peak {one['client_peak_mib']:.0f} MiB), scheduler "
                f"{one['scheduler_cpu_s']:.1f} s (peak {one['scheduler_peak_mib']:.0f} MiB)",
                flush=True,
            )
        if len(found["sweeps"]) == 2:
            alone, both = found["sweeps"]
            print(f"two workers: {alone['wall_s'] / both['wall_s']:.2f} times as fast as one")
        last, simulated = found["sweeps"][-1], found["of a run"]["simulator"] * runs / 1000
        engine = found["of a run"]["rest"] * runs / 1000 + last["client_cpu_s"] + last["scheduler_cpu_s"]
        print(f"engine, transport and storage: {engine / simulated:.1%} of the simulation's CPU")
        results = place / f"results-{last['workers']}"
        size = sum(path.stat().st_size for path in results.rglob("*") if path.is_file())
        print(f"results: {size / 1e6:.1f} MB, {size / runs:.0f} bytes a run")
        found["results_bytes"] = size
        for name, argv in {
            "list": ["list", str(results)],
            "verify": ["verify", str(results)],
            "compare": ["compare", str(results), "--factor", "http"],
            "report": ["report", str(results)],
        }.items():
            wall, _, peak = timed([WIREPAINT, *argv])
            found[name] = {"wall_s": wall, "peak_mib": peak}
            print(f"{name}: {wall:.1f} s, peak {peak:.0f} MiB", flush=True)
    rate = handed_out(options.tasks)
    found["tasks_per_s"] = rate
    fed = rate * BATCH_S
    print(f"scheduler alone: {rate:.0f} tasks/s, so it feeds {fed:.0f} workers with batches of {BATCH_S:g} s")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
