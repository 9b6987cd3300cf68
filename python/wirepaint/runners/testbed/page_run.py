"""One run on the testbed: starts the parts, loads pages or waits for flows, joins the parts' records.

``carry_out`` runs inside a cell (see ``cells``). Each run gets new namespaces, emulator,
congestion controls, server and browsers, so that nothing is warm from an earlier one.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wirepaint import __version__
from wirepaint.results import trace
from wirepaint.runners.description import CLIENT_CONGESTION
from wirepaint.runners.testbed import (
    capture,
    cells,
    chain,
    faults,
    host,
    iperf3,
    join,
    loading,
    namespaces,
    process,
    proofs,
    proxy_checks,
    proxying,
    screen,
    segments,
    validity,
    wiring,
)
from wirepaint.runners.testbed.route import Route, hosts_of

CLIENT_FD = 3
"""Descriptor of the client's network namespace in the part that carries out flows."""
_END_THEMSELVES = ("flows", "light")
"""Parts that end before they are told to."""
_NICE = -10
"""Of light users, and of the server beside several browsers or other runs: they stand for other machines."""


def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
    """Carries out one run and writes its trace.

    ``asked`` holds ``run``, a run description without what only the cell knows, and, to make something go
    wrong, ``faults``. Returns ``verdict``, ``reasons`` and ``duration_ns``; raises ``RunFailed`` when there
    is no result.
    """
    run, planted = asked["run"], asked["faults"]
    folder = Path(run["trace_dir"])
    work = cells.SCRATCH / "work"
    work.mkdir(mode=0o755)
    transport, visits = run["transport"], run["visits"]
    clients, hosts, route = _clients(run), hosts_of(run), Route.of(run)
    emulate = ["emulate"]
    is_beside = run["checks"].get("side_by_side", False)  # a description of an earlier build has not
    if is_beside:
        emulate.append(f"--beside={_leave_a_cpu()}")
    sender, server = hosts[route.sender], hosts["server"]
    clients[0].setdefault("address", namespaces.CLIENT_ADDRESS)
    if route.beyond:
        sender.setdefault("address", namespaces.SERVER_ADDRESS)
    addresses = [origin["address"] for site in run["sites"].values() for origin in site["origins"]]
    of_flows = [sender["address"]] if run["flows"] else []

    stations = _stations(run)
    behind = [[one["address"] for one in station] for station in stations] if clients[1:] else []
    asked_sysctls = transport["sysctls"] | {"net.ipv4.tcp_congestion_control": CLIENT_CONGESTION}
    paths = namespaces.Namespaces.create(
        len(behind), near=len(route.near), beyond=len(route.beyond), wires=len(route.behind)
    )
    sysctls = namespaces.build(
        paths,
        dict.fromkeys([*([] if route.beyond else addresses), *of_flows]),
        initial_window=sender["initial_window"],
        sysctls=asked_sysctls,
        users=behind,
    )
    inside = {one["name"]: fd for station, fd in zip(stations, paths.clients, strict=True) for one in station}
    started_unix = time.time_ns()
    run |= {"epoch_ns": time.monotonic_ns(), "work_dir": str(work)}
    sender["namespace_inode"] = namespaces.inode(paths.far)
    run_file = folder / "run.json"
    described = faults.described(run, planted)
    run_file.write_text(json.dumps(described, indent=1))

    summaries: dict[str, dict[str, Any]] = {}
    with (folder / "log.txt").open("a") as log, ExitStack() as stack:

        def start(
            name: str,
            verb: Sequence[str],
            namespace: int | None = None,
            run_file: Path = run_file,
            **fds: Any,
        ) -> process.Part:
            part = process.Part(verb, run_file, log, namespace, **fds)
            stack.callback(part.kill)
            parts[name] = part
            return part

        parts: dict[str, process.Part] = {}
        if not all(one["of_kernel"] for one in run["congestion"]):
            start("congestion", ["cc", "load"]).wait_ready()
        proxies = proxying.Proxies(run, paths, work, start)
        if route.proxies:
            chain.build(
                paths,
                *proxies.stations(),
                chain.Sending(server["congestion"], server["initial_window"]),
                dict.fromkeys(addresses) if route.beyond else (),
                sysctls=asked_sysctls,
                has_flows=bool(run["flows"]),
            )
        for first, *_ in stations:
            if first["congestion"] != CLIENT_CONGESTION:
                namespaces.speak(paths, inside[first["name"]], first["congestion"])
        before = wiring.settings(paths)
        faults.plant("path", planted, paths)
        key = run["checks"]["identity"]["run_key"]
        captures = stack.enter_context(
            capture.Captures(_ends(run, paths, inside), run.get("capture"), folder, key)
        )
        if visits:
            nice = _NICE if behind or is_beside else 0
            start("server", ["replay"], paths.server, nice=nice)
        visiting = loading.Loading(run, work, paths, inside, parts, stack, tls_secrets=bool(captures))
        if visits:
            parts["server"].wait_ready()
        if route.proxies:
            stack.callback(proxies.kill)
            proxies.begin()
            if proxies.is_warm:
                visiting.warm(proxies)
        visiting.warm_caches()
        measured_from = time.monotonic_ns() - run["epoch_ns"]
        earlier = {end: wiring.counts(paths, end) for end in ("client", "server")}
        changing = run["segments"][0]["changes_wait"]
        start("emulator", emulate, paths.wire, listens=changing)
        others = segments.Emulators(run, work, emulate, proxies.wires(), start)
        start("probe", ["probe-tcp"])
        for part in parts.values():
            part.wait_ready()
        proxies.connect()
        tool = None
        if of_tool := iperf3.of_run(run):
            tool = iperf3.Traffic(described, paths, inside, work)
            stack.callback(tool.kill)

        def begin_changes(at_ns: int) -> None:
            if changing:
                parts["emulator"].tell(str(at_ns))
            others.begin(at_ns)

        def look() -> None:
            for name, part in parts.items():
                if not (name in _END_THEMSELVES and part.has_ended()):
                    part.check()
            captures.check()
            proxies.look()
            if tool is not None:
                tool.check()
                tool.look()

        visiting.prepare(look)
        light_users = light_clients(run)
        if light_users:
            trusted = parts["server"].ready["ca_spki_sha256"]
            verb = ["light", f"--client-namespace={CLIENT_FD}", f"--ca-spki-sha256={trusted}", "--waits"]
            namespace = inside[light_users[0]["name"]]
            start("light", verb, extra_fds={CLIENT_FD: namespace}, listens=True, nice=_NICE).wait_ready()
        traffic = None
        own = [flow for flow in run["flows"] if flow not in of_tool]
        if own:
            verb = ["flows", f"--client-namespace={CLIENT_FD}"]
            traffic = start("flows", verb, paths.far, extra_fds={CLIENT_FD: inside["client"]})
        pids = {name: part.pid for name, part in parts.items()} | proxies.pids
        watched = pids | captures.pids

        def spent_s() -> float:
            return visiting.spent_s() + (tool.spent_s() if tool is not None else 0.0)

        witness, of_loads = host.Witness(watched, spent_s), host.Witness(watched, spent_s)
        visiting.origin = time.monotonic_ns() + loading.BEFORE_NS
        if traffic is not None:
            visiting.origin = run["epoch_ns"] + traffic.wait_ready()["begin"]
        origin = visiting.origin - run["epoch_ns"]
        if tool is not None:
            tool.begin(visiting.origin)
        if run["flows"]:
            begin_changes(origin)

        def disturb() -> None:
            if not run["flows"]:
                begin_changes(time.monotonic_ns() - run["epoch_ns"])
            stack.callback(faults.end, faults.plant("load", planted, paths, pids))

        if visits:
            if light_users:
                parts["light"].tell(str(origin))
            of_load = visiting.carry_out(of_loads, disturb, look)
            loads = visiting.loads()
            counters = witness.stop(sum(load.cpu_s for load in loads))
        else:
            loads = []
            disturb()
            while not _are_over(own, parts, tool):
                look()
                time.sleep(loading.LOOK_S)
            of_load = counters = witness.stop()
        duration = time.monotonic_ns() - run["epoch_ns"]
        summaries |= proxies.stop()
        of_iperf3 = None if tool is None else tool.stop()
        summaries |= {
            name: parts[name].stop() for name in ("flows", "light", "server", "probe") if name in parts
        }
        if run["flows"]:
            wiring.settled(paths, _crossing_ns(run["segments"][0]))
        missing = captures.finish(paths, visiting.secrets())
        ends = {end: wiring.counts(paths, end).since(earlier[end]) for end in earlier}
        summaries["emulator"] = parts["emulator"].stop()
        summaries |= others.stop(folder)
        last = {end: wiring.counts(paths, end).since(earlier[end]) for end in earlier}
        after = wiring.settings(paths)
        if "congestion" in parts:
            summaries["congestion"] = parts["congestion"].stop()

    told = proxies.told(join.first_windows(folder), measured_from) if route.proxies else None
    joined = join.join(loads, run, work, folder, summaries.get("flows"), told, measured_from, of_iperf3)
    wires = proofs.Wires(before, after, ends, last)
    against = [
        *proofs.prove(joined, run, summaries, wires, trace.read_table(folder, "link")),
        *proxy_checks.check(joined, run),
        *iperf3.check(of_iperf3, run, summaries["emulator"]),
        *missing,
    ]
    reasons = validity.check(loads, joined, run, summaries, of_load, against, visiting)
    verdict = validity.verdict(reasons)
    tables = joined.tables | screen.tables(loads) | {"host": [counters.row(summaries["emulator"])]}
    tables["run"] = [
        run["checks"]["identity"]
        | joined.observed
        | {
            "started_unix": started_unix,
            "duration": duration,
            "verdict": verdict,
            "reasons": json.dumps(reasons),
            "kernel": platform.release(),
            "browser": ", ".join(sorted({load.browser for load in loads})) or None,
            "wirepaint": __version__,
            "sysctls": json.dumps(sysctls),
            "client_congestion": ", ".join(sorted({one["congestion"] for one in clients})),
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


def _are_over(
    own: Sequence[Mapping[str, Any]], parts: Mapping[str, process.Part], tool: iperf3.Traffic | None
) -> bool:
    """Whether all flows have ended that a run of flows waits for, or all where it waits for none.

    ``own`` are those of the data plane.
    """
    ends: list[tuple[bool, bool]] = []
    if own:
        ends.append((any(not flow["background"] for flow in own), parts["flows"].has_ended()))
    if tool is not None:
        ends.append((tool.is_awaited, tool.has_ended()))
    return all(ended for _, ended in [end for end in ends if end[0]] or ends)


def _leave_a_cpu() -> int:
    """Leaves the last CPU to the emulators of all runs, and returns it.

    A kernel that is not preempted would hold them up while it starts and ends the parts of other runs.
    """
    allowed = os.sched_getaffinity(0)
    last = max(allowed)
    os.sched_setaffinity(0, allowed - {last} or allowed)
    return last


def _crossing_ns(segment: dict[str, Any]) -> int:
    """A time in which packets under way leave a segment, with queues of up to 200 ms."""
    return segment["down"]["delay_ns"] + segment["up"]["delay_ns"] + 200_000_000


def light_clients(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The clients with light users: those without a page to navigate to."""
    names = {visit["client"] for visit in run["visits"] if "navigation" not in visit}
    return [one for one in _clients(run) if one["name"] in names]


def _stations(run: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """The clients of each namespace: those of all light users, and each other one by itself."""
    light_users = light_clients(run)
    others = [[one] for one in _clients(run) if one not in light_users]
    return [light_users, *others] if light_users else others


def _ends(
    run: Mapping[str, Any], paths: namespaces.Namespaces, inside: Mapping[str, int]
) -> list[capture.End]:
    """Where the packets of each user are captured. Users share the server's device."""
    users = {visit["client"]: visit["user_agent"] for visit in run["visits"]}
    ends = []
    for client in _clients(run):
        name = users.get(client["name"], client["name"])
        address = client["address"] if paths.users else None
        ends.append(capture.End(name, "client", inside[client["name"]], "c0", address))
        ends.append(capture.End(name, "server", paths.far, "s0", address))
    return ends


def _clients(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in run["hosts"] if one["role"] == "client"]
