"""What the tests across rooms share."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from wirepaint.runners.testbed.host import Sample
from wirepaint.runners.testbed.validity import STEAL_SHARE

IN_REAL_TIME = {"conformance", "system"}
"""Folders whose tests compare what took real time with what should have."""
_before = pytest.StashKey[Sample]()


@pytest.fixture
def root() -> None:
    """Skips, by name and aloud, where the testbed cannot run."""
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces cannot be made without it")


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_before] = Sample.take()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip, with the failure as the reason, a test whose assertion fails while another machine has the CPUs.

    It tells nothing then: a run would be suspect, too. Whatever else is raised fails the test.
    """
    report = yield
    raised = call.excinfo if report.when == "call" and report.failed else None
    if raised and raised.errisinstance(AssertionError) and item.path.parent.name in IN_REAL_TIME:
        before, after = item.stash[_before], Sample.take()
        stolen = (after.steal - before.steal) / ((after.time - before.time) * (os.cpu_count() or 1))
        if stolen > STEAL_SHARE:
            failure = raised.exconly().splitlines()[0]
            reason = f"Skipped: {stolen:.1%} of the CPU time was stolen meanwhile; it failed with {failure}"
            report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1] or 0, reason)
    return report
