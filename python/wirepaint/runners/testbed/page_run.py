"""One page visit on the testbed: starts the parts, loads the page, joins the parts' records.

``carry_out`` runs inside a cell (see ``cells``). Each visit gets new namespaces, emulator,
congestion controls, server and browser, so that nothing is warm from an earlier visit.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wirepaint import __version__
from wirepaint.results import trace
from wirepaint.runners.testbed import (
    browser,
    cells,
    faults,
    host,
    join,
    namespaces,
    process,
    proofs,
    validity,
    wiring,
)


def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
    """Carries out one visit and writes its trace.

    ``asked`` holds ``run``, a run description without what only the cell knows, and, to make something go
    wrong, ``faults``. Returns ``verdict``, ``reasons`` and ``duration_ns``; raises ``RunFailed`` when there
    is no result.
    """
    run, planted = asked["run"], asked["faults"]
    folder = Path(run["trace_dir"])
    work = cells.SCRATCH / "work"
    work.mkdir(mode=0o755)
    [visit], transport = run["visits"], run["transport"]
    client, server = host_of(run, "client"), host_of(run, "server")
    addresses = {origin["host"]: origin["address"] for origin in run["server"]["origins"]}

    paths = namespaces.Namespaces.create()
    sysctls = namespaces.build(
        paths,
        addresses.values(),
        initial_window=server["initial_window"],
        sysctls=transport["sysctls"] | {"net.ipv4.tcp_congestion_control": client["congestion"]},
    )
    started_unix = time.time_ns()
    run |= {"epoch_ns": time.monotonic_ns(), "work_dir": str(work)}
    server["namespace_inode"] = namespaces.inode(paths.server)
    before = wiring.settings(paths)
    run_file = folder / "run.json"
    run_file.write_text(json.dumps(faults.described(run, planted), indent=1))
    faults.plant("path", planted, paths)

    summaries: dict[str, dict[str, Any]] = {}
    with (folder / "log.txt").open("a") as log, ExitStack() as stack:

        def start(name: str, verb: Sequence[str], namespace: int | None = None) -> process.Part:
            part = process.Part(verb, run_file, log, namespace)
            stack.callback(part.kill)
            parts[name] = part
            return part

        parts: dict[str, process.Part] = {}
        start("emulator", ["emulate"], paths.wire)
        start("probe", ["probe-tcp"])
        if not all(one["of_kernel"] for one in run["congestion"]):
            start("congestion", ["cc", "load"]).wait_ready()
        start("server", ["replay"], paths.server)
        for part in parts.values():
            part.wait_ready()

        def spawn(argv: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
            return process.spawn(argv, namespace=paths.client, ordinary_user=True, **options)

        pids = {name: part.pid for name, part in parts.items()}

        def disturb() -> None:
            stack.callback(faults.end, faults.plant("load", planted, paths, pids))

        def look() -> None:
            for part in parts.values():
                part.check()

        witness, loading = host.Witness(pids), host.Loading(pids, disturb, look)
        load = browser.visit(
            browser.BrowserOptions(
                url=visit["navigation"]["url"],
                http=transport["http"],
                hosts=addresses,
                ca_spki_sha256=parts["server"].ready["ca_spki_sha256"],
                epoch_ns=run["epoch_ns"],
                work_dir=work,
                timeout_s=visit["timeout_ns"] / 1e9,
                viewport=tuple(visit["navigation"]["viewport"]),
                mobile=visit["navigation"]["mobile"],
                clock_ms=visit["navigation"].get("clock_ms"),
                seed=visit["navigation"]["seed"],
            ),
            spawn=spawn,
            moments=loading,
        )
        counters = witness.stop(load.cpu_s)
        duration = time.monotonic_ns() - run["epoch_ns"]
        summaries |= {name: parts[name].stop() for name in ("server", "probe")}
        ends = {end: wiring.counts(paths, end) for end in ("client", "server")}
        summaries["emulator"] = parts["emulator"].stop()
        last = {end: wiring.counts(paths, end) for end in ends}
        after = wiring.settings(paths)
        if "congestion" in parts:
            summaries["congestion"] = parts["congestion"].stop()

    joined = join.join(load, run, work, folder)
    wires = proofs.Wires(before, after, ends, last)
    against = proofs.prove(joined, run, summaries, wires, trace.read_table(folder, "link"))
    assert loading.counters is not None  # the load event fired
    reasons = validity.check(load, joined, run, summaries, loading.counters, against)
    verdict = validity.verdict(reasons)
    tables = joined.tables | {"host": [counters.row(summaries["emulator"])]}
    tables["run"] = [
        run["checks"]["identity"]
        | joined.observed
        | {
            "started_unix": started_unix,
            "duration": duration,
            "verdict": verdict,
            "reasons": json.dumps(reasons),
            "kernel": platform.release(),
            "browser": load.browser,
            "wirepaint": __version__,
            "sysctls": json.dumps(sysctls),
            "client_congestion": sysctls["net.ipv4.tcp_congestion_control"],
        }
    ]
    for name, rows in tables.items():
        trace.write_table(folder, name, rows)
    return {"verdict": verdict, "reasons": reasons, "duration_ns": duration, "summaries": summaries}


def host_of(run: dict[str, Any], role: str) -> dict[str, Any]:
    """The host of a run description with that role."""
    return next(host for host in run["hosts"] if host["role"] == role)
