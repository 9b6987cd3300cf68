"""What a rehearsal says: that it begins, and what it found."""

from __future__ import annotations

from wirepaint.pages import secure, show
from wirepaint.pages.model import Page

_TWICE = ", since h2 asks by https, where a page may ask for other things"
"""Why the https version of a page of plain http is rehearsed by itself."""


def called(page: Page) -> str:
    """The page's name, and whether it is the https version of a page of plain http."""
    return f"{page.name} by https" if secure.NOTE in page.notes else page.name


def begun(page: Page) -> str:
    """That the rehearsal begins."""
    return f"{called(page)}: rehearsing{_TWICE if secure.NOTE in page.notes else ''}"


def in_words(page: Page) -> str:
    """The verdict in one line."""
    found = page.rehearsal
    if found is None:
        return f"{called(page)}: never rehearsed; the recorded causes serve"
    text = f"{called(page)}: {show.verdict(page)}"
    if found.error is not None:
        text += f", simulator {100 * found.error:.1f} % off in rehearsals"
    elif found.judged:
        text += ", but the simulator does not load it"
    if found.verdict in ("shape", "does not"):
        text += f" ({found.reason})"
    if busy := show.disturbance(page):
        text += f"; {busy}"
    return f"{text}; {found.loads} loads, {found.seconds:.0f} s"
