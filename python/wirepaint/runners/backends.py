"""The back ends by name."""

from __future__ import annotations

from functools import partial

from wirepaint.runners.contract import Backend


def named(name: str, *, captures: bool = False, iperf3: bool = False, wait_s: float = 0.0) -> list[Backend]:
    """The back ends of a plan, in the order of their runs: testbed, simulator or both.

    Raises MachineLacks if the testbed lacks a program that its runs need, with ``captures`` also dumpcap,
    with ``iperf3`` also iperf3. ``wait_s`` is how long to wait for a testbed that another command uses.
    """
    of_testbed = partial(testbed, captures=captures, iperf3=iperf3, wait_s=wait_s)
    if name == "both":
        return [simulator(), of_testbed()]
    return [simulator() if name == "simulator" else of_testbed()]


def simulator() -> Backend:
    """The back end of a virtual clock."""
    from wirepaint import dataplane
    from wirepaint.runners.simulator import Session

    return Backend("simulator", Session, many=True, versions={"data plane": dataplane.fingerprint()})


def testbed(*, captures: bool = False, iperf3: bool = False, wait_s: float = 0.0) -> Backend:
    """The back end of real namespaces, kernel and browser."""
    from wirepaint import dataplane
    from wirepaint.runners.testbed import capture
    from wirepaint.runners.testbed import iperf3 as of_iperf3
    from wirepaint.runners.testbed.browser.chromium import program
    from wirepaint.runners.testbed.session import Session

    if captures:
        capture.program()
    # The congestion controls are inside the program: another build may be another experiment.
    versions = {"browser": program.version(), "data plane": dataplane.fingerprint()}
    if iperf3:
        versions["iperf3"] = of_iperf3.version()
    return Backend("testbed", partial(Session, wait_s=wait_s), versions=versions)
