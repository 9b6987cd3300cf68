"""The files of calibration/: what the networks were measured to give, as the journal has it too.

The journal comes first. A file that a crash kept from being written is written by the next command.
"""

from __future__ import annotations

from pathlib import Path

from wirepaint import files
from wirepaint.errors import UsageError
from wirepaint.results import names
from wirepaint.results.contents import Fault

FOLDER = "calibration"


def path(folder: Path, network: str) -> Path:
    """The file of a network in a results folder; raises UsageError where it would lead out of it."""
    return names.inside(folder, FOLDER, f"{names.network(network, str(folder))}.json")


def fault(folder: Path, network: str, text: str) -> Fault | None:
    """What is wrong with the file of a network that the journal knows as ``text``."""
    file, asked = path(folder, network), text.encode()
    try:
        if files.content(file, len(asked), "") == asked:
            return None
        return Fault(file, "damaged", "a damaged file: it is not what the journal has")
    except UsageError as error:
        kind = "missing" if error.found.startswith("no such") else "damaged"
        return Fault(file, kind, error.found)
