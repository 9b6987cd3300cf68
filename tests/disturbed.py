"""Tests in real time, on a machine that others use too.

If a test marked ``timed`` fails while the machine was disturbed, or reports this itself (``Disturbed``),
it decides nothing. It is repeated, with all its fixtures, once the machine is calm. If it is never decided
it is *undecided*: it is reported with its failure, and more than ``MOST_UNDECIDED`` fail the run. A failure
on a calm machine is a failure, and so is every failure of a test without the mark.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import suppress

import pytest
from _pytest.runner import runtestprotocol

from wirepaint.runners.testbed.host import Counters, Witness
from wirepaint.runners.testbed.validity import FEW_TICKS_S, FOREIGN_SHARE

OF_THE_MACHINE = {
    "steal",
    "foreign_cpu",
    "lateness",
    "lateness_max",
    "emulator_pause",
    "unseen_acks",
    "server_pause",
    "start",
    "light",
    # Measured once for all visits, perhaps while others used the machine; it has tests of its own.
    "calibration",
}
"""Checks of a visit that fail when others use the machine: a test without the mark ``timed`` allows them."""
STOLEN_SHARE = 0.01
"""Of the CPU time. A run bears more, for it is mostly waiting."""
REPEATS = 2
MOST_UNDECIDED = 3
PATIENCE_S = 60.0
"""How long one test waits for a calm machine, all its repeats together."""
LOOK_S = 2.0
"""The machine is calm after this time without a disturbance."""
REPEATED, UNDECIDED = "repeated", "undecided"


class Disturbed(Exception):
    """The test's result means nothing: the machine was too busy."""


class Watch:
    """Watches the machine from its making on."""

    def __init__(self) -> None:
        self._witness = Witness({"tests": os.getpid()})

    def disturbance(self) -> str | None:
        """The disturbance of the machine since then; None if it was calm."""
        return disturbance(self._witness.stop())


def disturbance(counters: Counters) -> str | None:
    """CPU time that was stolen, or that others used."""
    others = counters.tasks - counters.parts["tests"]
    for used, share, how in (
        (counters.steal, STOLEN_SHARE, "stolen"),
        (others, FOREIGN_SHARE, "used by others"),
    ):
        if used > max(share * counters.total, FEW_TICKS_S):
            return f"{used / counters.total:.1%} of the CPU time was {how}"
    return None


_watch = pytest.StashKey[Watch]()
_shared = pytest.StashKey[dict[pytest.FixtureDef[object], str | None]]()
"""Disturbances of the machine while a shared fixture was made."""
_undecided = pytest.StashKey[list[pytest.TestReport]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.stash[_shared], session.stash[_undecided] = {}, []


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    watch = Watch()
    try:
        return (yield)
    finally:
        request.session.stash[_shared][fixturedef] = watch.disturbance()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    # A process of pytest-xdist cannot tell its main process how many are undecided.
    if not item.get_closest_marker("timed") or hasattr(item.config, "workerinput"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    undecided = item.session.stash[_undecided]
    repeats = REPEATS if len(undecided) <= MOST_UNDECIDED else 0
    patience = PATIENCE_S
    while True:
        item.stash[_watch] = Watch()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        found = [report for report in reports if report.outcome == UNDECIDED]
        again = bool(found) and repeats > 0
        for report in reports:
            if again and report in found:
                report.outcome = REPEATED  # pyright: ignore[reportAttributeAccessIssue]
            item.ihook.pytest_runtest_logreport(report=report)
        if not again:
            break
        repeats -= 1
        # Shared fixtures are measured again, too.
        item.session._setupstate.teardown_exact(None)
        patience = wait_until_calm(patience)
    undecided += found
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def wait_until_calm(patience: float) -> float:
    """Waits at most N seconds, and returns the rest of them."""
    while patience > 0:
        watch = Watch()
        time.sleep(LOOK_S)
        patience -= LOOK_S
        if not watch.disturbance():
            break
    return patience


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed and call.excinfo and _watch in item.stash:
        raised = call.excinfo.value
        why: str | None = None
        if isinstance(raised, Disturbed):
            why = str(raised)
        elif isinstance(raised, AssertionError | pytest.fail.Exception):
            why = next(_disturbances(item), None)
        if why:
            report.outcome = UNDECIDED  # pyright: ignore[reportAttributeAccessIssue]
            report.why = f"{why}: {call.excinfo.exconly().splitlines()[0]}"
    return report


def _disturbances(item: pytest.Item) -> Iterator[str]:
    """Of the test and of the fixtures that it shares."""
    if why := item.stash[_watch].disturbance():
        yield why
    shared = item.session.stash[_shared]
    with suppress(AttributeError):  # what is no function has no fixtures
        for definitions in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
            yield from (why for one in definitions if (why := shared.get(one)))


def pytest_report_teststatus(
    report: pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    if report.outcome not in (REPEATED, UNDECIDED):
        return None
    letter = "R" if report.outcome == REPEATED else "U"
    return report.outcome, letter, (report.outcome.upper(), {"yellow": True})


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if len(session.stash[_undecided]) > MOST_UNDECIDED and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in (REPEATED, UNDECIDED):
        reports = terminalreporter.stats.get(outcome, [])
        if reports:
            terminalreporter.section(f"{outcome}: the machine was disturbed")
        for report in reports:
            terminalreporter.line(f"{report.nodeid}: {report.why}")
            if outcome == UNDECIDED:
                terminalreporter.line(report.longreprtext)
    if len(terminalreporter.stats.get(UNDECIDED, [])) > MOST_UNDECIDED:
        terminalreporter.line(f"More than {MOST_UNDECIDED} tests are undecided: the run fails.", red=True)
