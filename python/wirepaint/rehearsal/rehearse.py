"""Rehearses a page once after its import: loads it several times, each time with other delays.

:func:`rehearse` writes its findings into the page's ``page.json``: the requests, their causes,
the stand-ins, the simulator's error, and the verdict.
"""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from wirepaint import ordinary
from wirepaint.errors import RunFailed
from wirepaint.ordinary import Say
from wirepaint.pages import bodies, cache, model
from wirepaint.pages.import_folder import without_unasked
from wirepaint.pages.model import BODIES, INDEX, Page, Rehearsal, Resource, keeping
from wirepaint.pages.prepare import PreparedPage, prepare_as
from wirepaint.rehearsal import fitting, pools, speed, transfer, work
from wirepaint.rehearsal.cast import Cast
from wirepaint.rehearsal.stage import Stage
from wirepaint.rehearsal.takes import Take, observe
from wirepaint.rehearsal.words import begun, in_words

MAKER = "13"
"""Increase it when a rehearsal would find something else."""
STILL_SERVE = ("7", "8", "9", "10", "11", "12", MAKER)
"""Rehearsals that serve: pages with those of other makers are rehearsed again."""
DRAFTS = 4
"""Largest number of rehearsals until no request is new."""
FITTED, JUDGED = 4, 2
"""Rehearsals with delays: those that fit the causes, beside the last draft, and those that judge the
simulator. On 24 pages, six explained the judging ones no better than four did (docs/decisions/0010)."""
BUDGET_S = 25.0
"""After this time, one that judges is enough."""
DELAY_MS = 250.0
DRAFT_QUIET_S = 2.0
"""Drafts last until the network has been silent for this long, so that they include late requests."""
DRAFT_SURE_S = 0.5
"""The same once all recorded requests have come."""
SILENT_S = 0.2
"""The same for loads that fit, once all late requests of the draft have come. Those that judge end with the
load event."""
TRUE = 0.08
"""The takes of a page of plain http serve its https version if the simulator's error on that is at most this
share of the page load time, or the error on the plain page. Else that version is rehearsed by itself. The
error of one page was 0.01 to 0.09 in nine rehearsals."""
_TIMES = 3
"""Measurements of the machine's speed after each load. The fastest counts: a browser that ends slows it."""
UNSTABLE_SHARE = 0.25
"""A page becomes a shape if only some rehearsals ask for at least this share of its bytes. None of fifty
recordings reached it."""


@dataclass
class _Found:
    resources: list[Resource]
    rehearsal: Rehearsal
    takes: Sequence[Take] = ()
    """The draft and the takes that fitted the page."""


def rehearse(folder: Path, say: Say, viewport: tuple[int, int] | None = None) -> Page:
    """Rehearses the page in ``folder`` and stores the findings there.

    ``viewport`` in CSS pixels; None for the page's own.
    If the recorded bodies do not replay, the page becomes a shape: its bodies are dropped, and the
    recorded sizes and causes are used. Raises ``MachineLacks`` without Chromium.
    """
    return rehearse_versions([folder], say, viewport)[0]


def rehearse_versions(
    folders: Sequence[Path], say: Say, viewport: tuple[int, int] | None = None
) -> list[Page]:
    """:func:`rehearse` for a page and its https version: the loads of the first save most of the second's."""
    pages = [model.load(folder) for folder in folders]
    work = partial(
        _rehearsed, pages, [folder.absolute() for folder in folders], viewport or pages[0].usual_viewport
    )
    with ordinary.done(work, str(folders[0]), say, fresh=True, browser=True) as (_, indexes):
        done = [
            model.parsed(index.encode(), folder / INDEX)
            for index, folder in zip(indexes, folders, strict=True)
        ]
    for page, folder in zip(done, folders, strict=True):
        model.save_index(page, folder)
        _drop_unused(page, folder)
    return done


