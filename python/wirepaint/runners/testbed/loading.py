"""The visits of a run: those of browsers, each in a process of its own, and those of light users."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from wirepaint.errors import PageTimeout, RunFailed
from wirepaint.runners.testbed import (
    browser,
    capture,
    chain,
    host,
    namespaces,
    process,
    proxying,
    visiting,
    wiring,
)
from wirepaint.runners.testbed.browser import light
from wirepaint.runners.testbed.route import squid_of

LOOK_S = 0.02
"""Period of the looks at the parts."""
BEFORE_NS = 100_000_000
"""How long before the first navigation the machine's counters are read: that takes 20 ms on a busy one."""
_AHEAD_NS = 5_000_000_000
"""How long before a user's first visit its browser starts."""


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
        """Congestion controls of each visit's client at its load event; all that a light one read back."""
        self.late: dict[int, int] = {}
        """How much later than asked each visit began, in ns."""
        self.behind: dict[int, int] = {}
        """Longest time in ns by which light visits computed late."""
        self._warmed: dict[str, Path] = {}
        """Folders of caches that a first visit filled, by the site of the page."""
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
            self.spoken |= {number: light.congestion_controls(load) for number, load in of_light.items()}
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

    def warm(self, proxies: proxying.Proxies) -> None:
        """Loads each page once through squid, beside it: nothing of it crosses the emulated link."""
        first = {visit["site"]: number for number, visit in reversed(list(enumerate(self._run["visits"])))}
        for number in first.values():
            options = self._options(number, self._work / f"first-visit-{number}")
            browser.visit(options, spawn=partial(_in_namespace, proxies.namespaces["squid"]))
        assert proxies.squid is not None
        proxies.squid.settle()

    def warm_caches(self) -> None:
        """Loads each page once for browsers with warm caches, beside proxies and emulated link."""
        first: dict[str, int] = {}
        for number in self._numbers:
            visit = self._run["visits"][number]
            if visit["cache"] == "warm":
                first.setdefault(visit["site"], number)
        for site, number in first.items():
            self._warmed[site] = folder = self._new_cache(f"of-site-{number}")
            options = self._options(number, self._work / f"warming-visit-{number}", is_beside=True)
            spawn = partial(_in_namespace, self._paths.server)
            browser.visit(replace(options, cache_dir=folder), spawn=spawn)

    def _new_cache(self, name: str) -> Path:
        folder = self._work / f"cache-{name}"
        folder.mkdir(exist_ok=True)
        # The browser is another user.
        folder.chmod(0o777)
        return folder

    def _cache_of(self, number: int) -> Path | None:
        """Folder of the browser's cache in a visit; None for an empty one that ends with it."""
        visit = self._run["visits"][number]
        if visit["cache"] == "shared":
            return self._new_cache(f"of-{visit['client']}")
        if visit["cache"] == "cold":
            return None
        folder = self._new_cache(f"of-visit-{number}")
        subprocess.run(["cp", "-a", f"{self._warmed[visit['site']]}/.", folder], check=True)
        folder.chmod(0o777)
        return folder

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
        """Carries out all visits; returns the counters from ``BEFORE_NS`` before the first navigation to the
        last load event.

        ``disturb`` is called at the first navigation, ``look`` now and then.
        """
        visits = self._run["visits"]
        first = self.origin + min(visit["start_ns"] for visit in visits if visit.get("after") is None)
        watched, begun, counters = False, False, None
        while counters is None or not self._all_ended():
            look()
            soonest = LOOK_S
            if not watched and first - time.monotonic_ns() <= BEFORE_NS:
                watched = True
                witness.begin()
            if not begun:
                left = first - time.monotonic_ns()
                soonest = min(soonest, max(left, 0) / 1e9)
                if left <= 0:
                    begun = True
                    disturb()
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
                if number not in self._going and after is not None and self._is_over(after, number):
                    self._start(number)
            if counters is None and all(map(self._is_loaded, self._numbers)) and self._light_ended():
                progress = [one.progress for one in self._going.values()]
                counters = witness.stop(
                    sum(one.cpu_s for one in progress), sum(one.stopped_s for one in progress)
                )
        return counters

    def _remote(self, number: int) -> set[str]:
        """Addresses to which the browser of a visit connects."""
        if squid_of(self._run):
            return {chain.first_address(near=bool(self._paths.near))}
        site = self._run["sites"][self._run["visits"][number]["site"]]
        return {origin["address"] for origin in site["origins"]}

    def _all_ended(self) -> bool:
        going = self._going
        return self._light_ended() and all(n in going and going[n].has_ended for n in self._numbers)

    def _light_ended(self) -> bool:
        return "light" not in self._parts or self._parts["light"].has_ended()

    def _is_loaded(self, number: int) -> bool:
        return number in self._going and self._going[number].progress.load_event is not None

    def _is_over(self, number: int, follower: int) -> bool:
        """Whether the next visit's browser may start: with the cache of this one, which must have ended."""
        if self._run["visits"][follower]["cache"] == "shared":
            return number in self._going and self._going[number].has_ended
        return self._is_loaded(number)

    def _due(self, number: int) -> int:
        """When a visit begins, on the monotonic clock in ns."""
        visit = self._run["visits"][number]
        if visit.get("after") is None:
            return self.origin + visit["start_ns"]
        loaded = self._going[visit["after"]].progress.load_event
        assert loaded is not None
        return loaded + visit["start_ns"]

    def _start(self, number: int) -> None:
        options = self._options(number, self._work / f"visit-{number}")
        options = self._told[number] = replace(options, cache_dir=self._cache_of(number))
        spawn = partial(_in_namespace, self._inside[self._run["visits"][number]["client"]])
        self._going[number] = visiting.Visiting(options, spawn)
        self._stack.callback(self._going[number].kill)

    def _options(self, number: int, place: Path, *, is_beside: bool = False) -> browser.BrowserOptions:
        """What the browser of a visit is told; ``is_beside``: it goes to the servers and through no proxy."""
        visit, run = self._run["visits"][number], self._run
        told, proxy = visit["navigation"], None if is_beside else squid_of(run)
        place.mkdir(mode=0o755)
        return browser.BrowserOptions(
            url=told["url"],
            http=run["transport"]["http"],
            hosts={origin["host"]: origin["address"] for origin in run["sites"][visit["site"]]["origins"]},
            proxy=f"{chain.first_address(near=bool(self._paths.near))}:{proxy['port']}" if proxy else None,
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
