"""One run again, from the ``run.json`` in its folder: the same document, the same back end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
from pydantic import RootModel

from wirepaint import files
from wirepaint.dataplane import simulate
from wirepaint.dataplane.description import FORMAT, Run, Squid
from wirepaint.errors import NotTrusted, PageTimeout, UsageError
from wirepaint.reading import show, validate
from wirepaint.results import trace

GRACE_S = 60
"""Time beyond the page's timeout in which a cell must end."""
LARGEST = 100 * 2**20
"""Bytes of a run description."""


@dataclass(frozen=True)
class Repeated:
    """How a run ended that was carried out again."""

    backend: str
    verdict: str
    """Of the testbed's checks; of a simulated run valid, or invalid if the simulator has a bug."""
    load_ms: float | None
    """Page load time, of several visits the median; None where no page loaded."""
    before_ms: float | None
    """That of the run whose description it is, where its trace lies beside it."""
    reasons: list[Mapping[str, str]] = field(default_factory=list)


def repeat(file: Path, folder: Path, *, trust: bool) -> Repeated:
    """Carries the run of ``file`` out again, with its trace in ``folder``, which must be new or empty.

    A testbed run gets new namespaces and another epoch. Raises ``UsageError`` for a folder with files and for
    a file that is no run description, ``NotTrusted`` if it names a C file and ``trust`` is false,
    ``MachineLacks`` for a testbed run without root, ``RunFailed`` as the back end does.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError("--output", str(folder), "a new or an empty folder: no trace is overwritten")
    described = _read(file)
    instances = list(described.congestion)
    for place, one in enumerate(instances):
        if "/" not in one.algorithm:
            continue
        if not trust:
            raise NotTrusted(f"{file}: congestion", one.algorithm, "--trust, to compile and run it")
        # A finished run's folder has another name than the one it ran in.
        beside = file.absolute().parent / Path(one.algorithm).name
        if beside.exists():
            instances[place] = replace(one, algorithm=str(beside))
    folder.mkdir(parents=True, exist_ok=True)
    here = folder.absolute()
    run = replace(described, congestion=instances, trace_dir=here, work_dir=here)
    on_testbed = any(v.navigation for v in run.visits) or any(s.interfaces for s in run.segments)
    verdict, reasons = _on_testbed(run, file) if on_testbed else _simulated(run)
    backend = "testbed" if on_testbed else "simulator"
    return Repeated(backend, verdict, _load_ms(folder), _load_ms(file.parent), reasons)


def _read(file: Path) -> Run:
    accepted = "a run description (wirepaint schema run)"
    try:
        data = json.loads(files.text(file, LARGEST, accepted))
    except (ValueError, RecursionError):
        raise UsageError(str(file), "no JSON", accepted) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = show(data.get("format")) if isinstance(data, dict) else "no object"
        raise UsageError(f"{file}: format", found, f"{FORMAT}, of a run.json of this version")
    return validate(RootModel[Run], data, str(file)).root


def _on_testbed(run: Run, file: Path) -> tuple[str, list[Mapping[str, str]]]:
    from wirepaint.runners.testbed import capture
    from wirepaint.runners.testbed.cells import Cells

    if run.capture:
        capture.program()
    if run.checks is None or (run.visits and not run.sites):
        raise UsageError(str(file), "no sites or no checks", "the run.json of a testbed run")
    limit_ns = sum(visit.start_ns + visit.timeout_ns for visit in run.visits) or run.until_ns
    # First visits fill caches.
    warm_proxy = any(isinstance(proxy, Squid) and proxy.warm for proxy in run.proxies)
    limit_ns *= 1 + warm_proxy + any(visit.cache == "warm" for visit in run.visits)
    with Cells() as cells:
        ended = cells.call(
            "wirepaint.runners.testbed.page_run:carry_out",
            {"run": run.document(), "faults": []},
            timeout_s=limit_ns / 1e9 + GRACE_S,
            log=run.trace_dir / "log.txt",
        )
    return ended["verdict"], ended["reasons"]


def _simulated(run: Run) -> tuple[str, list[Mapping[str, str]]]:
    said = simulate.one(run)
    if any(visit["load_event"] is None or visit["loaded"] < visit["objects"] for visit in said["visits"]):
        raise PageTimeout("the page did not load within its time")
    return "invalid" if said["faults"] else "valid", said["faults"]


def _load_ms(folder: Path) -> float | None:
    if not (folder / "page.parquet").exists():
        return None
    loads = trace.read_table(folder, "page").select(pl.col("load_event") - pl.col("navigation_start"))
    middle = loads.to_series().median()
    return middle / 1e6 if isinstance(middle, float) else None
