"""The back ends by name."""

from __future__ import annotations

from wirepaint.runners.contract import Backend


def named(name: str) -> list[Backend]:
    """The back ends of a plan, in the order of their runs: testbed, simulator or both."""
    if name == "both":
        return [simulator(), testbed()]
    return [simulator() if name == "simulator" else testbed()]


def simulator() -> Backend:
    """The back end of a virtual clock."""
    from wirepaint import dataplane
    from wirepaint.runners.simulator import Session

    return Backend("simulator", Session, many=True, versions={"data plane": dataplane.fingerprint()})


def testbed() -> Backend:
    """The back end of real namespaces, kernel and browser."""
    from wirepaint import dataplane
    from wirepaint.runners.testbed.browser.chromium import program
    from wirepaint.runners.testbed.session import Session

    # The congestion controls are inside the program: another build may be another experiment.
    versions = {"browser": program.version(), "data plane": dataplane.fingerprint()}
    return Backend("testbed", Session, versions=versions)