def _rehearsed(
    pages: Sequence[Page], folders: Sequence[Path], viewport: tuple[int, int], scratch: Path, say: Say
) -> list[str]:
    """The indexes of the rehearsed versions, as JSON."""
    indexes: list[str] = []
    plain: transfer.Plain | None = None
    for page, folder in zip(pages, folders, strict=True):
        if indexes:
            say(begun(page))
        own = scratch / str(len(indexes))
        own.mkdir()
        done, plain = _version(page, folder, viewport, plain, own, say)
        indexes.append(done.model_dump_json())
        if len(indexes) < len(pages):
            say(in_words(done))
    return indexes


def _version(
    page: Page, folder: Path, viewport: tuple[int, int], plain: transfer.Plain | None, scratch: Path, say: Say
) -> tuple[Page, transfer.Plain | None]:
    """The page rehearsed, and what that tells of its https version."""
    began = time.monotonic()
    if any(resource.stand_in for resource in page.resources):
        page = _as_imported(page)
    found, why = _attempt(page, folder, scratch, say, viewport, plain)
    told = transfer.Plain(found.takes, found.resources, found.rehearsal.error) if found else None
    has_bodies = any(resource.body for resource in page.resources)
    if found is None and has_bodies:
        say(f"{page.name}: {why}; rehearsing it as a shape")
        page = _as_shape(page)
        found, again = _attempt(page, folder, scratch, say, viewport)
        if found is not None:
            found.rehearsal.verdict, found.rehearsal.reason = "shape", why
        else:
            why = f"{why}; as a shape: {again}"
    if found is None:
        rehearsal = Rehearsal(
            browser=_browser(),
            maker=MAKER,
            viewport=viewport,
            loads=0,
            seconds=0,
            verdict="does not",
            reason=why,
        )
        found = _Found(page.resources, rehearsal)
    found.rehearsal.seconds = round(time.monotonic() - began, 1)
    done = page.model_copy(update={"resources": found.resources, "rehearsal": found.rehearsal})
    return without_unasked(done), told


def _attempt(
    page: Page,
    folder: Path,
    scratch: Path,
    say: Say,
    viewport: tuple[int, int],
    plain: transfer.Plain | None = None,
) -> tuple[_Found | None, str]:
    """The findings of rehearsals of the page as it is; None and the reason if it does not replay."""
    prepared = _readable(prepare_as(page, folder, scratch / "prepared"), scratch)
    with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as place, _Remover() as remover:
        try:
            return _Rehearsals(page, prepared, Path(place), viewport, say, remover).carry_out(plain)
        except RunFailed as failure:
            return None, str(failure)


class _Remover:
    """Removes the files of a load while the next one starts its browser, which takes longer.

    By a process: the testbed's parts are started from a single thread.
    """

    def __init__(self) -> None:
        self._under_way: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Remover:
        return self

    def __call__(self, folder: Path) -> None:
        self._finish()
        self._under_way = subprocess.Popen(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL)

    def _finish(self) -> None:
        if self._under_way is not None:
            self._under_way.wait()

    def __exit__(self, *_: object) -> None:
        self._finish()


def _readable(prepared: PreparedPage, scratch: Path) -> PreparedPage:
    """The page with all bodies in ``scratch``: the replay server may not read the folder of the page."""
    responses = []
    for response in prepared.responses:
        body = response["body"]
        if body is not None and not Path(body).is_relative_to(scratch):
            (scratch / BODIES).mkdir(exist_ok=True)
            copied = scratch / BODIES / Path(body).name
            if not copied.exists():
                shutil.copyfile(body, copied)
            body = str(copied)
        responses.append(response | {"body": body})
    return replace(prepared, responses=responses)


