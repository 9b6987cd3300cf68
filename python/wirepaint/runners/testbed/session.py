"""The testbed during one command: one run at a time, in cells that a failure renews."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from wirepaint.errors import RunFailed
from wirepaint.evaluation.network import Network
from wirepaint.results import provenance
from wirepaint.results.store import disk_errors
from wirepaint.runners.contract import Calibration, Ends, Interruptible, Job
from wirepaint.runners.testbed import one_run
from wirepaint.runners.testbed.calibrate import calibrate
from wirepaint.runners.testbed.cells import Cells

if TYPE_CHECKING:
    from wirepaint.results.outcome import Outcome


class Session:
    """A testbed at work (:class:`wirepaint.runners.contract.Session`)."""

    team = None

    def __init__(self, interruptible: Interruptible, wait_s: float = 0.0) -> None:
        """``wait_s``: how long to wait for a testbed that another command uses."""
        self._interruptible, self._wait_s = interruptible, wait_s
        self._stack = ExitStack()

    def __enter__(self) -> Session:
        with self._interruptible():
            self._renew()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def calibrate(self, network: Network) -> Calibration:
        """What the emulated path really gives; raises ``RunFailed``."""
        try:
            with self._interruptible():
                return calibrate(network, short=True, cells=self._cells)
        except RunFailed:
            self._renew()
            raise

    def carry_out(self, jobs: Iterator[Job]) -> Ends:
        """Carries out one job after another."""
        for job in jobs:
            yield job.run, self._one(job)

    def _one(self, job: Job) -> Outcome | RunFailed:
        try:
            with self._interruptible(), disk_errors(job.folder):
                return one_run.run_once(job.run, job.folder, session=self._cells, calibration=job.calibration)
        except RunFailed as failure:
            failure.host = provenance.host()
            self._renew()
            return failure
        except BaseException:
            self._stack.close()  # before the folder goes: the run may still be writing
            raise

    def _renew(self) -> None:
        self._stack.close()
        self._cells = self._stack.enter_context(Cells(self._wait_s))
