"""The files of calibration/: copies of the networks' calibrations in the journal.

The journal is written first. If a crash comes before the file, the next command writes the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from wirepaint import files
from wirepaint.errors import UsageError
from wirepaint.results import names
from wirepaint.results.contents import Fault

FOLDER = "calibration"


class Place(NamedTuple):
    """What was measured: a network on the testbed of a host."""

    network: str
    host: str


def path(folder: Path, place: Place) -> Path:
    """The file of a network in a results folder; raises UsageError if it would lead out of the folder."""
    host = names.host(place.host, str(folder))
    return names.inside(folder, FOLDER, host, f"{names.network(place.network, str(folder))}.json")


def fault(folder: Path, place: Place, text: str) -> Fault | None:
    """The fault of a network's file whose text in the journal is ``text``; None if there is none."""
    file, asked = path(folder, place), text.encode()
    try:
        if files.content(file, len(asked), "") == asked:
            return None
        return Fault(file, "damaged", "a damaged file: it is not what the journal has")
    except UsageError as error:
        kind = "missing" if error.found.startswith("no such") else "damaged"
        return Fault(file, kind, error.found)