class _Rehearsals:
    def __init__(
        self,
        page: Page,
        prepared: PreparedPage,
        scratch: Path,
        viewport: tuple[int, int],
        say: Say,
        remove: Callable[[Path], object],
    ) -> None:
        self._page, self._prepared, self._scratch, self._viewport = page, prepared, scratch, viewport
        self._say, self._remove = say, remove
        self._cast = Cast(page.model_copy(deep=True), prepared.responses)
        self._loads = 0
        self._others: list[float] = []
        self._speeds: list[float] = []

    def carry_out(self, plain: transfer.Plain | None = None) -> tuple[_Found | None, str]:
        """What the rehearsals tell of the page; None and the reason if it does not replay."""
        began = time.monotonic()
        quiet = self._drafts(plain)
        others = transfer.by_https(plain, self._cast.known, quiet) if plain else []
        judged: list[Take] = []
        if plain and plain.error is not None and others:
            judged = [self._judging(number) for number in range(FITTED, FITTED + JUDGED)]
            found, why = self._found(quiet, others[1:], judged, pooled=[quiet, *judged])
            error = found.rehearsal.error if found else None
            if error is not None and error <= max(TRUE, plain.error):
                return found, why
        takes = [self._late(number, quiet) for number in range(FITTED)]
        while len(judged) < JUDGED and (not judged or time.monotonic() - began <= BUDGET_S):
            judged.append(self._judging(FITTED + len(judged)))
        return self._found(quiet, takes, judged, pooled=[quiet, *takes, *judged])

    def _late(self, number: int, draft: Take) -> Take:
        """A take with the delays of this number, until its late requests have come."""
        late = frozenset(request.url for request in draft.requests if request.start > draft.load)
        return self._delayed(number, expected=late, sure_s=SILENT_S)

    def _judging(self, number: int) -> Take:
        """A take with the delays of this number until its load event."""
        return self._delayed(number, quiet_s=0.0)

    def _delayed(self, number: int, **until: Any) -> Take:
        drawn = f"{self._page.seed} {self._page.url}"
        take = self._load({n: delay(drawn, n, number) for n in range(len(self._cast.resources))}, **until)
        self._cast.learn(take)
        return take

    def _found(
        self, quiet: Take, takes: Sequence[Take], judged: Sequence[Take], pooled: Sequence[Take]
    ) -> tuple[_Found | None, str]:
        """What the takes tell: one without delays, those that fit, those that judge, and those that show the
        page's connections."""
        unstable, share = self._unstable([quiet, *takes])
        if share > UNSTABLE_SHARE:
            return None, f"{100 * share:.0f} % of the bytes are asked for in some loads and not in others"
        part = self._part()
        fitting.describe(part, quiet, takes)
        pools.describe(part, pooled)
        work.describe(part, quiet)
        fitting.fit(part, [quiet, *takes])
        missed = fitting.errors(part, judged)
        recorded = [r for r in part.resources if not r.stand_in and r.file is None]
        left_out = sum(r.rehearsed is None for r in recorded)
        rehearsal = Rehearsal(
            browser=_browser(),
            maker=MAKER,
            viewport=self._viewport,
            loads=self._loads,
            seconds=0,
            verdict="replays without" if left_out else "replays",
            reason=f"{left_out} recorded requests were asked for in no rehearsal" if left_out else "",
            left_out=left_out,
            error=middle_error(missed),
            judged=len(missed),
            others_cpu=round(statistics.median(self._others), 3),
            processor_ms=part.processor_ms,
            load_ms=round(quiet.load, 1),
            first_contentful_paint=part.paints.get("first"),
            largest_contentful_paint=part.paints.get("largest"),
            unstable=unstable[:20],
            unstable_share=round(share, 4),
        )
        return _Found(part.resources, rehearsal, [quiet, *takes]), ""

    def _drafts(self, plain: transfer.Plain | None) -> Take:
        """Loads the page without delays until no request is new; returns the last take."""
        expected = frozenset(resource.url for resource in self._page.resources if not resource.stand_in)
        sure_s = DRAFT_SURE_S
        if plain:
            expected, sure_s = transfer.asked(plain.takes[0]), SILENT_S
        for left in reversed(range(DRAFTS)):
            take = self._load({}, work.CATEGORIES, quiet_s=DRAFT_QUIET_S, expected=expected, sure_s=sure_s)
            if not self._cast.learn(take) or not left:
                return take
        raise AssertionError("a page has one draft at least")

    def _load(self, delays: dict[int, float], trace: tuple[str, ...] = (), **until: Any) -> Take:
        """One take; ``until`` says when it ends, as for ``Stage.load``."""
        self._loads += 1
        responses, answering = self._cast.answers(delays)
        stage = Stage(self._cast.origins, self._page.url, self._scratch, self._remove)
        load, records, others = stage.load(
            responses,
            clock_ms=self._prepared.clock_ms,
            seed=self._page.seed,
            viewport=self._viewport,
            mobile=self._page.mobile,
            trace=trace,
            **until,
        )
        self._others.append(others)
        self._speeds.append(speed.measured_ms(_TIMES))
        return observe(load, records, answering, self._cast.known, delays)

    def _unstable(self, takes: list[Take]) -> tuple[list[str], float]:
        """Addresses that only some takes asked for, and their share of the bytes.

        Requests after the load event do not count: the end of the rehearsal may cut them off, and they delay
        nothing.
        """
        early = [{n for n, request in take.first.items() if request.start < take.load} for take in takes]
        asked = [set(take.first) for take in takes]
        ever = set().union(*early)
        always = set.intersection(*asked) & ever
        resources = self._cast.resources
        size = lambda numbers: sum(resources[n].wire_bytes for n in numbers)  # noqa: E731
        changing = sorted(ever - always)
        return [resources[n].url for n in changing], size(changing) / max(1, size(ever))

    def _part(self) -> fitting.Part:
        return fitting.Part(
            self._prepared,
            self._cast.resources,
            self._cast.origins,
            self._viewport,
            processor_ms=min(self._speeds),
        )


