"""The testbed during one command: runs in cells, one at a time or side by side; a failure renews its cell."""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from wirepaint.errors import RunFailed
from wirepaint.evaluation.network import Network
from wirepaint.results import provenance
from wirepaint.results.store import disk_errors
from wirepaint.runners.contract import Calibration, Ends, Interruptible, Job
from wirepaint.runners.testbed import one_run, side_by_side
from wirepaint.runners.testbed.calibrate import calibrate
from wirepaint.runners.testbed.cells import Cells

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun
    from wirepaint.results.outcome import Outcome


class Session:
    """A testbed at work (:class:`wirepaint.runners.contract.Session`)."""

    team = None

    def __init__(self, interruptible: Interruptible, wait_s: float = 0.0, at_once: int | None = None) -> None:
        """``wait_s``: how long to wait for a testbed that another command uses.

        ``at_once``: how many runs may go side by side, if they may at all (``side_by_side``).
        """
        self._interruptible, self._wait_s = interruptible, wait_s
        self._at_once = at_once or side_by_side.limit()
        self._stack = ExitStack()
        self._free: list[Cells] = []
        self._running: dict[Cells, Job] = {}
        self._began, self._between_s = 0.0, side_by_side.between_s()
        self._ended: deque[tuple[ResolvedRun, Outcome | RunFailed]] = deque()

    def __enter__(self) -> Session:
        with self._interruptible():
            self._first = self._stack.enter_context(Cells(self._wait_s))
        self._free.append(self._first)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def calibrate(self, network: Network) -> Calibration:
        """What the emulated path really gives, once the runs have ended; raises ``RunFailed``."""
        while self._running:
            self._ended.append(self._awaited())
        try:
            with self._interruptible():
                return calibrate(network, short=True, cells=self._first)
        except RunFailed:
            self._first.renew()
            raise

    def carry_out(self, jobs: Iterator[Job]) -> Ends:
        """Carries out one job after another, or some side by side."""
        while True:
            while self._ended or self._is_full():
                yield self._end()
            job = next(jobs, None)
            if job is None and not self._running and not self._ended:
                return
            if job is None:
                yield self._end()
                continue
            while self._running and not side_by_side.may(job.run):
                yield self._end()
            if failure := self._begin(job):
                yield job.run, failure

    def _is_full(self) -> bool:
        alone = not all(side_by_side.may(job.run) for job in self._running.values())
        return alone or len(self._running) >= self._at_once

    def _begin(self, job: Job) -> RunFailed | None:
        """Begins a run; returns why it could not."""
        if not self._free:
            self._free.append(self._stack.enter_context(Cells(beside=self._first)))
        cells = self._free.pop()
        self._running[cells] = job
        try:
            with self._interruptible(), disk_errors(job.folder):
                if len(self._running) > 1:
                    time.sleep(max(0.0, self._began + self._between_s - time.monotonic()))
                self._began = time.monotonic()
                one_run.begin(job.run, job.folder, session=cells, calibration=job.calibration)
        except RunFailed as failure:
            return self._failed(cells, failure)
        except BaseException:
            self._stack.close()  # before the folder goes: the run may still be writing
            raise
        return None

    def _end(self) -> tuple[ResolvedRun, Outcome | RunFailed]:
        """The next end of a run."""
        return self._ended.popleft() if self._ended else self._awaited()

    def _awaited(self) -> tuple[ResolvedRun, Outcome | RunFailed]:
        """Waits for the next end of a run."""
        try:
            with self._interruptible():
                cells = select.select(list(self._running), [], [])[0][0]
                job = self._running[cells]
                try:
                    with disk_errors(job.folder):
                        end = one_run.end(cells)
                except RunFailed as failure:
                    return job.run, self._failed(cells, failure)
        except BaseException:
            self._stack.close()
            raise
        if len(self._running) > 1:
            self._between_s = side_by_side.next_between_s(self._between_s, end)
        self._leave(cells)
        return job.run, end

    def _failed(self, cells: Cells, failure: RunFailed) -> RunFailed:
        failure.host = provenance.host()
        cells.renew()
        self._leave(cells)
        return failure

    def _leave(self, cells: Cells) -> None:
        del self._running[cells]
        self._free.append(cells)
