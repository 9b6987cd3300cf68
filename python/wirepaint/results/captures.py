"""The names of a run's packet captures: one file for each user and side of the path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from wirepaint.errors import UsageError, show

FOLDER = "captures"
SIDES = ("client", "server")
_FILE = re.compile(rf"{FOLDER}/([a-z0-9][a-z0-9_-]*)\.(client|server)\.pcapng")


class Name(NamedTuple):
    """Whose packets a capture holds, and at which side of the path: ``client`` or ``server``."""

    user: str
    side: str

    @classmethod
    def of(cls, user: str, side: str) -> Name:
        """Raises UsageError for a user who has no short name."""
        name = cls(user, side)
        if among([name.file]) != [name]:
            raise UsageError("user_agent", show(user), "a short name")
        return name

    @property
    def file(self) -> str:
        """Path of the file within the folder of its run."""
        return f"{FOLDER}/{self.user}.{self.side}.pcapng"


def among(files: Iterable[str]) -> list[Name]:
    """The captures among a run's files."""
    return sorted(Name(found[1], found[2]) for file in files if (found := _FILE.fullmatch(file)))
