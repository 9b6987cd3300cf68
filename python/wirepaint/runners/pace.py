"""How long runs will take: what is known from earlier ones.

``run`` keeps the seconds of a run for each back end in the cache of the user; a results folder has the time
of its own finished runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from wirepaint.errors import WirepaintError
from wirepaint.evaluation import ResolvedRun
from wirepaint.pages import cache as of_user
from wirepaint.pages.model import read_index
from wirepaint.printing import counted
from wirepaint.results import Results, durable, manifest
from wirepaint.runners.progress import duration
from wirepaint.runners.testbed import side_by_side

USUAL_S = {"testbed": 6.0, "simulator": 0.1}
"""Seconds of a run on a machine that has carried out none; pages of 30 to 130 requests on two cores."""

_AROUND_S = 1.5
"""Seconds of a run on the testbed around its flows: namespaces, processes, the last packets."""
TEAMS = {"simulator": (1, 10, 100), "testbed": (1, 2, 4)}
"""Numbers of workers for which the time is told; those of the testbed are hosts."""


@dataclass(frozen=True)
class Expected:
    """The time that the open runs of a back end will take, and how that is known."""

    backend: str
    runs: int
    seconds: float
    because: str
    each: float
    """Seconds of one run on one machine or worker."""

    @property
    def sentence(self) -> str:
        if not self.runs:
            return f"{self.backend}: all runs are done"
        about = f"{self.backend}: about {duration(self.seconds)} for {counted(self.runs, 'run')}"
        return f"{about}, {self.each:.2g} s each ({self.because})"


def on_workers(runs: Iterable[ResolvedRun], folder: Path) -> list[Expected]:
    """The time of the runs that are still open, on so many workers of a cluster."""
    found = []
    for here in expected(runs, folder):
        what, of_run, because = "host", here.each, "as the last ones, a guess for other machines"
        if here.backend == "simulator":
            what, of_run, because = "worker", _kept().get("worker"), "as on workers the last time"
        if of_run is None:
            of_run, because = here.each * len(os.sched_getaffinity(0)), "a guess, from this machine"
        found += [
            Expected(counted(number, what), here.runs, of_run * here.runs / number, because, of_run)
            for number in TEAMS[here.backend]
        ]
    return found


def keep(seconds: Mapping[str, float]) -> None:
    """Keeps the seconds of a run by back end; a cache that cannot be written is no error."""
    with suppress(OSError):
        known = _kept() | dict(seconds)
        of_user.make_folder(_file().parent)
        durable.write(_file(), json.dumps(known).encode())
        of_user.hand_over(_file())


def expected(runs: Iterable[ResolvedRun], folder: Path) -> list[Expected]:
    """The time of the runs that are still open in a results folder, which need not exist."""
    done: set[str] = set()
    if (folder / manifest.NAME).is_file():
        done = set(Results.open(folder).runs("done")["run_key"])
    kept = _kept()
    left: dict[str, list[_Least]] = {}
    for run in runs:
        of_backend = left.setdefault(run.backend, [])
        if run.key not in done:
            of_backend.append(_least(run) if run.backend == "testbed" else _Least())
    found = []
    for backend, least in left.items():
        known = kept.get(backend)
        usual = known or USUAL_S[backend]
        seconds = sum(one.seconds if one.shared else max(usual, one.seconds) for one in least)
        each = seconds / len(least) if least else usual
        because = "as the last ones on this machine" if known else "a guess: none has run on this machine yet"
        if longest := max(least, default=_Least(), key=lambda one: one.seconds).because:
            because = longest if each != usual else because
        found.append(Expected(backend, len(least), seconds, because, each))
    return found


def together(parts: Iterable[Expected]) -> Expected:
    """The time of one back end's runs in all parts, one part after the other."""
    every = list(parts)
    runs, seconds = sum(each.runs for each in every), sum(each.seconds for each in every)
    longest = max(every, key=lambda each: each.seconds)
    return replace(longest, runs=runs, seconds=seconds, each=seconds / runs if runs else 0.0)


@dataclass(frozen=True)
class _Least:
    """Seconds that a run takes at least, and why; ``shared``: others go beside it in the same time."""

    seconds: float = 0.0
    because: str = ""
    shared: bool = False


def _least(run: ResolvedRun) -> _Least:
    """Of a run on the testbed."""
    rate = run.network.rate("down")
    transfer = 8 * sum(_wire_bytes(visit.page) for visit in run.visits) / rate if rate else 0.0
    least, because = max((run.least_s, "as long as asked"), (transfer, "bytes of pages over rates of links"))
    if not least:
        return _Least()
    if not side_by_side.may(run):
        return _Least(least + _AROUND_S, because)
    share = (least + _AROUND_S) / side_by_side.limit()
    return _Least(max(share, side_by_side.between_s()), because, shared=True)


@cache
def _wire_bytes(page: Path) -> int:
    """Of all resources of a page; 0 if it cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, WirepaintError):
        return sum(resource["wire_bytes"] for resource in json.loads(read_index(page))["resources"])
    return 0


def _file() -> Path:
    return of_user.cache_dir().parent / "pace.json"


def _kept() -> dict[str, float]:
    try:
        known = json.loads(_file().read_bytes())
    except (OSError, ValueError):
        return {}
    pairs = known.items() if isinstance(known, dict) else ()
    return {name: float(value) for name, value in pairs if isinstance(value, int | float) and value > 0}
