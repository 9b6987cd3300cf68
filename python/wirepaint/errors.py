"""Every error that a user can meet, and the exit code that follows it.

WirepaintError
├── UsageError          2   the input is wrong: names file, key, what was found, what is accepted
├── MachineLacks        2   the machine lacks something: names it and how to mend it
├── Refused             2   the data plane refuses what it is asked, and would again: names why
├── RunFailed           1   a run could not be carried out: names the cause
│   ├── PageTimeout         the page did not load within its timeout
│   └── PageFailed          the page cannot be loaded, and could not the next time
└── Incomplete          3   not all runs are done: the same command again resumes
"""

from __future__ import annotations


class WirepaintError(Exception):
    """Base of all errors that end in one line on stderr."""

    exit_code = 1


class UsageError(WirepaintError):
    """The input is wrong.

    ``place`` is a file, and within it a key or line; ``found`` is what stood there; ``accepted``
    is what may stand there.
    """

    exit_code = 2

    def __init__(self, place: str, found: str, accepted: str) -> None:
        super().__init__(f"{place}: found {found}; accepted: {accepted}")
        self.place, self.found, self.accepted = place, found, accepted


class MachineLacks(WirepaintError):
    """The machine lacks a right, a program or a kernel facility."""

    exit_code = 2

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}. {remedy}")
        self.what, self.remedy = what, remedy


class Refused(WirepaintError):
    """The data plane refuses what it is asked, such as a congestion control that does not compile."""

    exit_code = 2


class RunFailed(WirepaintError):
    """A run could not be carried out."""

    exit_code = 1


class PageTimeout(RunFailed):
    """The page did not load within its timeout: the page may be too large for the network."""


class PageFailed(RunFailed):
    """The page cannot be loaded, and could not the next time: damaged, refused, or answered with an error."""


class Incomplete(WirepaintError):
    """Not all runs are done; the same command again resumes."""

    exit_code = 3
