"""Which runs are worth a repeat, and which pages cannot count.

A repeat is worth it only if the machine may be the cause: it was busy, or a part of the run crashed.
A fault of the page would occur again, so the other visits of that page are skipped:

```
no visit yet ──valid or suspect─────────────────────────► counts: never skipped again
     ├────────the page's fault──────────────────────────► cannot count in this scenario
     ├────────all attempts failed───────────────────────► cannot count in this scenario
     └────────in doubt, and a second visit too──────────► cannot count in this scenario
the page's fault in SCENARIOS scenarios, counts in none ► cannot count in the others either
```
In doubt: the page did not load in time, or it was at fault while the machine was busy.
A crash or a timeout may come from the congestion control or the network, so it does not count against the
page in other scenarios.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wirepaint.errors import NetworkFailed, PageFailed, PageTimeout, RunFailed, WorkerKilled
from wirepaint.results.outcome import Outcome

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun

OF_PAGE = frozenset({"objects", "status", "bytes", "server", "requests"})
"""Checks that find faults of the page: it asks for, or gets, something else than was recorded."""
STAYS = frozenset({"calibration"})
"""Disturbances that last as long as the command: a network is measured once."""
DOUBTS = 2
"""After N visits in doubt, and none that counts, a page cannot count in the scenario."""
SCENARIOS = 2
"""A page at fault in N scenarios that counts in none is skipped in the others too."""
HOPELESS = 3
"""After N runs in a row that fail by no fault of their pages, the command gives up. The runs must be of N
pages, or of all pages; a page that loaded before counts once per run."""


def worth_a_repeat(end: Outcome | RunFailed) -> bool:
    """True when the run may end otherwise the next time."""
    if isinstance(end, RunFailed):
        return not isinstance(end, PageFailed | PageTimeout | NetworkFailed | WorkerKilled)
    disturbances = {reason["check"] for reason in end.reasons if reason["severity"] == "suspect"}
    return (
        bool(disturbances) and not disturbances & STAYS and (end.verdict == "suspect" or _of_page(end) != [])
    )


def in_words(reasons: Iterable[Mapping[str, Any]]) -> str:
    """Reasons against a run on one line: for each check the first, and the number of the others."""
    by_check: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for reason in reasons:
        if reason["severity"] != "note":
            by_check[reason["check"]].append(reason)
    return "; ".join(
        f"{check}: {found[0]['found']} (expected {found[0]['expected']})"
        + (f" and {len(found) - 1} more" if len(found) > 1 else "")
        for check, found in by_check.items()
    )


@dataclass
class _Cell:
    """What is known about a page in a scenario."""

    counts: bool = False
    doubts: int = 0
    why: str | None = None
    of_page: bool = False

    @property
    def bad(self) -> bool:
        return self.why is not None and not self.counts


class BadPages:
    """What the visits so far say about ``pages``; ``known`` gives the reason for each that cannot count."""

    def __init__(self, pages: Iterable[str], known: Mapping[str, str]) -> None:
        self._known = known
        self._blameless = set(pages) - set(known)
        self._cells: dict[tuple[str, str, str], _Cell] = {}
        self._pages: dict[tuple[str, ...], list[_Cell]] = defaultdict(list)
        self._failed: set[str] = set()
        self._failed_pages: set[str] = set()

    @property
    def hopeless(self) -> bool:
        """True when so much fails that the cause is not in the pages."""
        of_many = len(self._failed_pages) >= HOPELESS or self._blameless <= self._failed_pages
        return len(self._failed) >= HOPELESS and of_many

    @property
    def known(self) -> bool:
        """False while all pages may count everywhere."""
        return bool(self._known) or any(cell.bad for cell in self._cells.values())

    def learn(self, run: ResolvedRun, end: Outcome | RunFailed, *, repeated: bool = False) -> str | None:
        """Records how a visit ended. Returns the reason if its page now cannot count in the scenario.

        ``repeated``: the visit can be tried again.
        """
        cell = self._cell(run)
        was_bad = cell.bad
        if isinstance(end, Outcome):
            self._failed.clear()
            self._failed_pages.clear()
            faults = _of_page(end)
            if not faults:
                cell.counts |= end.verdict != "invalid"
            else:
                in_doubt = worth_a_repeat(end) and (repeated or run.warmup)
                cell.doubts += in_doubt
                if not in_doubt or cell.doubts >= DOUBTS:
                    self._blame(run, cell, in_words(faults))
        elif isinstance(end, PageTimeout):
            cell.doubts += 1
            if cell.doubts >= DOUBTS:
                cell.why = cell.why or str(end)
        elif isinstance(end, PageFailed):
            self._blame(run, cell, str(end))
        else:
            cell.why = cell.why or str(end)
            self._failed.add(run.key)
            self._failed_pages.add(run.key if cell.counts else run.page_name)
        return cell.why if cell.bad and not was_bad else None

    def why_skipped(self, run: ResolvedRun) -> str | None:
        """Why a run is useless; None if it is to be carried out."""
        if run.page_name in self._known:
            return self._known[run.page_name]
        cell = self._cell(run)
        if cell.counts or cell.bad:
            return None if cell.counts else cell.why
        elsewhere = self._pages[_page(run)]
        against = [other.why for other in elsewhere if other.bad and other.of_page]
        if len(against) >= SCENARIOS and not any(other.counts for other in elsewhere):
            return against[0]
        return None

    def undecided(self, run: ResolvedRun) -> bool:
        """True while later visits of this page in this scenario may still be skipped."""
        return not self._cell(run).counts and self.why_skipped(run) is None

    def pages(self, runs: Iterable[ResolvedRun]) -> dict[str, str]:
        """The pages that cannot count in some scenario, with the reason and the scenarios unless all."""
        scenarios: dict[str, dict[str, str | None]] = defaultdict(dict)
        for run in runs:
            if run.scenario not in (found := scenarios[run.page_name]):
                found[run.scenario] = self.why_skipped(run)
        said = {}
        for page, found in scenarios.items():
            bad = [scenario for scenario, why in found.items() if why]
            if bad:
                few = f"in {', '.join(bad)}" if len(bad) < 3 else f"in {len(bad)} of {len(found)} scenarios"
                said[page] = f"{found[bad[0]]}" + ("" if len(bad) == len(found) else f" ({few})")
        return said

    def _blame(self, run: ResolvedRun, cell: _Cell, why: str) -> None:
        cell.why, cell.of_page = cell.why or why, True
        self._blameless.discard(run.page_name)

    def _cell(self, run: ResolvedRun) -> _Cell:
        key = run.scenario, run.user_agent, run.page_name
        if key not in self._cells:
            self._cells[key] = _Cell()
            self._pages[_page(run)].append(self._cells[key])
        return self._cells[key]


def _page(run: ResolvedRun) -> tuple[str, ...]:
    """What a page asks for depends on these, apart from network and congestion control."""
    return run.backend, run.user_agent, run.http, run.page_name


def _of_page(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        reason for reason in outcome.reasons if reason["severity"] == "invalid" and reason["check"] in OF_PAGE
    ]
