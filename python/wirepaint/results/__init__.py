"""Results: one folder per evaluation. Readers start at ``Results.open(folder)``.

``store`` writes a folder (one command at a time: ``lock``), ``journal`` keeps the state of every
run, ``manifest`` what was asked and on what it was carried out, ``trace`` the tables of a run.

``names`` checks what becomes a path, ``sealed`` and ``contents`` find what was damaged, ``verify`` all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirepaint.results.reader import Results

__all__ = ["Results"]


def __getattr__(name: str) -> Any:
    """Imports the reader, and with it Polars, only for those who read."""
    if name == "Results":
        from wirepaint.results.reader import Results

        return Results
    raise AttributeError(name)
