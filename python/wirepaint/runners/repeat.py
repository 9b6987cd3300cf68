"""One run again, from the ``run.json`` in its folder: the same document, the same back end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirepaint import dataplane
from wirepaint.errors import NotTrusted, RunFailed, UsageError
from wirepaint.results import trace

GRACE_S = 60
"""Time beyond the page's timeout in which a cell must end."""


@dataclass(frozen=True)
class Repeated:
    """How a run ended that was carried out again."""

    backend: str
    verdict: str
    """Of the testbed's checks; of a simulated run valid, or invalid if the simulator has a bug."""
    load_ms: float | None
    """Page load time; None for a run without a page, or one that did not load."""
    before_ms: float | None
    """That of the run whose description it is, where its trace lies beside it."""
    reasons: list[Mapping[str, str]] = field(default_factory=list)


def repeat(file: Path, folder: Path, *, trust: bool) -> Repeated:
    """Carries the run of ``file`` out again, with its trace in ``folder``.

    A testbed run gets new namespaces and another epoch. Raises ``UsageError`` for a file that is no run
    description, ``NotTrusted`` if it names a C file and ``trust`` is false, ``MachineLacks`` for a testbed
    run without root, ``RunFailed`` as the back end does.
    """
    run = _read(file)
    folder.mkdir(parents=True, exist_ok=True)
    own = [one for one in run["congestion"] if "/" in one["algorithm"]]
    if own and not trust:
        raise NotTrusted(f"{file}: congestion", own[0]["algorithm"], "--trust, to compile and run it")
    for one in own:
        # A finished run's folder has another name than the one it ran in.
        beside = file.absolute().parent / Path(one["algorithm"]).name
        one["algorithm"] = str(beside) if beside.exists() else one["algorithm"]
    run |= {"trace_dir": str(folder.absolute()), "work_dir": str(folder.absolute())}
    on_testbed = any("browser" in visit for visit in run["visits"])
    verdict, reasons = _on_testbed(run, folder) if on_testbed else _simulated(run, folder)
    backend = "testbed" if on_testbed else "simulator"
    return Repeated(backend, verdict, _load_ms(folder), _load_ms(file.parent), reasons)


def _read(file: Path) -> dict[str, Any]:
    accepted = "a run description (wirepaint schema run)"
    try:
        run = json.loads(file.read_text())
    except OSError as error:
        raise UsageError(str(file), error.strerror or "nothing", accepted) from None
    except ValueError:
        raise UsageError(str(file), "no JSON", accepted) from None
    if not isinstance(run, dict) or run.get("format") != 2:
        found = run.get("format") if isinstance(run, dict) else run
        raise UsageError(f"{file}: format", repr(found), "2, of a run.json of this version")
    return run | {key: run.get(key, []) for key in ("congestion", "visits")}


def _on_testbed(run: dict[str, Any], folder: Path) -> tuple[str, list[Mapping[str, str]]]:
    from wirepaint.runners.testbed.cells import Cells

    with Cells() as cells:
        ended = cells.call(
            "wirepaint.runners.testbed.page_run:carry_out",
            {"run": run, "faults": []},
            timeout_s=run["visits"][0]["timeout_ns"] / 1e9 + GRACE_S,
            log=folder / "log.txt",
        )
    return ended["verdict"], ended["reasons"]


def _simulated(run: dict[str, Any], folder: Path) -> tuple[str, list[Mapping[str, str]]]:
    file = folder / "run.json"
    file.write_text(json.dumps(run))
    said = dataplane.call("simulate", str(file))
    if said["unfinished"] and run["visits"]:
        raise RunFailed("the page did not load within its time")
    return "invalid" if said["faults"] else "valid", said["faults"]


def _load_ms(folder: Path) -> float | None:
    if not (folder / "page.parquet").exists():
        return None
    row = trace.read_table(folder, "page").row(0, named=True)
    return None if row["load_event"] is None else (row["load_event"] - row["navigation_start"]) / 1e6
