"""Rehearsals: find a page's requests, their causes, and the simulator's error on the page.

``rehearse`` loads a page several times and writes its findings into the page's folder; ``ensure`` does so
for pages that need it, in the cache. Start at ``rehearse``. ``stage`` loads a page, ``cast`` chooses the
answers, ``takes`` holds the observations, ``causes`` and ``fitting`` find the causes,
``prediction`` runs the simulator.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from wirepaint.errors import MachineLacks, PageFailed, UsageError
from wirepaint.ordinary import Say
from wirepaint.pages import cache, model, secure, show
from wirepaint.pages.model import INDEX
from wirepaint.rehearsal import speed
from wirepaint.rehearsal.rehearse import MAKER, STILL_SERVE, copy, rehearse, rehearse_versions
from wirepaint.rehearsal.words import begun, called, in_words

__all__ = ["current_browser", "ensure", "in_words", "is_current", "known", "rehearse"]

WATCHED_S = 0.5
"""So long is the machine watched before a page is rehearsed anew because others disturbed its rehearsal."""
Wanted = tuple[Path, tuple[int, int]]
"""A page's folder and the view port of its visits."""


def ensure(wanted: Sequence[Wanted], say: Say, *, begun_with: Collection[str] = ()) -> list[Path]:
    """A folder for each page, rehearsed in this machine's browser; several at once if there are cores.

    ``begun_with`` has the SHA-256 of the pages that an evaluation began with. The evaluation keeps them, even
    if the machine has become faster or slower. Without Chromium the pages stay as they are, with the
    causes from an earlier rehearsal, else the recorded ones.
    """
    try:
        browser = current_browser()
    except MachineLacks as lack:
        pages = [model.load(folder) for folder, _ in wanted]
        unknown = [page.name for page in pages if page.rehearsal is None]
        if unknown:
            say(f"{', '.join(unknown)}: not rehearsed, since {lack.what}; the recorded causes serve")
        return [folder for folder, _ in wanted]
    targets = [_target(folder, viewport, browser, begun_with) for folder, viewport in wanted]
    missing = {
        target: of for target, of in zip(targets, wanted, strict=True) if not (target / INDEX).is_file()
    }
    parts = _together(missing)
    workers = min(len(parts), (os.cpu_count() or 1) // 2)
    if workers > 1:
        with ProcessPoolExecutor(workers, initializer=_mortal) as pool:
            for lines in pool.map(_make_quietly, parts):
                for line in lines:
                    say(line)
    else:
        for part in parts:
            _make_all(part, say)
    # A damaged page stays as it is: its runs report the fault.
    return [
        target if (target / INDEX).is_file() else folder
        for target, (folder, _) in zip(targets, wanted, strict=True)
    ]


def known(folder: Path) -> Path:
    """The page's folder, or its rehearsed copy in the cache if there is one; loads nothing."""
    page = model.load(folder)
    if page.rehearsal is not None:
        return folder
    try:
        target = _target(folder, page.usual_viewport, current_browser())
    except MachineLacks:
        return folder
    return target if (target / INDEX).is_file() else folder


@functools.cache
def current_browser() -> str:
    """The browser that rehearses; raises ``MachineLacks`` without one."""
    from wirepaint.runners.testbed.browser.chromium import program

    return program.version()


def is_current(page: model.Page, browser: str, viewport: tuple[int, int]) -> bool:
    """True if the page's rehearsal serves: of this release of the browser, at this speed of the CPU."""
    found = page.rehearsal
    return (
        found is not None
        and found.maker in STILL_SERVE
        and _release(found.browser) == _release(browser)
        and tuple(found.viewport) == viewport
        and speed.is_alike(found.processor_ms)
    )


def _release(browser: str) -> str:
    """A browser without the last part of its version: patches of a release mend faults."""
    return browser.rpartition(".")[0] or browser


def _target(folder: Path, viewport: tuple[int, int], browser: str, begun_with: Collection[str] = ()) -> Path:
    """The page's own folder if it is rehearsed, else one in the cache, which may not exist yet.

    One in the cache whose rehearsal others disturbed serves only while the machine is busy.
    """
    digest = hashlib.sha256(model.read_index(folder))
    digest.update(f"\0{_release(browser)}\0{MAKER}\0{viewport}".encode())
    rehearsed, name = cache.cache_dir().parent / "rehearsed", digest.hexdigest()[:32]
    there = [folder, *(place for place in sorted(rehearsed.glob(f"{name}-*")) if (place / INDEX).is_file())]
    for place in there:
        if begun_with and hashlib.sha256(model.read_index(place)).hexdigest() in begun_with:
            return place
    current = [place for place in there if is_current(model.load(place), browser, viewport)]
    calm = [place for place in current if show.disturbance(model.load(place)) is None]
    if calm or (current and (current[0] == folder or not _is_calm())):
        return (calm or current)[0]
    target = rehearsed / f"{name}-{speed.processor_ms():g}"
    return target.with_name(f"{target.name}-{len(there)}") if target in there else target


@functools.cache
def _is_calm() -> bool:
    """Whether other programs leave the machine alone now, so that a rehearsal is worth the time."""
    from wirepaint.runners.testbed import host

    witness = host.Witness({})
    time.sleep(WATCHED_S)
    counters = witness.stop()
    return not show.is_busy((counters.foreign + counters.steal) / counters.total)


_Job = tuple[Path, Wanted]
"""A place in the cache, and the page to rehearse for it."""


def _together(missing: dict[Path, Wanted]) -> list[list[_Job]]:
    """The jobs, those of one page together: its version by plain http first, whose takes serve the other."""
    versions = {(secure.place(folder), viewport): (folder, viewport) for folder, viewport in missing.values()}
    parts: dict[Wanted, list[_Job]] = {}
    for target, of in sorted(missing.items(), key=lambda job: job[1] in versions):
        parts.setdefault(versions.get(of, of), []).append((target, of))
    return list(parts.values())


def _make_all(part: Sequence[_Job], say: Say) -> None:
    """Rehearses versions of one page into their places in the cache."""
    first = model.load(part[0][1][0])
    say(begun(first))
    try:
        last = _made(part, say)
    except (UsageError, PageFailed) as error:
        if len(part) == 1:
            say(f"{called(first)}: not rehearsed: {error}")
            return
        for one in part:  # perhaps only one of them is at fault
            _make_all([one], say)
    else:
        say(in_words(last))


def _made(part: Sequence[_Job], say: Say) -> model.Page:
    """The last version, once all are in their places."""
    scratch = [target.with_name(f".{target.name}.{os.getpid()}") for target, _ in part]
    try:
        for made, (_, (folder, _)) in zip(scratch, part, strict=True):
            copy(folder, made)
        pages = rehearse_versions(scratch, say, part[0][1][1])
        for made, (target, _) in zip(scratch, part, strict=True):
            cache.hand_over(made)
            shutil.rmtree(target, ignore_errors=True)
            made.rename(target)
    finally:
        for made in scratch:
            shutil.rmtree(made, ignore_errors=True)
    return pages[-1]


def _make_quietly(part: Sequence[_Job]) -> list[str]:
    lines: list[str] = []
    _make_all(part, lines.append)
    return lines


def _mortal() -> None:
    from wirepaint import linux

    linux.die_with_parent()
