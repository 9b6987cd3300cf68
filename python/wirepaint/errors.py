"""Every error that a user can meet, with its exit code.

WirepaintError
├── UsageError          2   the input is wrong: names file, key, found and accepted values
│   ├── UsageErrors         several inputs are wrong: a line for each
│   └── NotTrusted          the input contains code that nobody has agreed to run
├── MachineLacks        2   the machine lacks something: names it and the remedy
├── Refused             2   the data plane refuses a request, and would again: names the reason
├── RunFailed           1   a run could not be carried out: names the cause
│   ├── PageTimeout         the page did not load within its timeout
│   └── PageFailed          the page cannot be loaded, now or later
├── Breach             99   results break a rule of a gate
└── Incomplete          3   not all runs are done: the same command again resumes
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time
from typing import Any

LONGEST_MESSAGE = 1_000
"""Characters; a longer message was not written for a reader."""
_LONGEST_PLACE, _LONGEST_FOUND, _LONGEST_ACCEPTED = 250, 200, 500


def cut(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """``text`` as one line that any terminal can show, without its middle if it is too long."""
    if len(text) > longest:
        tail = longest // 3
        text = f"{text[: longest - tail - 1]}…{text[-tail:]}"
    text = " ".join(text.split())
    return text if text.isprintable() else "".join(map(_visible, text))


def show(value: Any, longest: int = 60) -> str:
    """A value as in a file, shortened; only the shown part of a large value is formatted."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        value = value[: longest + 1]
    text = str(value) if isinstance(value, date | time) else ""
    try:
        pieces = () if text else json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value)
        for piece in pieces:
            text += piece[: longest + 1]
            if len(text) > longest:
                break
    except (RecursionError, ValueError):  # nested too deeply; a number of too many digits
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _visible(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


class WirepaintError(Exception):
    """Base of all errors that end in one line on stderr."""

    exit_code = 1


class UsageError(WirepaintError):
    """The input is wrong.

    ``place`` is a file, and within it a key or line; ``found`` is the value there; ``accepted``
    describes the accepted values.
    """

    exit_code = 2

    def __init__(self, place: str, found: str, accepted: str) -> None:
        self.place = cut(place, _LONGEST_PLACE)
        self.found = cut(found, _LONGEST_FOUND)
        self.accepted = cut(accepted, _LONGEST_ACCEPTED)
        super().__init__(f"{self.place}: found {self.found}; accepted: {self.accepted}")


class UsageErrors(UsageError):
    """Several inputs are wrong: ``errors``, and in the message a line for each."""

    def __init__(self, errors: Sequence[UsageError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        self.place, self.found, self.accepted = first.place, first.found, first.accepted
        Exception.__init__(self, "\n".join(map(str, self.errors)))


class Faults:
    """Collects usage errors, so that they are raised together."""

    def __init__(self) -> None:
        self._errors: dict[str, UsageError] = {}

    def add(self, error: UsageError) -> None:
        """Adds an error, or several; each counts once."""
        for each in error.errors if isinstance(error, UsageErrors) else (error,):
            self._errors.setdefault(str(each), each)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Adds the usage error of its block, which ends there; code that is not trusted stops everything."""
        try:
            yield
        except NotTrusted:
            raise
        except UsageError as error:
            self.add(error)

    def error(self) -> UsageError:
        """What to raise; there must be one."""
        errors = list(self._errors.values())
        return errors[0] if len(errors) == 1 else UsageErrors(errors)

    def end(self) -> None:
        """Raises what was collected, if anything was."""
        if self._errors:
            raise self.error()


class NotTrusted(UsageError):
    """The input contains code to compile and run, and nobody has agreed to that."""


class MachineLacks(WirepaintError):
    """The machine lacks a right, a program or a kernel facility."""

    exit_code = 2

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}. {remedy}")
        self.what, self.remedy = what, remedy


class Refused(WirepaintError):
    """The data plane refuses a request, such as a congestion control that does not compile."""

    exit_code = 2


class RunFailed(WirepaintError):
    """A run could not be carried out."""

    exit_code = 1
    host: str | None = None
    """The name of the testbed on which it failed."""


class PageTimeout(RunFailed):
    """The page did not load within its timeout: the page may be too large for the network."""


class PageFailed(RunFailed):
    """The page cannot be loaded, now or later: damaged, refused, or answered with an error."""


class NetworkFailed(RunFailed):
    """The emulated path of a network could not be measured, so no run of it would count."""


class WorkerKilled(RunFailed):
    """The run killed each worker that carried it out, such as one that needs too much memory."""


class Breach(WirepaintError):
    """Results break a rule of a gate; an exit code that nothing else has."""

    exit_code = 99


class Incomplete(WirepaintError):
    """Not all runs are done; the same command again resumes."""

    exit_code = 3
