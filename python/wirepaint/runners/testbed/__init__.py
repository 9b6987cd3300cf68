"""The testbed: real Linux TCP in network namespaces behind an emulated link, with a real browser.

Start at ``run_once`` (one run, asked by ``session``) and follow it into ``page_run`` (what happens
inside the cell). ``cells`` explains where processes live and why nothing is left behind,
``namespaces`` builds the path, ``browser`` loads and measures the page, ``validity`` decides
whether a run counts.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepaint.dataplane.description import (
    Interfaces,
    Navigation,
    Origin,
    Run,
    Server,
    Visit,
)
from wirepaint.results.outcome import Outcome
from wirepaint.runners import refusals
from wirepaint.runners.description import (
    captured,
    controls,
    flows,
    has_changes,
    hosts,
    identity,
    segment,
    transport,
)
from wirepaint.runners.testbed import faults
from wirepaint.runners.testbed.cells import Cells

if TYPE_CHECKING:
    from wirepaint import pages
    from wirepaint.evaluation import ResolvedRun
    from wirepaint.evaluation.congestion import Congestion as Asked

FOREVER_NS = 24 * 3600 * 10**9
"""Flows beside a visit go on until it has ended."""
_NAME_MAX = 15
"""TCP_CA_NAME_MAX less its terminator: the longest name of a congestion control."""


def run_once(
    run: ResolvedRun,
    folder: Path,
    *,
    session: Cells,
    calibration: dict[str, Any] | None,
    planted: Sequence[faults.Fault] = (),
) -> Outcome:
    """Carries out one run and leaves its trace in ``folder``.

    ``calibration`` is the measurement of the run's network (see ``calibrate``), ``planted`` are faults to
    cause (see ``faults``). Raises ``RunFailed`` with the cause when there is no result: a crash or a part
    that failed; ``PageFailed`` if the page is the cause, ``PageTimeout`` if the time was up.
    """
    from wirepaint import pages

    page = None
    if run.page is not None:
        with refusals.reading(run.page):
            page = pages.prepare(run.page, pages.cache_dir())
    described = describe(run, page, folder.absolute(), calibration)
    result = session.call(
        "wirepaint.runners.testbed.page_run:carry_out",
        {"run": described.document(), "faults": list(planted)},
        timeout_s=run.visit_start_ns / 1e9 + run.timeout_s + 60,
        log=folder / "log.txt",
    )
    return Outcome(result["verdict"], result["reasons"], result["duration_ns"])


def describe(
    run: ResolvedRun, page: pages.PreparedPage | None, folder: Path, calibration: dict[str, Any] | None
) -> Run:
    """The run description of a page visit, or of flows alone (``page`` None).

    The cell adds its folder, its epoch and its namespaces.
    """
    run_id = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(5))

    def name(asked: Asked, number: int) -> str:
        suffix = f"_{run_id}" if number == 0 else f"{number}_{run_id}"
        return asked.name[: _NAME_MAX - len(suffix)] + suffix

    path, used = segment(run), controls(run, folder, name)
    of_page = _of_page(run, page) if page is not None else {}
    return Run(
        **of_page,
        id=run_id,
        seed=run.seed,
        trace_dir=folder,
        work_dir=folder,
        hosts=hosts(run, used),
        segments=[replace(path, interfaces=Interfaces(), changes_wait=has_changes(path))],
        congestion=used.instances,
        transport=transport(run),
        flows=flows(run, used),
        capture=captured(run),
        until_ns=round(run.timeout_s * 1e9) if page is None else FOREVER_NS,
        checks={
            "identity": identity(run),
            "own_initial_window": run.congestion.own_initial_window,
            "calibration": calibration,
            "endless": [flow.name for flow in run.flows if flow.endless or flow.background],
            "flows_with_own_window": [
                flow.name for flow in run.flows if flow.congestion and flow.congestion.own_initial_window
            ],
        }
        | (
            {"resources": page.resources, "answering": page.answering, "rehearsed": page.rehearsed}
            if page is not None
            else {}
        ),
    )


def _of_page(run: ResolvedRun, page: pages.PreparedPage) -> dict[str, Any]:
    """Server and visit of a page, as arguments of :class:`Run`."""
    from wirepaint.pages import servers

    addresses = servers.addresses(page, together=run.servers == "together")
    origins = [
        Origin(address=addresses[host], port=port, encrypted=scheme == "https", host=host)
        for scheme, host, port in page.origins
    ]
    navigation = Navigation(
        url=page.url, viewport=run.viewport, mobile=page.mobile, clock_ms=page.clock_ms, seed=page.seed
    )
    visit = Visit(
        user_agent=run.user_agent,
        name=page.name,
        start_ns=run.visit_start_ns,
        timeout_ns=round(run.timeout_s * 1e9),
        navigation=navigation,
    )
    return {"server": Server(origins=origins, responses=page.served), "visits": [visit]}
