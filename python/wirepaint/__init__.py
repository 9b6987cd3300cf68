"""wirepaint: which transport makes these pages load faster on these networks, and who pays for it?

The packages, each used by later ones: ``evaluation`` (resolves a user's file into
runs), ``runners`` (carry out runs), ``results`` (stores them), ``metrics``,
``statistics``, ``figures``, ``report``. Start at ``cli``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def open(results: Path | str) -> Any:
    """Opens a results folder for a notebook or a script, as :class:`wirepaint.notebook.Opened`.

    Raises UsageError if it is none.
    """
    # By name: the package itself stands below its rooms.
    return import_module("wirepaint.notebook").Opened(results)
