"""One run on the testbed: its description, and the call of the cell that carries it out."""

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
    Site,
    Visit,
)
from wirepaint.results import provenance
from wirepaint.results.outcome import Outcome
from wirepaint.runners import refusals
from wirepaint.runners.description import (
    Visited,
    browser_of,
    captured,
    controls,
    flows,
    has_changes,
    identity,
    modelled,
    placed,
    transport,
    visit_of,
    visited,
)
from wirepaint.runners.graphs import load_graphs
from wirepaint.runners.testbed import faults, side_by_side, squid
from wirepaint.runners.testbed.cells import Cells

if TYPE_CHECKING:
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
    begin(run, folder, session=session, calibration=calibration, planted=planted)
    return end(session)


def begin(
    run: ResolvedRun,
    folder: Path,
    *,
    session: Cells,
    calibration: dict[str, Any] | None,
    planted: Sequence[faults.Fault] = (),
) -> None:
    """Begins a run as ``run_once`` does; ``end`` waits for it."""
    if asked := run.proxy.squid:
        squid.version(ends_tls=asked.tls == "terminate")
    described = describe(run, folder.absolute(), calibration)
    # First visits fill caches.
    rounds = 1 + run.proxy.is_warm + any(visit.cache == "warm" for visit in run.visits)
    session.begin(
        "wirepaint.runners.testbed.page_run:carry_out",
        {"run": described.document(), "faults": list(planted)},
        timeout_s=run.longest_s * rounds + 60,
        log=folder / "log.txt",
    )


def end(session: Cells) -> Outcome:
    """Waits for the run that was begun; raises as ``run_once``."""
    result = session.result()
    return Outcome(result["verdict"], result["reasons"], result["duration_ns"], provenance.host())


def describe(run: ResolvedRun, folder: Path, calibration: dict[str, Any] | None) -> Run:
    """The run description of page visits, or of flows alone; ``PageFailed`` for a page that cannot be read.

    The cell adds its folder, its epoch and its namespaces.
    """
    run_id = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(5))

    def name(asked: Asked, number: int) -> str:
        suffix = f"_{run_id}" if number == 0 else f"{number}_{run_id}"
        return asked.name[: _NAME_MAX - len(suffix)] + suffix

    used = controls(run, folder, name)
    place = placed(run, used)
    main, *others = place["segments"]
    place["segments"] = [
        replace(main, interfaces=Interfaces(), changes_wait=has_changes(main)),
        *(replace(one, changes_wait=has_changes(one)) for one in others),
    ]
    light_users = [user for user in run.users if user.is_light]
    graphs, of_light = load_graphs(run) if light_users else ({}, [])
    sites, visits, of_pages = _of_pages(run, of_light)
    return Run(
        id=run_id,
        seed=run.seed,
        trace_dir=folder,
        work_dir=folder,
        **place,
        congestion=used.instances,
        transport=transport(run),
        sites=sites,
        pages=graphs,
        browsers=modelled(light_users),
        visits=visits,
        flows=flows(run, used),
        capture=captured(run),
        until_ns=FOREVER_NS if visits else round(run.timeout_s * 1e9),
        checks={
            "identity": identity(run),
            "own_initial_window": run.congestion.own_initial_window,
            "own_initial_window_behind": any(part.congestion.own_initial_window for part in run.proxy.parts),
            "calibration": calibration,
            "endless": [flow.name for flow in run.flows if flow.endless or flow.background],
            "flows_with_own_window": [
                flow.name for flow in run.flows if flow.congestion and flow.congestion.own_initial_window
            ],
            "pages": of_pages,
            "side_by_side": side_by_side.may(run),
        },
    )


def _of_pages(
    run: ResolvedRun, of_light: Sequence[Visited]
) -> tuple[dict[str, Site], list[Visit], dict[str, dict[str, Any]]]:
    """Sites and visits of a run, and what the checks of each site's visits compare with.

    ``of_light`` holds for each visit the graph of a light user's page; empty where there is none.
    """
    from wirepaint import pages
    from wirepaint.pages import servers

    pages_of_run, of_visits = visited(run)
    sites: dict[str, Site] = {}
    told: dict[str, Navigation] = {}
    checks: dict[str, dict[str, Any]] = {}
    first = 0
    for one in pages_of_run:
        with refusals.reading(one.page):
            page = pages.prepare(one.page, pages.cache_dir())
        together = run.servers == "together"
        addresses = servers.addresses(page, together=together, first=first)
        first += 1 if together else len(servers.servers(page))
        origins = [
            Origin(address=addresses[host], port=port, encrypted=scheme == "https", host=host)
            for scheme, host, port in page.origins
        ]
        sites[one.name] = Site(origins=origins, responses=page.served)
        told[one.name] = Navigation(
            url=page.url, viewport=one.viewport, mobile=page.mobile, clock_ms=page.clock_ms, seed=page.seed
        )
        checks[one.name] = {
            "resources": page.resources,
            "answering": page.answering,
            "rehearsed": page.rehearsed,
        }
    visits: list[Visit] = []
    for number, (asked, of) in enumerate(zip(run.visits, of_visits, strict=True)):
        user = run.users[asked.user]
        more: dict[str, Any] = {"navigation": told[of.name]}
        if user.is_light:
            more = {"page": of_light[number].name, "browser": browser_of(user)}
        visits.append(visit_of(run, asked, site=of.name, **more))
    return sites, visits, checks
