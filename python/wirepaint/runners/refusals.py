"""Finds the cause of a refused run: the page, or else the evaluation or the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wirepaint.errors import PageFailed, Refused, RunFailed, UsageError, WirepaintError

_OF_PAGE = re.compile(r"(pages\.|sites\b)")
"""Keys of the run description that come from a page."""
_OF_ANY = re.compile(r" at line \d+ column \d+$")
"""The error of a JSON parser; it names no key."""


def refusal(said: str, whose: str = "") -> RunFailed | Refused:
    """The error for a refusal, from the data plane's message; ``whose`` names the run or part."""
    cause = said.rpartition("run.json: ")[2]
    if _OF_PAGE.match(cause):
        return PageFailed(cause)
    kind = RunFailed if _OF_ANY.search(cause) else Refused
    return kind(f"{whose}: {cause}" if whose else cause)


@contextmanager
def reading(page: Path) -> Iterator[None]:
    """Turns errors in the folder of a page into a failure of that page, not of the command."""
    try:
        yield
    except UsageError as error:
        if not error.place.startswith(str(page)):
            raise
        raise PageFailed(str(error)) from None
    except OSError as error:
        if not str(error.filename).startswith(str(page)):
            raise
        raise PageFailed(f"{error.filename}: {error.strerror}") from None
    except WirepaintError:
        raise
    except Exception as error:
        raise PageFailed(f"the page cannot be read: {type(error).__name__}: {error}") from error
