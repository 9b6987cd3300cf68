"""One run on the testbed: starts the parts, loads pages or waits for flows, joins the parts' records.

``carry_out`` runs inside a cell (see ``cells``). Each run gets new namespaces, emulator,
congestion controls, server and browsers, so that nothing is warm from an earlier one.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from wirepaint import __version__
from wirepaint.errors import PageTimeout, RunFailed
from wirepaint.results import trace
from wirepaint.runners.description import CLIENT_CONGESTION
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
    proxy_checks,
    proxying,
    squid,
    validity,
    visiting,
    wiring,
)
from wirepaint.runners.testbed.browser import light

CLIENT_FD = 3
"""Descriptor of the client's network namespace in the part that carries out flows."""
_END_THEMSELVES = ("flows", "light")
"""Parts that end before they are told to."""
_AHEAD_NS = 5_000_000_000
"""How long before a user's first visit its browser starts."""
LOOK_S = 0.02
"""Period of the looks at the parts."""
_NICE = -10
"""Of the server beside several browsers, and of light users: they stand for machines of others."""


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
    clients, proxied = _clients(run), run.get("proxy")
    sender = host_of(run, "proxy" if proxied else "server")
    clients[0].setdefault("address", namespaces.CLIENT_ADDRESS)
    addresses = [origin["address"] for site in run["sites"].values() for origin in site["origins"]]
    of_flows = [sender["address"]] if run["flows"] else []

    stations = _stations(run)
    behind = [[one["address"] for one in station] for station in stations] if clients[1:] else []
    asked_sysctls = transport["sysctls"] | {"net.ipv4.tcp_congestion_control": CLIENT_CONGESTION}
    paths = namespaces.Namespaces.create(len(behind), proxy=bool(proxied))
    sysctls = namespaces.build(
        paths,
        dict.fromkeys([*([] if proxied else addresses), *of_flows]),
        initial_window=sender["initial_window"],
        sysctls=asked_sysctls,
        users=behind,
    )
    inside = {one["name"]: fd for station, fd in zip(stations, paths.clients, strict=True) for one in station}
    started_unix = time.time_ns()
    run |= {"epoch_ns": time.monotonic_ns(), "work_dir": str(work)}
    sender["namespace_inode"] = namespaces.inode(paths.far)
    run_file = folder / "run.json"
    run_file.write_text(json.dumps(faults.described(run, planted), indent=1))

    summaries: dict[str, dict[str, Any]] = {}
    with (folder / "log.txt").open("a") as log, ExitStack() as stack:

        def start(name: str, verb: Sequence[str], namespace: int | None = None, **fds: Any) -> process.Part:
            part = process.Part(verb, run_file, log, namespace, **fds)
            stack.callback(part.kill)
            parts[name] = part
            return part

        parts: dict[str, process.Part] = {}
        if not all(one["of_kernel"] for one in run["congestion"]):
            start("congestion", ["cc", "load"]).wait_ready()
        for first, *_ in stations:
            if first["congestion"] != CLIENT_CONGESTION:
                namespaces.speak(paths, inside[first["name"]], first["congestion"])
        if proxied:
            server = host_of(run, "server")
            namespaces.put_behind_proxy(
                paths,
                dict.fromkeys(addresses),
                to_clients=namespaces.Sending(sender["congestion"], sender["initial_window"]),
                to_servers=namespaces.Sending(server["congestion"], server["initial_window"]),
                sysctls=asked_sysctls,
            )
        before = wiring.settings(paths)
        faults.plant("path", planted, paths)
        key = run["checks"]["identity"]["run_key"]
        captures = stack.enter_context(
            capture.Captures(_ends(run, paths, inside), run.get("capture"), folder, key)
        )
        if visits:
            start("server", ["replay"], paths.server, nice=_NICE if behind else 0)
        proxy = of_proxy = None
        loading = Loading(run, work, paths, inside, parts, stack, tls_secrets=bool(captures))
        if proxied:
            parts["server"].wait_ready()
            proxy = proxying.start(run, paths, work)
            stack.callback(proxy.kill)
            if proxied["warm"]:
                loading.warm(proxy)
        measured_from = time.monotonic_ns() - run["epoch_ns"]
        earlier = {end: wiring.counts(paths, end) for end in ("client", "server")}
        changing = run["segments"][0]["changes_wait"]
        start("emulator", ["emulate"], paths.wire, listens=changing)
        start("probe", ["probe-tcp"])
        for part in parts.values():
            part.wait_ready()

        def look() -> None:
            for name, part in parts.items():
                if not (name in _END_THEMSELVES and part.has_ended()):
                    part.check()
            captures.check()
            if proxy is not None:
                proxy.check()
                proxy.look()

        loading.prepare(look)
        light_users = light_clients(run)
        if light_users:
            trusted = parts["server"].ready["ca_spki_sha256"]
            verb = ["light", f"--client-namespace={CLIENT_FD}", f"--ca-spki-sha256={trusted}", "--waits"]
            namespace = inside[light_users[0]["name"]]
            start("light", verb, extra_fds={CLIENT_FD: namespace}, listens=True, nice=_NICE).wait_ready()
        loading.origin = time.monotonic_ns()
        if run["flows"]:
            verb = ["flows", f"--client-namespace={CLIENT_FD}"]
            traffic = start("flows", verb, paths.far, extra_fds={CLIENT_FD: inside["client"]})
            loading.origin = run["epoch_ns"] + traffic.wait_ready()["begin"]
        origin = loading.origin - run["epoch_ns"]
        if changing and run["flows"]:
            parts["emulator"].tell(str(origin))
        pids = {name: part.pid for name, part in parts.items()} | ({"proxy": proxy.pid} if proxy else {})
        watched = pids | captures.pids

        def disturb() -> None:
            if changing and not run["flows"]:
                parts["emulator"].tell(str(time.monotonic_ns() - run["epoch_ns"]))
            stack.callback(faults.end, faults.plant("load", planted, paths, pids))

        witness = host.Witness(watched, loading.spent_s)
        if visits:
            if light_users:
                parts["light"].tell(str(origin))
            of_load = loading.carry_out(host.Witness(watched, loading.spent_s), disturb, look)
            loads = loading.loads()
            counters = witness.stop(sum(load.cpu_s for load in loads))
        else:
            loads = []
            disturb()
            while not parts["flows"].has_ended():
                look()
                time.sleep(LOOK_S)
            of_load = counters = witness.stop()
        duration = time.monotonic_ns() - run["epoch_ns"]
        if proxy is not None:
            of_proxy = proxy.stop()
        summaries |= {
            name: parts[name].stop() for name in ("flows", "light", "server", "probe") if name in parts
        }
        if run["flows"]:
            wiring.settled(paths, _crossing_ns(run["segments"][0]))
        missing = captures.finish(paths, loading.secrets())
        ends = {end: wiring.counts(paths, end).since(earlier[end]) for end in earlier}
        summaries["emulator"] = parts["emulator"].stop()
        last = {end: wiring.counts(paths, end).since(earlier[end]) for end in earlier}
        after = wiring.settings(paths)
        if "congestion" in parts:
            summaries["congestion"] = parts["congestion"].stop()

    joined = join.join(loads, run, work, folder, summaries.get("flows"), of_proxy, measured_from)
    wires = proofs.Wires(before, after, ends, last)
    against = [
        *proofs.prove(joined, run, summaries, wires, trace.read_table(folder, "link")),
        *proxy_checks.check(joined, run),
        *missing,
    ]
    reasons = validity.check(loads, joined, run, summaries, of_load, against, loading)
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
            "browser": loads[0].browser if loads else None,
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


