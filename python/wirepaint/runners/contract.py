"""The interface between the pool and the back ends: jobs and their ends, progress, the tally."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from wirepaint.errors import RunFailed
from wirepaint.evaluation import ResolvedRun
from wirepaint.evaluation.network import Network
from wirepaint.results.outcome import Outcome

NarrowEnough = Callable[[list[float], float], bool]
Decided = Callable[[Path, str], bool]
"""Whether the results in a folder decide all that was asked of a back end."""
Interruptible = Callable[[], AbstractContextManager[None]]
Calibration = dict[str, Any]
Ended = Callable[[str, Mapping[str, str], Path], None]
"""Gets each run that has a result: its key, the digests of its files, and its folder."""


@dataclass(frozen=True)
class Job:
    """A run to carry out into a folder, and what its network gave when it was measured."""

    run: ResolvedRun
    folder: Path
    calibration: Calibration | None = None


Ends = Generator[tuple[ResolvedRun, Outcome | RunFailed], None, None]


class Session(Protocol):
    """A back end at work, during one command."""

    @property
    def calibrate(self) -> Callable[[Network], Calibration] | None:
        """Measures a network before its first run; None where nothing is to be measured."""
        ...

    def carry_out(self, jobs: Iterator[Job]) -> Ends:
        """Takes the next job when it has room, and gives each end as it comes.

        It waits where it can be interrupted, and when it is left nothing of it still writes.
        """
        ...


@dataclass(frozen=True)
class Backend:
    """How runs are carried out: ``open`` begins a session, ``name`` is the one that runs ask for.

    ``many`` is true where runs are carried out side by side; nothing disturbs them, so none is repeated.
    ``versions`` names the programs that results of this back end depend on, such as the browser.
    """

    name: str
    open: Callable[[Interruptible], AbstractContextManager[Session]]
    many: bool = False
    versions: dict[str, str] = field(default_factory=dict)


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
