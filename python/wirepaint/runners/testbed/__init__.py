"""The testbed: real Linux TCP in network namespaces behind an emulated link, with a real browser.

Start at ``run_once`` (one run, asked by the pool) and follow it into ``page_run`` (what happens
inside the cell). ``cells`` explains where processes live and why nothing is left behind,
``namespaces`` builds the path, ``browser`` loads and measures the page, ``validity`` decides
whether a run counts.
"""

from __future__ import annotations

import contextlib
import secrets
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepaint.results.outcome import Outcome
from wirepaint.runners import refusals
from wirepaint.runners.description import identity, network
from wirepaint.runners.testbed import faults
from wirepaint.runners.testbed.cells import Cells

if TYPE_CHECKING:
    from wirepaint import pages
    from wirepaint.evaluation import ResolvedRun

_NAME_MAX = 15
"""TCP_CA_NAME_MAX less its terminator: the longest name of a congestion control."""


@contextlib.contextmanager
def session() -> Iterator[Cells]:
    """The launcher of cells, which all runs of a command share."""
    with Cells() as cells:
        yield cells


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
    asked = _ask(run, page, folder) | {"calibration": calibration, "faults": list(planted)}
    result = session.call(
        "wirepaint.runners.testbed.page_run:carry_out",
        asked,
        timeout_s=run.timeout_s + 60,
        log=folder / "log.txt",
    )
    return Outcome(result["verdict"], result["reasons"], result["duration_ns"])


def _ask(run: ResolvedRun, page: pages.PreparedPage, folder: Path) -> dict[str, Any]:
    from wirepaint.pages.servers import addresses

    run_id = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(5))
    hosts = addresses(page, together=run.servers == "together")
    own = run.congestion.own
    name = f"{run.congestion.name[: _NAME_MAX - 1 - len(run_id)]}_{run_id}" if own else run.congestion.name
    return {
        "run": {
            "format": 1,
            "id": run_id,
            "seed": run.seed,
            "network": network(run),
            "server": {
                "origins": [
                    {"address": hosts[host], "port": port, "encrypted": scheme == "https", "host": host}
                    for scheme, host, port in page.origins
                ],
                "http": run.http,
                "tls": run.tls,
                "congestion": name,
                "initial_window": run.initial_window,
                "responses": page.served,
            },
            "congestion": [
                {
                    "algorithm": run.congestion.algorithm(folder),
                    "name": name,
                    "parameters": run.congestion.parameters,
                }
            ]
            if own
            else [],
        },
        "own_initial_window": run.congestion.own_initial_window,
        "folder": str(folder.absolute()),
        "sysctls": run.sysctls,
        "resources": page.resources,
        "answering": page.answering,
        "rehearsed": page.rehearsed,
        "visit": {
            "url": page.url,
            "http": run.http,
            "hosts": hosts,
            "timeout_s": run.timeout_s,
            "viewport": list(run.viewport),
            "mobile": page.mobile,
            "clock_ms": page.clock_ms,
            "seed": page.seed,
        },
        "identity": identity(run),
    }