def delay(seed: str, resource: int, load: int) -> float:
    """Delay of a resource in one of the loads, in ms; over all loads its delays cover the whole range."""
    loads = FITTED + JUDGED
    drawn = random.Random(f"{seed} {resource}")
    places = drawn.sample(range(loads), loads)
    within = [drawn.random() for _ in places]
    return round(DELAY_MS * (places[load] + within[load]) / loads, 3)


def middle_error(errors: list[float | None]) -> float | None:
    """The median (upper one for an even number); None if the simulator failed to load the page once."""
    known = sorted(abs(error) for error in errors if error is not None)
    return round(known[len(known) // 2], 4) if len(known) == len(errors) else None


def _as_imported(page: Page) -> Page:
    """The page without the findings of an earlier rehearsal."""
    kept = [
        resource.model_copy(update={"rehearsed": None, "patterns": []})
        for resource in page.resources
        if not resource.stand_in
    ]
    return page.model_copy(update={"resources": kept, "rehearsal": None})


def _as_shape(page: Page) -> Page:
    """The page without bodies: they are to be synthesised with the recorded sizes."""
    resources = [
        resource.model_copy(
            update={"body": None, "synthetic": resource.body is not None or resource.synthetic}
        )
        for resource in page.resources
        if resource.method in ("GET", "HEAD", "POST") and resource.file in (None, "named")
    ]
    return keeping(page, resources)


def _drop_unused(page: Page, folder: Path) -> None:
    used = {resource.body for resource in page.resources}
    for body in (folder / BODIES).glob("*"):
        if body.name not in used:
            body.unlink()


def _browser() -> str:
    from wirepaint.runners.testbed.browser.chromium import program

    return program.version()


def copy(folder: Path, target: Path) -> None:
    """Copies a page folder atomically."""
    cache.make_folder(target.parent)
    scratch = Path(tempfile.mkdtemp(prefix=".rehearsing.", dir=target.parent))
    try:
        bodies.copy(folder, scratch)
        scratch.chmod(0o755)
        cache.hand_over(scratch)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
