"""Metrics of the user's own, in Python files that the evaluation names under ``metrics``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wirepaint.errors import UsageError
from wirepaint.reading import located, show

Read = Callable[[Mapping[str, Path]], list[dict[str, Any]]]
"""Executes trusted files, by the places that name them: what results keep of each (``metrics.read``)."""


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
