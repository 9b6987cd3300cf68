"""The interface between the pool and the back ends: jobs and their ends, progress, the tally."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from wirepaint.errors import RunFailed
from wirepaint.evaluation import ResolvedRun
from wirepaint.evaluation.network import Network
from wirepaint.results.outcome import Outcome

NarrowEnough = Callable[[list[float], float], bool]
Jobs = Iterable[tuple[ResolvedRun, Path]]
Ends = Iterator[tuple[ResolvedRun, Outcome | RunFailed]]
Interruptible = Callable[[], AbstractContextManager[None]]
RunMany = Callable[[Jobs, Interruptible], AbstractContextManager[Ends]]


@dataclass(frozen=True)
class Backend:
    """How runs are carried out. ``calibrate`` measures a network, in a session, before its first run.

    ``versions`` names the programs that results of this back end depend on, such as the browser.
    ``run_many`` carries out simulated runs. It takes the next run with its folder when it has room,
    yields each end as it comes, and can be stopped while it waits.
    """

    session: Callable[[], AbstractContextManager[Any]]
    run_once: Callable[..., Outcome]
    calibrate: Callable[[Network, Any], dict[str, Any]] | None = None
    versions: dict[str, str] = field(default_factory=dict)
    run_many: RunMany | None = None


class Progress(Protocol):
    """Reports the progress of the runs to the user."""

    def began(self, title: str, total: int, done: int) -> None: ...
    def calibrating(self, network: str) -> None: ...
    def running(self, run: ResolvedRun, attempt: int) -> None: ...
    def note(self, text: str) -> None: ...
    def finished(self, run: ResolvedRun, result: str, seconds_left: float) -> None: ...
    def close(self) -> None: ...


@dataclass
class Tally:
    """The state of a plan's runs.

    ``counts`` are numbers of runs by standing (``journal.standing``), ``failures`` the causes by run,
    ``timeouts`` the causes of runs that timed out, ``cannot_count`` the reasons by page. ``repeats`` counts
    attempts after the first, ``repeats_in_vain`` those that ended no better than the one before.
    """

    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    timeouts: dict[str, str] = field(default_factory=dict)
    cannot_count: dict[str, str] = field(default_factory=dict)
    repeats: int = 0
    repeats_in_vain: int = 0
