"""Metrics that the evaluation names: files of the user's own under ``metrics``, and ``primary`` ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wirepaint.errors import Faults, UsageError
from wirepaint.reading import located, show

Read = Callable[[Mapping[str, Path]], list[dict[str, Any]]]
"""Executes trusted files, by the places that name them: what results keep of each (``metrics.read``)."""
Check = Callable[[str, str], None]
"""Raises UsageError at a place, the second text, if the first is no metric that can be primary."""


def paths(written: Sequence[str], base: Path, place: str) -> dict[str, Path]:
    """The files by the place of their names; raises UsageError for a name that is no Python file's."""
    found = {}
    for index, name in enumerate(written):
        where = f"{place}: metrics[{index}]"
        if not name.endswith(".py"):
            raise UsageError(where, show(name), 'the path of a Python file, such as "./mine.py"')
        found[where] = located(name, base, where)
    return found


def resolve(named: Mapping[str, Path], read: Read | None) -> dict[str, Any]:
    """The key ``metrics`` of a resolved evaluation; nothing without such files, or if nobody reads them."""
    return {"metrics": read(named)} if named and read else {}


def check_primary(names: Sequence[str] | None, place: str, check: Check | None) -> None:
    """Raises UsageError for each of ``primary`` that ``check`` refuses; those of own files must be read."""
    if check is None:
        return
    faults = Faults()
    for index, name in enumerate(names or ()):
        with faults.kept():
            check(name, f"{place}: primary[{index}]")
    faults.end()
