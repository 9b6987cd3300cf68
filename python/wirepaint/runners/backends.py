"""The back ends by name."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from wirepaint.results.outcome import Outcome
from wirepaint.runners.contract import Backend


def backend(name: str) -> Backend:
    """The back end of a plan: testbed, simulator or both."""
    if name == "simulator":
        return simulator()
    if name == "both":
        simulated, real = simulator(), testbed()
        return replace(real, run_many=simulated.run_many, versions=real.versions | simulated.versions)
    return testbed()


def simulator() -> Backend:
    """The back end of a virtual clock."""
    from wirepaint import dataplane
    from wirepaint.runners import simulator

    def never(*_: Any, **__: Any) -> Outcome:
        raise AssertionError("simulated runs are carried out many at once")

    return Backend(nullcontext, never, None, {"data plane": dataplane.fingerprint()}, simulator.run_many)


def testbed() -> Backend:
    """The back end of real namespaces, kernel and browser."""
    from wirepaint import dataplane
    from wirepaint.runners import testbed
    from wirepaint.runners.testbed.browser import chromium
    from wirepaint.runners.testbed.calibrate import calibrate

    return Backend(
        session=testbed.session,
        run_once=testbed.run_once,
        calibrate=lambda network, cells: calibrate(network, short=True, cells=cells),
        # The congestion controls are inside the program: another build may be another experiment.
        versions={"browser": chromium.version(), "data plane": dataplane.fingerprint()},
    )
