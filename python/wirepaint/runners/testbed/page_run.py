"""One run on the testbed: starts the parts, loads the page or waits for the flows, joins the parts' records.

``carry_out`` runs inside a cell (see ``cells``). Each run gets new namespaces, emulator,
congestion controls, server and browser, so that nothing is warm from an earlier one.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wirepaint import __version__
from wirepaint.results import trace
from wirepaint.runners.testbed import (
    browser,
    capture,
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

CLIENT_FD = 3
"""Descriptor of the client's network namespace in the part that carries out flows."""
LOOK_S = 0.02
"""Period of the looks at the parts while flows alone run."""


def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
    """Carries out one run and writes its trace.

    ``asked`` holds ``run``, a run description without what only the cell knows, and, to make something go
    wrong, ``faults``. Returns ``verdict``, ``reasons``, ``duration_ns``, the parts' ``summaries`` and the
    counts of both ``ends``; raises ``RunFailed`` when there is no result.
    """
    run, planted = asked["run"], asked["faults"]
    folder = Path(run["trace_dir"])
    work = cells.SCRATCH / "work"
    work.mkdir(mode=0o755)
    visit, transport = next(iter(run["visits"]), None), run["transport"]
    identity = run["checks"]["identity"]
    client, server = host_of(run, "client"), host_of(run, "server")
    origins = run["server"]["origins"] if visit else []
    addresses = {origin["host"]: origin["address"] for origin in origins}
    of_flows = [server["address"]] if run["flows"] else []

    paths = namespaces.Namespaces.create()
    sysctls = namespaces.build(
        paths,
        [*addresses.values(), *of_flows],
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

        def start(name: str, verb: Sequence[str], namespace: int | None = None, **fds: Any) -> process.Part:
            part = process.Part(verb, run_file, log, namespace, **fds)
            stack.callback(part.kill)
            parts[name] = part
            return part

        captures = stack.enter_context(
            capture.Captures(_ends(run, paths), run.get("capture"), folder, identity["run_key"])
        )
        parts: dict[str, process.Part] = {}
        changing = run["segments"][0]["changes_wait"]
        start("emulator", ["emulate"], paths.wire, listens=changing)
        start("probe", ["probe-tcp"])
        if not all(one["of_kernel"] for one in run["congestion"]):
            start("congestion", ["cc", "load"]).wait_ready()
        if visit:
            start("server", ["replay"], paths.server)
        for part in parts.values():
            part.wait_ready()
        began_flows, traffic = 0, None
        if run["flows"]:
            verb = ["flows", f"--client-namespace={CLIENT_FD}"]
            traffic = start("flows", verb, paths.server, extra_fds={CLIENT_FD: paths.client})
            began_flows = traffic.wait_ready()["begin"]
            if changing:
                parts["emulator"].tell(str(began_flows))

        def spawn(argv: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
            return process.spawn(argv, namespace=paths.client, ordinary_user=True, **options)

        pids = {name: part.pid for name, part in parts.items()}
        watched = pids | captures.pids

        def disturb() -> None:
            if visit:
                _wait_until(run["epoch_ns"] + began_flows + visit["start_ns"], look)
                if changing and not run["flows"]:
                    parts["emulator"].tell(str(time.monotonic_ns() - run["epoch_ns"]))
            stack.callback(faults.end, faults.plant("load", planted, paths, pids))

        def look() -> None:
            for part in parts.values():
                if not (part is traffic and part.has_ended()):
                    part.check()
            captures.check()

        witness, loading = host.Witness(watched), host.Loading(watched, disturb, look)
        load, secrets = None, {}
        if visit:
            options = browser.BrowserOptions(
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
                tls_secrets=bool(captures),
            )
            load = browser.visit(options, spawn=spawn, moments=loading)
            secrets[identity["user_agent"]] = capture.key_log(options.key_log)
        else:
            disturb()
            while not parts["flows"].has_ended():
                look()
                time.sleep(LOOK_S)
        counters = witness.stop(load.cpu_s if load else 0.0)
        duration = time.monotonic_ns() - run["epoch_ns"]
        summaries |= {name: parts[name].stop() for name in ("flows", "server", "probe") if name in parts}
        if traffic:
            wiring.settled(paths, _crossing_ns(run["segments"][0]))
        ends = {end: wiring.counts(paths, end) for end in ("client", "server")}
        summaries["emulator"] = parts["emulator"].stop()
        last = {end: wiring.counts(paths, end) for end in ends}
        after = wiring.settings(paths)
        missing = captures.finish(paths, secrets)
        if "congestion" in parts:
            summaries["congestion"] = parts["congestion"].stop()

    joined = join.join(load, run, work, folder, summaries.get("flows"))
    wires = proofs.Wires(before, after, ends, last)
    against = proofs.prove(joined, run, summaries, wires, trace.read_table(folder, "link"))
    of_load = loading.counters if load else counters
    assert of_load is not None  # the load event fired
    reasons = validity.check(load, joined, run, summaries, of_load, [*against, *missing])
    verdict = validity.verdict(reasons)
    tables = joined.tables | {"host": [counters.row(summaries["emulator"])]}
    tables["run"] = [
        identity
        | joined.observed
        | {
            "started_unix": started_unix,
            "duration": duration,
            "verdict": verdict,
            "reasons": json.dumps(reasons),
            "kernel": platform.release(),
            "browser": load.browser if load else None,
            "wirepaint": __version__,
            "sysctls": json.dumps(sysctls),
            "client_congestion": sysctls["net.ipv4.tcp_congestion_control"],
        }
    ]
    for name, rows in tables.items():
        trace.write_table(folder, name, rows)
    return {
        "verdict": verdict,
        "reasons": reasons,
        "duration_ns": duration,
        "summaries": summaries,
        "ends": {end: asdict(counts) for end, counts in last.items()},
    }


def _wait_until(instant: int, look: Callable[[], None]) -> None:
    """Waits for an instant of the monotonic clock, in ns."""
    while (left := instant - time.monotonic_ns()) > 0:
        look()
        time.sleep(min(left / 1e9, LOOK_S))


def _crossing_ns(segment: dict[str, Any]) -> int:
    """A time in which packets under way leave a segment, with queues of up to 200 ms."""
    return segment["down"]["delay_ns"] + segment["up"]["delay_ns"] + 200_000_000


def _ends(run: dict[str, Any], paths: namespaces.Namespaces) -> list[capture.End]:
    """Where the packets of the run's user are captured."""
    user = run["checks"]["identity"]["user_agent"]
    return [
        capture.End(user, "client", paths.client, "c0"),
        capture.End(user, "server", paths.server, "s0"),
    ]


def host_of(run: dict[str, Any], role: str) -> dict[str, Any]:
    """The host of a run description with that role."""
    return next(host for host in run["hosts"] if host["role"] == role)
