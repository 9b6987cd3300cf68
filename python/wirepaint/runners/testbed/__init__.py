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
    Congestion,
    Interfaces,
    Navigation,
    Origin,
    Run,
    Server,
    Visit,
)
from wirepaint.evaluation.congestion import NATIVE
from wirepaint.results.outcome import Outcome
from wirepaint.runners import refusals
from wirepaint.runners.description import CLIENT_CONGESTION, hosts, identity, segment, transport
from wirepaint.runners.testbed import faults
from wirepaint.runners.testbed.cells import Cells

if TYPE_CHECKING:
    from wirepaint import pages
    from wirepaint.evaluation import ResolvedRun

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

    with refusals.reading(run.page):
        page = pages.prepare(run.page, pages.cache_dir())
    described = describe(run, page, folder.absolute(), calibration)
    result = session.call(
        "wirepaint.runners.testbed.page_run:carry_out",
        {"run": described.document(), "faults": list(planted)},
        timeout_s=run.timeout_s + 60,
        log=folder / "log.txt",
    )
    return Outcome(result["verdict"], result["reasons"], result["duration_ns"])


def describe(
    run: ResolvedRun, page: pages.PreparedPage, folder: Path, calibration: dict[str, Any] | None
) -> Run:
    """The run description of a page visit; the cell adds its folder, its epoch and its namespaces."""
    from wirepaint.pages import servers

    run_id = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(5))
    addresses = servers.addresses(page, together=run.servers == "together")
    own = run.congestion.own
    name = f"{run.congestion.name[: _NAME_MAX - 1 - len(run_id)]}_{run_id}" if own else run.congestion.name
    algorithm, parameters = run.congestion.native(folder)
    native, of_client = NATIVE[CLIENT_CONGESTION]
    instances = {
        CLIENT_CONGESTION: Congestion(
            algorithm=native, name=CLIENT_CONGESTION, parameters=of_client, of_kernel=True
        ),
        name: Congestion(algorithm=algorithm, name=name, parameters=parameters, of_kernel=not own),
    }
    return Run(
        id=run_id,
        seed=run.seed,
        trace_dir=folder,
        work_dir=folder,
        hosts=hosts(run, client=CLIENT_CONGESTION, server=name),
        segments=[replace(segment(run), interfaces=Interfaces())],
        congestion=list(instances.values()),
        transport=transport(run),
        server=Server(
            origins=[
                Origin(address=addresses[host], port=port, encrypted=scheme == "https", host=host)
                for scheme, host, port in page.origins
            ],
            responses=page.served,
        ),
        visits=[
            Visit(
                user_agent=run.user_agent,
                name=page.name,
                timeout_ns=round(run.timeout_s * 1e9),
                navigation=Navigation(
                    url=page.url,
                    viewport=run.viewport,
                    mobile=page.mobile,
                    clock_ms=page.clock_ms,
                    seed=page.seed,
                ),
            )
        ],
        checks={
            "identity": identity(run),
            "own_initial_window": run.congestion.own_initial_window,
            "resources": page.resources,
            "answering": page.answering,
            "rehearsed": page.rehearsed,
            "calibration": calibration,
        },
    )
