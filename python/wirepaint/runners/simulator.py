"""The simulator: page visits under a virtual clock, many at once, without root or browser.

One process of the data plane carries out all runs on all cores. It reads paths of run
descriptions and prints a line when a run is over; here the line becomes an ``Outcome`` and the
table ``run``. The description stays in the run's folder as ``run.json``, so that
``wirepaint-dataplane simulate run.json`` repeats it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from wirepaint import __version__, dataplane, pages
from wirepaint.errors import PageTimeout, Refused, RunFailed
from wirepaint.evaluation.congestion import NATIVE
from wirepaint.pages.loading import load_graph
from wirepaint.results import trace
from wirepaint.results.outcome import Outcome
from wirepaint.runners.description import BASELINE_SYSCTLS, identity, network
from wirepaint.runners.testbed import linux

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun
    from wirepaint.runners.pool import Ends, Interruptible, Jobs

CLIENT_CONGESTION = "reno"
"""Of the browser's side, as on the testbed. It sends little, but each request is a segment, and ten of them
do not fit the first window beside the end of the handshake."""

HOST_DELAY_NS = (20_000, 75_000)
"""What the hosts and the emulator add to a direction of a path; measured: 40 to 150 us a round trip."""
TICKS_NS = 32_000_000
"""A visit begins anywhere within so much: timers beyond a quarter of a second go off every 32 ms."""


@contextmanager
def run_many(jobs: Jobs, interruptible: Interruptible) -> Iterator[Ends]:
    """Carries runs out; within it, iterate over (run, its outcome or failure) in the order of ending."""
    workers = len(os.sched_getaffinity(0))
    argv = [dataplane.program(), "simulate", "--workers", str(workers), "-"]
    with tempfile.TemporaryFile() as log:
        # Errors come with the line of their run; what the program says of itself explains its end.
        parent = os.getpid()
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=lambda: linux.die_with_parent(parent),
        )
        try:
            yield _ends(process, iter(jobs), 2 * workers, interruptible, log)
        finally:
            process.kill()
            process.communicate()


def _ends(
    process: subprocess.Popen[bytes],
    jobs: Iterator[tuple[ResolvedRun, Path]],
    most: int,
    interruptible: Interruptible,
    log: IO[bytes],
) -> Ends:
    """Keeps at most ``most`` runs in the process, so that what is begun and not over stays little."""
    assert process.stdin is not None and process.stdout is not None
    asked: dict[str, tuple[ResolvedRun, Path]] = {}
    while True:
        while len(asked) < most and (job := next(jobs, None)) is not None:
            run, folder = job
            path = folder.absolute() / "run.json"
            try:
                path.write_text(json.dumps(describe(run, folder.absolute())))
            except RunFailed as failure:
                yield run, failure
                continue
            asked[str(path)] = job
            try:
                process.stdin.write(f"{path}\n".encode())
                process.stdin.flush()
            except BrokenPipeError:
                raise _ended(process, log) from None
        if not asked:
            return
        with interruptible():
            line = process.stdout.readline()
        if not line:
            raise _ended(process, log)
        said = json.loads(line)
        run, folder = asked.pop(said["run"])
        yield run, _end(run, folder, said)


def _ended(process: subprocess.Popen[bytes], log: IO[bytes]) -> RunFailed:
    """The program's end while there were runs to do, with its last words."""
    code = process.wait()
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return RunFailed(f"the simulator ended with runs to do: exit code {code}" + (f": {said}" if said else ""))


def describe(run: ResolvedRun, folder: Path) -> dict[str, Any]:
    """The run description of a page visit."""
    name, page = _page(run.page, run.viewport)
    client, of_client = NATIVE[CLIENT_CONGESTION]
    algorithm, parameters = run.congestion.native(folder)
    timeout_ns = round(run.timeout_s * 1e9)
    # Windows hang on where TCP's clocks tick and on whether a round trip takes 30.97 or 31.02 ms.
    drawn = random.Random(run.seed)
    path = network(run)
    for direction in (path["down"], path["up"]):
        of_hosts = drawn.randint(*HOST_DELAY_NS)
        direction["delay_ns"] += of_hosts
        direction["changes"] = [
            change | {"delay_ns": change["delay_ns"] + of_hosts} if "delay_ns" in change else change
            for change in direction["changes"]
        ]
    start_ns = drawn.randrange(TICKS_NS)
    return {
        "format": 1,
        "id": "sim",
        "seed": run.seed,
        "trace_dir": str(folder),
        "work_dir": str(folder),
        "network": path,
        "congestion": [
            {"algorithm": client, "name": "client", "parameters": of_client},
            {"algorithm": algorithm, "name": "server", "parameters": parameters},
        ],
        "simulation": {
            "visits": [
                {
                    "user_agent": run.user_agent,
                    "name": name,
                    "start_ns": start_ns,
                    "timeout_ns": timeout_ns,
                    "congestion": "server",
                    "initial_window": run.initial_window,
                    "page": page,
                    "settings": {"http": run.http, "tls": run.tls},
                }
            ],
            "tcp": {"sysctls": BASELINE_SYSCTLS | run.sysctls},
            "until_ns": start_ns + timeout_ns,
        },
    }


@lru_cache(maxsize=64)
def _page(folder: Path, viewport: tuple[int, int]) -> tuple[str, dict[str, Any]]:
    """Name and load graph of a page: the same for all its visits."""
    prepared = pages.prepare(folder, pages.cache_dir())
    return prepared.name, load_graph(prepared, viewport)


def _end(run: ResolvedRun, folder: Path, said: dict[str, Any]) -> Outcome | RunFailed:
    """What came of a run; writes its table ``run``. Raises ``Refused`` for what every such run would meet."""
    if "error" in said:
        if said["exit_code"] == Refused.exit_code:
            raise Refused(f"{run.key}: {said['error']}")
        return RunFailed(said["error"])
    (visit,) = said["visits"]
    if said["unfinished"] or visit["loaded"] < visit["objects"]:
        found = f"{visit['loaded']} of {visit['objects']} objects"
        return PageTimeout(f"the page did not load within {run.timeout_s:g} s: {found}")
    reasons = [{"severity": "invalid", **fault} for fault in said["faults"]]
    connections = trace.read_table(folder, "connection")
    asked = {
        "congestion": Path(run.congestion.native(folder)[0]).stem,
        "initial_window": run.initial_window,
    }
    for check, expected in asked.items():
        used = connections[check].drop_nulls().unique().to_list()
        if used != [expected]:
            reason = {"severity": "invalid", "check": check, "found": f"{used}", "expected": f"{expected}"}
            reasons.append(reason)
    outcome = Outcome("invalid" if reasons else "valid", reasons, said["duration"])
    row = identity(run) | {
        "started_unix": time.time_ns(),
        "duration": said["duration"],
        "verdict": outcome.verdict,
        "reasons": json.dumps(reasons),
        "wirepaint": __version__,
        "sysctls": json.dumps(BASELINE_SYSCTLS | run.sysctls),
        "server_congestion": connections["congestion"].first() if connections.height else None,
        "client_congestion": CLIENT_CONGESTION,
        "server_initial_window": connections["initial_window"].first() if connections.height else None,
    }
    trace.write_table(folder, "run", [row])
    return outcome
