"""The pool: carries out the runs of a plan, and can be stopped at any moment.

A back end carries out its runs one by one or side by side (``contract.Backend``). Simulated runs come first,
side by side; nothing disturbs them, so none is tried again. Most testbed runs have the machine for
themselves. If a part of one crashed, it is tried again at once. If the machine disturbed it, it is tried
again after all others, when the machine may be calm; if the machine stays disturbed (``disturbances``), it
is not. A visit that timed out is never tried again, not even by a later command. The visits of a page that
cannot count are skipped (``bad_pages``).

Whatever ends the command (Ctrl-C, SIGTERM, kill -9, a full disk, a power cut), the same command
resumes: ``results.store`` has every finished run on the disk before the next begins.
"""

from __future__ import annotations

import shutil
import time
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from pathlib import Path

from wirepaint.errors import Incomplete, NetworkFailed, PageTimeout, RunFailed
from wirepaint.evaluation import Plan, ResolvedRun
from wirepaint.evaluation.network import Network
from wirepaint.results import journal, parts
from wirepaint.results.contents import Contents
from wirepaint.results.outcome import Outcome
from wirepaint.results.store import ELSEWHERE, Store
from wirepaint.runners import calibrating, ownership
from wirepaint.runners.bad_pages import HOPELESS, BadPages, in_words, worth_a_repeat
from wirepaint.runners.contract import (
    Backend,
    Block,
    Calibration,
    Decided,
    Job,
    Keeper,
    Medians,
    NarrowEnough,
    Progress,
    Session,
    Tally,
    Thin,
    block,
)
from wirepaint.runners.disturbances import Disturbances
from wirepaint.runners.signals import Signals

RETRIES = 2
"""A run is carried out at most 1 + RETRIES times by one command."""
TOGETHER = 50
"""Visits of a condition that are carried out one after the other where runs are side by side."""
_LEAST_FREE = 4 * 2**20
"""Bytes. If a run fails with less free space, the full disk is taken as the cause."""


def carry_out(
    plan: Plan,
    folder: Path,
    backends: Sequence[Backend],
    progress: Progress,
    narrow_enough: NarrowEnough | None = None,
    cannot_count: Mapping[str, str] | None = None,
    keeper: Keeper | None = None,
    decided: Decided | None = None,
    medians: Medians | None = None,
    only: Collection[str] = (),
) -> Tally:
    """Carries out the runs of a plan that are not yet done and returns the state of all its runs.

    ``backends`` take their runs one after the other, in their order. ``cannot_count`` gives, by page name,
    why no visit of the page would count: its visits are skipped. ``keeper`` takes each run that has a
    result. ``decided`` is asked between the plan's looks; once it agrees, the remaining visits of the back
    end are skipped. ``medians`` chooses the runs whose traces stay if the plan asks for medians. With
    ``only``, keys of runs, the others stay as they are; those of them whose traces were not kept get them
    back.

    Raises ``Incomplete`` when stopped (finished runs are kept), ``UsageError`` when the folder
    belongs to another evaluation, ``Refused`` when the data plane refuses a part that is not the page's,
    ``RunFailed`` when one page after another fails and the cause is not in the pages.
    """
    with Signals() as signals, ExitStack() as stack:
        ownership.claim()
        sessions = [(one, stack.enter_context(one.open(signals.interruptible))) for one in backends]
        versions = {name: version for one in backends for name, version in one.versions.items()}
        store = stack.enter_context(Store(folder, plan, versions))
        stack.callback(progress.close)
        bad_pages = BadPages((run.page_name for run in plan.runs.first_of_each()), cannot_count or {})
        with store.mishaps():
            pool = _Pool(store.plan, store, progress, narrow_enough, bad_pages, keeper, decided)
            try:
                tally = pool.carry_out(sessions, only)
            finally:
                pool.keep_the_rest()
            if only:
                pool.bring_back(sessions, only)
            elif medians and plan.keep == "medians":
                chosen = medians(store.folder)
                pool.bring_back(sessions, chosen)
                pool.let_go(sessions, chosen)
            return tally


class Again(Enum):
    """When a run is tried again: at once after a crash, after all others when the machine was busy."""

    NOW = auto()
    LATER = auto()


