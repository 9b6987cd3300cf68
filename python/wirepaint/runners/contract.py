"""The interface between the pool and the back ends: jobs and their ends, progress, the tally."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from wirepaint.errors import RunFailed
from wirepaint.evaluation import ResolvedRun
from wirepaint.evaluation.network import Network
from wirepaint.results.outcome import Outcome

if TYPE_CHECKING:
    import polars as pl

NarrowEnough = Callable[[list[float], float], bool]
Decided = Callable[[Path, str], bool]
"""Whether the results in a folder decide all that was asked of a back end."""
Medians = Callable[[Path], Sequence[str]]
"""The runs of a results folder whose traces are worth most: the median of each page in each scenario."""
Interruptible = Callable[[], AbstractContextManager[None]]
Calibration = dict[str, Any]


Thinned = tuple[dict[str, str], "pl.DataFrame"]
"""Runs whose traces are no longer needed: the digests of their traces by key, and their metrics."""


@dataclass(frozen=True)
class Thin:
    """The end of a run whose trace is not kept, with its metrics as ``rows``.

    Of runs that end together, the first has the rows of all.
    """

    outcome: Outcome
    rows: pl.DataFrame | None


class Keeper(Protocol):
    """Computes metrics of runs as they end."""

    def add(self, key: str, files: Mapping[str, str], folder: Path) -> None:
        """Takes a run whose trace stays, with the digests of the files in its folder."""
        ...

    def take(self, key: str, trace: str, folder: Path) -> Thinned | None:
        """Takes a run whose trace, which has this digest, does not stay; may hand such runs back."""
        ...

    def rest(self) -> Thinned | None:
        """The runs that it took and still has."""
        ...


@dataclass(frozen=True)
class Job:
    """A run to carry out into a folder, and what its network gave when it was measured.

    If it is not ``whole``, a session may give its metrics in place of its trace (``Thin``). ``host`` is the
    testbed on which an earlier command carried out other runs of its block. A session that measures networks
    elsewhere tells the calibrations to ``calibrated``.
    """

    run: ResolvedRun
    folder: Path
    calibration: Calibration | None = None
    whole: bool = True
    host: str | None = None
    calibrated: Callable[[Network, Calibration], None] | None = None

    @property
    def block(self) -> Block:
        """The runs that one testbed carries out, since they are compared with each other."""
        return block(self.run)


Block = tuple[str, int]
"""A page and the number of the visit."""


def block(run: ResolvedRun) -> Block:
    """The block of a run."""
    return run.page_name, run.visit


Ends = Generator[tuple[ResolvedRun, Outcome | Thin | RunFailed], None, None]


class Team(Protocol):
    """Workers elsewhere that carry out the runs of a session."""

    @property
    def workers(self) -> int:
        """How many there are now."""
        ...

    @property
    def seconds_of_run(self) -> float | None:
        """How long one of them took for a run so far; None before the first."""
        ...


class Session(Protocol):
    """A back end at work, during one command."""

    @property
    def team(self) -> Team | None:
        """Who carries the runs out; None for this machine."""
        ...

    @property
    def calibrate(self) -> Callable[[Network], Calibration] | None:
        """Measures a network before its first run; None where nothing is to be measured."""
        ...

    def carry_out(self, jobs: Iterator[Job]) -> Ends:
        """Takes the next job when it has room, and gives each end as it comes.

        ``jobs`` may have more after it was empty: runs that are tried again. The session waits where it can
        be interrupted, and when it is left nothing of it still writes.
        """
        ...


@dataclass(frozen=True)
class Backend:
    """How runs are carried out: ``open`` begins a session, ``name`` is the one that runs ask for.

    ``many`` is true where runs are carried out side by side; nothing disturbs them, so none is repeated.
    ``versions`` names the programs that results of this back end depend on, such as the browser; it is
    complete when a session is open. Where it is ``remote``, the folder of a job is made by the session, and
    only if files come back. One that is ``thin`` takes jobs that are not whole.
    """

    name: str
    open: Callable[[Interruptible], AbstractContextManager[Session]]
    many: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    remote: bool = False
    thin: bool = False


class Progress(Protocol):
    """Reports the progress of the runs to the user."""

    def began(self, title: str, total: int, done: int) -> None: ...
    def calibrating(self, network: str) -> None: ...
    def running(self, run: ResolvedRun, attempt: int) -> None: ...
    def workers(self, number: int) -> None: ...
    def note(self, text: str) -> None: ...
    def finished(self, run: ResolvedRun, result: str, seconds_left: float) -> None: ...
    def close(self) -> None: ...


@dataclass
class Tally:
    """The state of a plan's runs.

    ``counts`` are numbers of runs by standing (``journal.standing``), ``failures`` the causes by run,
    ``timeouts`` the causes of runs that timed out, ``cannot_count`` the reasons by page. ``repeats`` counts
    attempts after the first, ``repeats_in_vain`` those that ended no better than the one before. ``seconds``
    gives, by back end, how long a run took: the time of this command over the runs that it carried out; under
    ``worker`` how long one worker of a team took.
    """

    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    timeouts: dict[str, str] = field(default_factory=dict)
    cannot_count: dict[str, str] = field(default_factory=dict)
    repeats: int = 0
    repeats_in_vain: int = 0
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
