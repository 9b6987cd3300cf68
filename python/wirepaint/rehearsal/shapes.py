"""Makes shapes: pages without bodies that load as in the rehearsals with bodies."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from wirepaint import ordinary, rehearsal
from wirepaint.errors import RunFailed, UsageError
from wirepaint.ordinary import Say
from wirepaint.pages import cache, model
from wirepaint.pages.import_har import check_target, replacing
from wirepaint.pages.model import INDEX, Page
from wirepaint.pages.prepare import prepare
from wirepaint.pages.shape import shaped


def make(folder: Path, out: Path, say: Say, name: str | None = None) -> Page:
    """Writes the page in ``folder`` to ``out`` as a shape; rehearses it first if necessary.

    Raises ``MachineLacks`` without Chromium, :class:`UsageError` for a page without bodies, and
    ``RunFailed`` if the bodies do not replay, so that a shape has no rehearsal to follow.
    """
    model.checked(name, 1)
    check_target(out, folder)
    viewport = _with_bodies(folder).usual_viewport
    rehearsal.current_browser()
    (found,) = rehearsal.ensure([(folder, viewport)], say)
    page = model.load(found)
    verdict = page.rehearsal
    if verdict is None or verdict.verdict in ("shape", "does not"):
        why = verdict.reason if verdict else "it could not be rehearsed"
        raise RunFailed(
            f"{page.name}: its bodies do not replay ({why}), so no rehearsal says what a shape of it does"
        )
    prepared = prepare(found, cache.cache_dir())

    def work(*_: object) -> str:
        return shaped(page, prepared, viewport).model_dump_json()

    with ordinary.done(work, str(found)) as (_, index):
        made = model.parsed(index.encode(), found / INDEX)
    if name:
        made = made.model_copy(update={"name": name})
    with replacing(out) as scratch:
        model.save_index(made, scratch)
    return model.load(out)


def make_imported(write: Callable[[Path, bool], Page], out: Path, say: Say) -> Page:
    """A shape of a page that ``write`` imports into a folder with (True) or without bodies.

    If bodies are missing or do not replay, the recorded sizes and causes are used.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "page"
        page = write(folder, True)
        if any(resource.body for resource in page.resources):
            try:
                return make(folder, out, say)
            except RunFailed as failure:
                say(f"{failure}; recorded causes serve")
    return write(out, False)


def _with_bodies(folder: Path) -> Page:
    page = model.load(folder)
    if not any(resource.body for resource in page.resources):
        raise UsageError(
            str(folder), "a page without bodies", "a page with bodies; this one is a shape already"
        )
    return page
