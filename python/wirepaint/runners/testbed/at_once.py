"""How many browsers this machine bears at once.

Users together have a browser each on this one machine. Too many slow each other, which the users of a real
link would not: such a run is refused before it begins.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from wirepaint import pages
from wirepaint.errors import MachineLacks, RunFailed
from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.results import trace
from wirepaint.results.durable import write
from wirepaint.runners.testbed import one_run
from wirepaint.runners.testbed.cells import Cells

LOAD_S = 3.0
"""Time of a page load, for an estimate of how many overlap."""
TRIED = (1, 2, 3, 4, 6, 8, 12, 16)
SLOWER = 0.10
"""Of the page load time: more is too many."""
_PER_CORE = 2
"""Browsers for each core where nothing was measured."""
_DISTURBED = ("foreign_cpu", "steal")
"""Checks by which a measurement is none."""
_VISITS = 3
_APART_MS = 1_000
"""On average between two users: a page load takes longer, so loads overlap."""
_EVALUATION = """
title = "Browsers at once"
backend = "testbed"
warmup = false
timeout = "30 s"
[scenarios]
network = [{{ title = "far", down = {{ delay = "50 ms" }}, up = {{ delay = "50 ms" }} }}]
[[user_agents]]
name = "user"
pages = ["kit"]
visits = {visits}
together = true
count = {count}
spread = "{spread} ms"
"""


@dataclass(frozen=True)
class Step:
    """What so many browsers took: page load time in ms, and how much longer than one alone as a share.

    ``disturbed`` says by what the machine was disturbed meanwhile; empty if by nothing.
    """

    browsers: int
    load_ms: float
    slower: float
    disturbed: str

    @property
    def is_borne(self) -> bool:
        return self.slower <= SLOWER


def measure(say: Callable[[Step], None]) -> int:
    """Measures how many browsers load a page as fast as one alone does, where users begin one a second.

    The page has round trips of 100 ms. The number is kept.

    ``say`` is told each step; this takes a minute. Raises RunFailed if others disturbed the machine,
    MachineLacks or UsageError as a testbed run does.
    """
    borne, alone = 0, 0.0
    with Cells() as cells:
        for count in TRIED:
            try:
                load, disturbed = _load_ms(count, cells)
            except RunFailed:
                break
            alone = alone or load
            step = Step(count, load, load / alone - 1, disturbed)
            say(step)
            if disturbed:
                raise RunFailed(f"others disturbed the machine ({disturbed}): measure again when it is calm")
            if not step.is_borne:
                break
            borne = count
    if borne:
        write(_file(), json.dumps({"cores": os.cpu_count(), "browsers": borne}).encode())
    return borne


def limit() -> int:
    """Browsers that a run may have: as many as were measured on this machine, else two for each core."""
    try:
        known = json.loads(_file().read_bytes())
        if known["cores"] == os.cpu_count():
            return int(known["browsers"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return _PER_CORE * (os.cpu_count() or 1)


def check(runs: Iterable[ResolvedRun]) -> None:
    """Raises MachineLacks if a testbed run has more browsers than this machine bears."""
    most = max((loading(run) for run in runs if run.backend == "testbed"), default=0)
    if most > (borne := limit()) and most > 1:
        raise MachineLacks(
            f"{most} browsers would load pages at once, and this machine bears {borne}",
            "Fewer users, light ones, more spread, or --backend simulator; "
            "`wirepaint doctor --browsers` measures how many.",
        )


def loading(run: ResolvedRun) -> int:
    """Browsers of a run that may load pages at the same time, if a load takes ``LOAD_S``."""
    begins = zip(run.begins_s(LOAD_S), run.visits, strict=True)
    of_browsers = [begin for begin, visit in begins if not run.users[visit.user].is_light]
    return max(
        (sum(0 <= begin - other < LOAD_S for other in of_browsers) for begin in of_browsers), default=0
    )


def _load_ms(count: int, cells: Cells) -> tuple[float, str]:
    """Median page load time of ``count`` users, and what disturbed the machine."""
    found: list[float] = []
    disturbed: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "browsers.toml"
        file.write_text(
            _EVALUATION.format(count=count, visits=_VISITS, spread=max(1, _APART_MS * (count - 1)))
        )
        for number, run in enumerate(plan(file).runs):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            outcome = one_run.run_once(run, folder, session=cells, calibration=None)
            disturbed += [reason["found"] for reason in outcome.reasons if reason["check"] in _DISTURBED]
            page = trace.read_table(folder, "page")
            found += [
                (end - begin) / 1e6
                for begin, end in page.select("navigation_start", "load_event").drop_nulls().iter_rows()
            ]
    return statistics.median(found), "; ".join(disturbed)


def _file() -> Path:
    return pages.cache_dir().parent / "browsers.json"