class Loading:
    """The visits of a run, each in a process of its own."""

    def __init__(
        self,
        run: Mapping[str, Any],
        work: Path,
        paths: namespaces.Namespaces,
        inside: Mapping[str, int],
        parts: Mapping[str, process.Part],
        stack: ExitStack,
        *,
        tls_secrets: bool,
    ) -> None:
        """``inside`` maps clients to their namespaces; ``tls_secrets`` asks the browsers for key logs."""
        self._run, self._work, self._paths = run, work, paths
        self._inside, self._parts, self._stack = inside, parts, stack
        self._tls_secrets = tls_secrets
        self._told: dict[int, browser.BrowserOptions] = {}
        self.origin = 0
        """The time from which the starts of visits count: CLOCK_MONOTONIC, in ns."""
        self._going: dict[int, visiting.Visiting] = {}
        self.spoken: dict[int, list[str]] = {}
        """The congestion controls of each visit's client at its load event."""
        self.late: dict[int, int] = {}
        """How much later than asked each visit began, in ns."""
        self.behind: dict[int, int] = {}
        """Longest time in ns by which light visits computed late."""
        self._numbers = [number for number, visit in enumerate(run["visits"]) if "navigation" in visit]

    def spent_s(self) -> float:
        """CPU time so far of the visits' processes, browsers included."""
        return sum(one.spent_s() for one in self._going.values())

    def loads(self) -> list[browser.PageLoad]:
        """What the browsers saw, by visit; all have ended. ``RunFailed`` for a light one that failed."""
        seen = {number: one.progress.load for number, one in self._going.items()}
        if len(seen) < len(self._run["visits"]):
            for number, why in light.failures(self._work).items():
                visit = self._run["visits"][number]
                kind = PageTimeout if why.startswith(light.TIMED_OUT) else RunFailed
                raise kind(f"{visit['name']} of {visit['user_agent']}: {why}")
            of_light = light.read(self._work)
            self.late |= {
                number: load.navigation_start - self._asked(number, of_light)
                for number, load in of_light.items()
            }
            self.behind = light.lateness(self._work)
            seen |= of_light
        return [load for _, load in sorted(seen.items()) if load is not None]

    def _asked(self, number: int, loads: Mapping[int, browser.PageLoad]) -> int:
        """When a light visit was to begin, in ns of the run."""
        visit = self._run["visits"][number]
        if visit.get("after") is None:
            return self.origin - self._run["epoch_ns"] + visit["start_ns"]
        return loads[visit["after"]].load_event + visit["start_ns"]

    def secrets(self) -> dict[str, bytes]:
        """The key logs of each user's browsers."""
        found: dict[str, bytes] = {}
        for number, options in self._told.items():
            user = self._run["visits"][number]["user_agent"]
            found[user] = found.get(user, b"") + capture.key_log(options.key_log)
        return found

    def warm(self, proxy: squid.Squid) -> None:
        """Loads each page once through the proxy, beside it: nothing of it crosses the emulated link."""
        first = {visit["site"]: number for number, visit in reversed(list(enumerate(self._run["visits"])))}
        for number in first.values():
            options = self._options(number, self._work / f"first-visit-{number}")
            browser.visit(options, spawn=partial(_in_namespace, self._paths.far))
        proxy.settle()

    def prepare(self, look: Callable[[], None]) -> None:
        """Starts the browsers of the first visits, and waits until all could navigate."""
        for number in self._numbers:
            visit = self._run["visits"][number]
            if visit.get("after") is None and visit["start_ns"] < _AHEAD_NS:
                self._start(number)
        while not all(one.progress.waits for one in self._going.values()):
            look()
            visiting.watch(list(self._going.values()), LOOK_S)

    def carry_out(
        self, witness: host.Witness, disturb: Callable[[], None], look: Callable[[], None]
    ) -> host.Counters:
        """Carries out all visits; returns the counters from the first navigation to the last load event.

        ``disturb`` is called at the first navigation, ``look`` now and then.
        """
        visits = self._run["visits"]
        first = self.origin + min(visit["start_ns"] for visit in visits if visit.get("after") is None)
        begun, counters = False, None
        while not self._all_ended():
            look()
            soonest = LOOK_S
            if not begun:
                left = first - time.monotonic_ns()
                soonest = min(soonest, max(left, 0) / 1e9)
                if left <= 0:
                    begun = True
                    disturb()
                    witness.begin()
            for number in self._numbers:
                waits = number not in self._going and visits[number].get("after") is None
                if waits and self._due(number) - time.monotonic_ns() < _AHEAD_NS:
                    self._start(number)
            for number, one in self._going.items():
                if not one.progress.waits or one.progress.began:
                    continue
                left = self._due(number) - time.monotonic_ns()
                if left > 0:
                    soonest = min(soonest, left / 1e9)
                    continue
                one.go()
                self.late[number] = time.monotonic_ns() - self._due(number)
            visiting.watch(list(self._going.values()), soonest)
            for number in self._numbers:
                if self._is_loaded(number) and number not in self.spoken:
                    fd = self._inside[visits[number]["client"]]
                    self.spoken[number] = wiring.congestion_controls(self._paths, fd, self._remote(number))
                after = visits[number].get("after")
                if number not in self._going and after is not None and self._is_loaded(after):
                    self._start(number)
            if counters is None and all(map(self._is_loaded, self._numbers)) and self._light_ended():
                progress = [one.progress for one in self._going.values()]
                counters = witness.stop(
                    sum(one.cpu_s for one in progress), sum(one.stopped_s for one in progress)
                )
        return counters or witness.stop()

    def _remote(self, number: int) -> set[str]:
        """Addresses to which the browser of a visit connects."""
        if self._run.get("proxy"):
            return {namespaces.SERVER_ADDRESS}
        site = self._run["sites"][self._run["visits"][number]["site"]]
        return {origin["address"] for origin in site["origins"]}

    def _all_ended(self) -> bool:
        going = self._going
        return self._light_ended() and all(n in going and going[n].has_ended for n in self._numbers)

    def _light_ended(self) -> bool:
        return "light" not in self._parts or self._parts["light"].has_ended()

    def _is_loaded(self, number: int) -> bool:
        return number in self._going and self._going[number].progress.load_event is not None

    def _due(self, number: int) -> int:
        """When a visit begins, on the monotonic clock in ns."""
        visit = self._run["visits"][number]
        if visit.get("after") is None:
            return self.origin + visit["start_ns"]
        loaded = self._going[visit["after"]].progress.load_event
        assert loaded is not None
        return loaded + visit["start_ns"]

    def _start(self, number: int) -> None:
        options = self._told[number] = self._options(number, self._work / f"visit-{number}")
        spawn = partial(_in_namespace, self._inside[self._run["visits"][number]["client"]])
        self._going[number] = visiting.Visiting(options, spawn)
        self._stack.callback(self._going[number].kill)

    def _options(self, number: int, place: Path) -> browser.BrowserOptions:
        visit, run = self._run["visits"][number], self._run
        told, proxy = visit["navigation"], run.get("proxy")
        place.mkdir(mode=0o755)
        return browser.BrowserOptions(
            url=told["url"],
            http=run["transport"]["http"],
            hosts={origin["host"]: origin["address"] for origin in run["sites"][visit["site"]]["origins"]},
            proxy=f"{namespaces.SERVER_ADDRESS}:{proxy['port']}" if proxy else None,
            ca_spki_sha256=self._parts["server"].ready["ca_spki_sha256"],
            epoch_ns=run["epoch_ns"],
            work_dir=place,
            timeout_s=visit["timeout_ns"] / 1e9,
            viewport=tuple(told["viewport"]),
            mobile=told["mobile"],
            clock_ms=told.get("clock_ms"),
            seed=told["seed"],
            tls_secrets=self._tls_secrets,
        )


def _in_namespace(namespace: int, argv: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a program of an ordinary user in a namespace."""
    return process.spawn(argv, namespace=namespace, ordinary_user=True, **options)


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


def host_of(run: Mapping[str, Any], role: str) -> dict[str, Any]:
    """The host of a run description with that role, proxy or server."""
    return next(one for one in run["hosts"] if one["role"] == role)