class _Pool:
    def __init__(
        self,
        plan: Plan,
        store: Store,
        progress: Progress,
        narrow_enough: NarrowEnough | None,
        bad_pages: BadPages,
        keeper: Keeper | None,
        decided: Decided | None,
    ) -> None:
        self._plan, self._store = plan, store
        self._progress, self._narrow_enough, self._decided = progress, narrow_enough, decided
        self._bad_pages, self._keeper = bad_pages, keeper
        self._disturbances: dict[str | None, Disturbances] = defaultdict(Disturbances)
        """By host."""
        self._said_stays: set[str | None] = set()
        self._hosts: dict[Block, str] = {}
        """Testbeds that carried out runs of a block in earlier commands."""
        self._said: set[tuple[str, str]] = set()
        self._tally = Tally()
        self._calibrations: dict[str, Calibration | NetworkFailed] = {}
        self._tries: Counter[str] = Counter()
        self._since_ns = 0
        """When the runs of a back end began, Unix time."""
        self._left = 0
        """Runs that have not ended yet."""
        self._load_times: dict[tuple[str, str, str], list[float]] = defaultdict(list)

    def carry_out(self, sessions: Sequence[tuple[Backend, Session]], only: Collection[str] = ()) -> Tally:
        todo: dict[str, array[int]] = defaultdict(lambda: array("I"))
        for place, row in enumerate(self._store.rows()):
            if row is journal.PLANNED and not only:
                todo[self._plan.runs.alike(place).backend].append(place)
                continue
            run = self._plan.runs[place]
            standing = journal.standing(row.state, row.verdict, row.cause, row.kind)
            if row.host is not None:
                self._hosts.setdefault(block(run), row.host)
            if row.outcome is not None:
                self._bad_pages.learn(run, row.outcome)
            if standing == "timed out":
                self._tally.timeouts[run.key] = row.cause or ""
                self._bad_pages.learn(run, PageTimeout(row.cause or ""))
            if row.state == "done" or standing in ("skipped", "timed out"):
                self._count(run, standing)
            elif not only or run.key in only:
                # Also visits skipped for their page: the visit that was at fault may count this time.
                todo[run.backend].append(place)
        self._left = sum(map(len, todo.values()))
        asked = self._left if only else len(self._plan.runs)
        self._progress.began(self._plan.title, asked, asked - self._left)
        for note in self._store.notes:
            self._progress.note(note)
        others = self._left
        for backend, session in sessions:
            mine = todo[backend.name]
            others -= len(mine)
            self._until_decided(backend, session, mine, others)
        self._tally.cannot_count = self._bad_pages.pages(self._plan.runs.first_of_each())
        self._tally.repeats, self._tally.repeats_in_vain = self._store.repeats()
        return self._tally

    def _until_decided(self, backend: Backend, session: Session, mine: Sequence[int], others: int) -> None:
        """Carries out the runs of a back end up to the look that decides; skips the rest."""
        looked_at, decided = 0, False
        for look, stage in self._stages(mine):
            if stage and looked_at and self._decided is not None:
                decided = decided or self._decided(self._store.folder, backend.name)
            if decided:
                self._not_needed_any_more(stage, looked_at)
            else:
                with self._store.batches() if backend.many else nullcontext():
                    self._carry_out(backend, session, stage, others)
                looked_at = look

    def _runs(self, places: Iterable[int]) -> Iterator[ResolvedRun]:
        return (self._plan.runs[place] for place in places)

    def _stages(self, runs: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Each of the plan's looks with the runs up to it, by place; all runs if it has none."""
        if not self._plan.looks:
            yield 0, runs
            return
        before = -1
        for look in self._plan.looks:
            yield look, [place for place in runs if before < self._plan.runs.visit(place) <= look]
            before = look

    def _not_needed_any_more(self, runs: Sequence[int], visits: int) -> None:
        """Skips runs after the look that decided."""
        why = f"not needed: decided after {visits} visits"
        for run in self._runs(runs):
            self._store.skip(run.key, why)
        self._tally.counts["skipped"] += len(runs)
        self._left -= len(runs)
        if runs:
            self._progress.note(f"{len(runs)} runs {why}")

    def _carry_out(self, backend: Backend, session: Session, todo: Sequence[int], others: int) -> None:
        """Carries out the runs of one back end; ``others`` runs come after them.

        If many run side by side and a later visit may be skipped, each round of visits must end before the
        next begins: skipping must not depend on which run of a round ends first.
        """
        queue = _Queue()
        began: dict[str, int] = {}
        since, ended = time.monotonic(), 0
        self._since_ns = time.time_ns()

        def seconds_left() -> float:
            if not ended or (backend.many and others):
                return float("nan")  # the duration of the other back end's visits is not known yet
            return (self._left - others) * (time.monotonic() - since) / ended

        def job() -> Job | None:
            while run := queue.draw():
                if not backend.many and self._skipped(run, seconds_left()):
                    continue
                measured = self._calibration(session, run.network)
                if isinstance(measured, NetworkFailed):
                    self._unattempted(run, str(measured), seconds_left())
                    continue
                whole = not (backend.thin and self._is_thin(run))
                attempt, folder = ELSEWHERE, self._store.folder
                if whole:
                    attempt, folder = self._store.begin(run.key, make=not backend.remote)
                began[run.key] = attempt
                self._progress.running(run, attempt)
                if attempt > run.attempt:
                    run = run.model_copy(update={"attempt": attempt})
                return Job(run, folder, measured, whole, self._hosts.get(block(run)), self._calibrated)
            return None

        rounds = self._rounds(todo) if backend.many else [todo]
        try:
            while rounds:
                visits = rounds.pop(0)
                conditions = (run for run in self._plan.runs.first_of_each() if run.backend == backend.name)
                if not self._plan.stop and not any(map(self._bad_pages.undecided, conditions)):
                    rest = chain(visits, *rounds)
                    visits = array("I", sorted(rest, key=self._together) if backend.many else rest)
                    rounds = []
                if backend.many:
                    visits = self._without_skipped(visits)
                queue.fresh = self._runs(visits)
                with closing(session.carry_out(_Jobs(job))) as ends:
                    for run, end in ends:
                        if session.team is not None:
                            self._progress.workers(session.team.workers)
                        tries_left = 0
                        if not backend.many:
                            self._tries[run.key] += 1
                            tries_left = 1 + RETRIES - self._tries[run.key]
                        result = self._ended(run, end, began.pop(run.key), tries_left)
                        if result is Again.NOW:
                            queue.now.append(run)
                        elif result is Again.LATER:
                            queue.later.append(run)
                        else:
                            ended += 1
                            self._count(run, result)
                            self._finished(run, result, seconds_left())
        except BaseException as cause:
            for key, attempt in began.items():
                self._store.dropped(key, attempt)
            if isinstance(cause, KeyboardInterrupt):
                raise Incomplete(self._stopped()) from None
            raise
        if ended and session.team is None:
            self._tally.seconds[backend.name] = (time.monotonic() - since) / ended
        elif ended and session.team is not None and (seconds := session.team.seconds_of_run):
            self._tally.seconds["worker" if backend.many else backend.name] = seconds

    def _together(self, place: int) -> tuple[int, int]:
        """The order of runs side by side.

        Some of a condition together, so that what they share is made and handed over once. Not all of them,
        so that batches, which are sized by the runs before, have pages of all sizes.
        """
        return self._plan.runs.visit(place) // TOGETHER, self._plan.runs.condition_of(place)

    def _rounds(self, runs: Sequence[int]) -> list[Sequence[int]]:
        """The runs by visit, in order."""
        by_visit: dict[int, array[int]] = defaultdict(lambda: array("I"))
        for place in runs:
            by_visit[self._plan.runs.visit(place)].append(place)
        return [by_visit[visit] for visit in sorted(by_visit)]

    def _without_skipped(self, runs: Sequence[int]) -> Sequence[int]:
        """Skips those that are useless or not needed."""
        if self._plan.stop is None and not self._bad_pages.known:
            return runs
        pairs = zip(runs, self._runs(runs), strict=True)
        return array("I", (place for place, run in pairs if not self._skipped(run, float("nan"))))

    def _ended(
        self, run: ResolvedRun, end: Outcome | Thin | RunFailed, attempt: int, tries_left: int
    ) -> str | Again:
        """Stores the end of an attempt; returns the run's standing, or when it is tried again."""
        if isinstance(end, RunFailed):
            again = tries_left > 0 and worth_a_repeat(end)
            self._failed(run, attempt, end, again)
            return Again.NOW if again else _failed(end)
        if isinstance(end, Thin):
            self._done(run, attempt, end)
            return end.outcome.verdict
        self._disturbances[end.host].learn(end)
        if tries_left and not run.warmup and worth_a_repeat(end) and not self._stays(end.host):
            self._learn(run, end, repeated=True)
            if self._bad_pages.why_skipped(run) is None:
                self._store.repeat(run.key, attempt, end.verdict, end.to_json())
                self._progress.note(f"{run.key}: {end.verdict}, {in_words(end.reasons)}; once more later")
                return Again.LATER
        self._done(run, attempt, end)
        return end.verdict

    def _stays(self, host: str | None) -> bool:
        """Whether a machine stays disturbed, which is said once."""
        why = self._disturbances[host].stays
        if why and host not in self._said_stays:
            self._said_stays.add(host)
            self._progress.note(f"{host or 'The machine'} stays disturbed, so runs are not repeated: {why}")
        return why is not None

    def _finished(self, run: ResolvedRun, result: str, seconds_left: float) -> None:
        self._left -= 1
        self._progress.finished(run, result, seconds_left)

    def _calibration(self, session: Session, network: Network) -> Calibration | NetworkFailed | None:
        """What the emulated path really gives, measured once per network and command, or why it cannot be.

        None where nothing is measured here.
        """
        if session.calibrate is None:
            return None
        if network.name not in self._calibrations:
            self._progress.calibrating(network.name)
            try:
                found = calibrating.measured(network, session.calibrate, self._calibration_failed)
            except NetworkFailed as failure:
                self._calibrations[network.name] = failure
            else:
                self._calibrations[network.name] = found
                self._calibrated(network, found)
        return self._calibrations[network.name]

    def _calibration_failed(self, why: str) -> None:
        self._check_disk()
        self._progress.note(why)

    def _calibrated(self, network: Network, found: Calibration) -> None:
        """Stores a calibration, and says what is off."""
        self._store.keep_calibration(network.name, found)
        if off := calibrating.off(found):
            self._progress.note(f"network {network.name}: not what was asked: {', '.join(off)}")

    def _unattempted(self, run: ResolvedRun, cause: str, seconds_left: float) -> None:
        """Fails a run without an attempt: its network could not be measured."""
        self._store.unattempted(run.key, cause, "network")
        self._tally.failures[run.key] = cause
        self._count(run, "failed")
        self._finished(run, "failed", seconds_left)

    def _is_thin(self, run: ResolvedRun) -> bool:
        """Whether the trace of a run does not stay; those of medians come back at the end (``medians``)."""
        keep = self._plan.keep
        return keep == "metrics" or (keep == "medians" and run.backend == "simulator")

    def _keep(self, run: ResolvedRun, contents: Contents, trace: str | None) -> None:
        """Hands a run with its trace to the keeper, and the digest that the simulator gives of it."""
        if self._keeper is None:
            return
        if not self._is_thin(run):
            self._keeper.add(run.key, contents.digests, contents.folder)
        else:
            self._thin(run.key, contents, trace)

    def _thin(self, key: str, contents: Contents, trace: str | None = None) -> None:
        """Lets the keeper take the trace of a run."""
        assert self._keeper is not None
        if thin := self._keeper.take(key, trace or parts.of_trace(contents.digests), contents.folder):
            self._store.thin(*thin)

    def bring_back(self, sessions: Sequence[tuple[Backend, Session]], keys: Collection[str]) -> None:
        """Carries simulated runs out again whose traces were not kept, and keeps the traces."""
        gone = [run for run in self._plan.runs if run.key in keys and self._store.is_thin(run.key)]
        for backend, session in sessions:
            if backend.many:
                self._restore(backend, session, [run for run in gone if run.backend == backend.name])

    def _restore(self, backend: Backend, session: Session, runs: Iterable[ResolvedRun]) -> None:
        def jobs() -> Iterator[Job]:
            for run in runs:
                yield Job(run, self._store.begin_again(run.key, make=not backend.remote))

        with closing(session.carry_out(jobs())) as ends:
            for run, end in ends:
                if isinstance(end, Thin | RunFailed):
                    self._progress.note(f"{run.key}: its trace does not come back, {end}")
                elif not self._store.restore(run.key, end):
                    found = "simulated again, it has another trace than the one whose metrics were kept"
                    raise RunFailed(f"{run.key}: {found}. Please report it.")

    def let_go(self, sessions: Sequence[tuple[Backend, Session]], keys: Collection[str]) -> None:
        """Keeps only the metrics of the testbed's runs but ``keys``: they could not come back before."""
        of_testbed = {backend.name for backend, _ in sessions if not backend.many}
        for run in self._plan.runs:
            contents = self._store.contents(run.key)
            if contents and self._keeper and run.backend in of_testbed and run.key not in keys:
                self._thin(run.key, contents)
        self.keep_the_rest()

    def keep_the_rest(self) -> None:
        """Runs that the keeper still waited with."""
        if self._keeper is not None and (thin := self._keeper.rest()):
            self._store.thin(*thin)

    def _done(self, run: ResolvedRun, attempt: int, outcome: Outcome | Thin) -> None:
        """Stores a run's result and learns from it."""
        if isinstance(outcome, Thin):
            self._store.done_thin(run.key, self._since_ns, outcome.outcome, outcome.rows)
            outcome = outcome.outcome
        else:
            self._keep(run, self._store.done(run.key, attempt, outcome), outcome.trace)
        if outcome.verdict != "valid":
            self._progress.note(f"{run.key}: {outcome.verdict}, {in_words(outcome.reasons)}")
        self._learn(run, outcome)

    def _failed(self, run: ResolvedRun, attempt: int, failure: RunFailed, again: bool) -> None:
        """Stores the cause of a failed attempt; ``again``: the run is tried again at once."""
        cause = str(failure)
        try:
            self._check_disk()
        except Incomplete:
            self._store.dropped(run.key, attempt)
            raise
        if again:
            self._store.repeat(run.key, attempt, "failed", cause)
            self._progress.note(f"{run.key}: {cause}; once more")
            return
        kind = journal.kind_of(failure)
        self._store.failed(run.key, attempt, cause, kind, failure.host)
        of_kind = self._tally.timeouts if kind == "timeout" else self._tally.failures
        of_kind[run.key] = cause
        self._progress.note(f"{run.key}: {_failed(failure)}, {cause}")
        self._learn(run, failure)
        if self._bad_pages.hopeless:
            raise RunFailed(f"{HOPELESS} runs in a row failed, the last one, {run.key}: {cause}")

    def _check_disk(self) -> None:
        """Raises Incomplete if a full disk or a missing folder may have caused a failure."""
        self._store.check_place()
        if shutil.disk_usage(self._store.folder).free < _LEAST_FREE:
            raise Incomplete(
                f"{self._store.folder}: the disk is full. Mend that and give the same command again."
            )

    def _learn(self, run: ResolvedRun, end: Outcome | RunFailed, *, repeated: bool = False) -> None:
        if why := self._bad_pages.learn(run, end, repeated=repeated):
            self._said.add((run.page_name, why))
            self._progress.note(
                f"{run.page_name}: cannot count in {run.scenario}; its other visits are skipped"
            )

    def _skipped(self, run: ResolvedRun, seconds_left: float) -> bool:
        """Skips a run that is useless or not needed; True if it did."""
        if why := self._bad_pages.why_skipped(run):
            if (run.page_name, why) not in self._said:
                self._said.add((run.page_name, why))
                self._progress.note(f"{run.page_name}: cannot count; its visits are skipped: {why}")
            self._store.skip(run.key, f"{journal.CANNOT_COUNT}{why}")
            self._tally.counts["cannot count"] += 1
            self._finished(run, "skipped, the page cannot count", seconds_left)
            return True
        if why := self._not_needed(run):
            self._store.skip(run.key, why)
            self._tally.counts["skipped"] += 1
            self._finished(run, why, seconds_left)
            return True
        return False

    def _count(self, run: ResolvedRun, result: str) -> None:
        self._tally.counts[result] += 1
        if self._plan.stop and result == "valid" and not run.warmup:
            self._load_times[_cell(run)] += self._store.load_times(run.key)

    def _not_needed(self, run: ResolvedRun) -> str | None:
        """Why the run can be skipped: the page load time in this scenario is known closely enough."""
        stop, narrow_enough = self._plan.stop, self._narrow_enough
        if stop is None or narrow_enough is None or run.warmup:
            return None
        times = self._load_times[_cell(run)]
        if len(times) >= stop.visits and narrow_enough(times, stop.interval):
            return f"not needed: interval narrower than {stop.interval:.3g} of the mean"
        return None

    def _stopped(self) -> str:
        total = len(self._plan.runs)
        return f"stopped; {total - self._left} of {total} runs are done. The same command again resumes"


@dataclass
class _Queue:
    """Runs to carry out: those that are tried again ``now``, the ``fresh`` ones, those for ``later``."""

    now: deque[ResolvedRun] = field(default_factory=deque)
    fresh: Iterator[ResolvedRun] = field(default_factory=lambda: iter(()))
    later: deque[ResolvedRun] = field(default_factory=deque)

    def draw(self) -> ResolvedRun | None:
        if self.now:
            return self.now.popleft()
        return next(self.fresh, None) or (self.later.popleft() if self.later else None)


class _Jobs(Iterator[Job]):
    """Jobs as they are drawn; when there was none left, there may be some again later."""

    def __init__(self, draw: Callable[[], Job | None]) -> None:
        self._draw = draw

    def __next__(self) -> Job:
        if (job := self._draw()) is None:
            raise StopIteration
        return job


def _cell(run: ResolvedRun) -> tuple[str, str, str]:
    return run.scenario, run.user_agent, run.page_name


def _failed(failure: RunFailed) -> str:
    """The standing of a run with this failure."""
    return journal.standing("failed", None, None, journal.kind_of(failure))
