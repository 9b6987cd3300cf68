"""Results: one folder per evaluation. Readers start at ``Results.open(folder)``, commands at
``examined``.

``store`` writes a folder (one command at a time: ``lock``), ``journal`` keeps the state of every
run, ``manifest`` the evaluation, the machine and the versions, ``trace`` the tables of a run.

``growth`` says how an evaluation may be edited after it began. ``measured`` has the files of metrics, which
are computed from the traces. ``names`` checks names before they become paths, ``sealed`` and ``contents``
find damaged files, ``verify`` checks a whole folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirepaint.results.reader import Results, examined

__all__ = ["Results", "examined"]


def __getattr__(name: str) -> Any:
    """Imports the reader, and with it Polars, only when it is used."""
    if name in __all__:
        from wirepaint.results import reader

        return getattr(reader, name)
    raise AttributeError(name)
