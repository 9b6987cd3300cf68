"""Figures: one file each, one function each over the evidence of an evaluation.

The folder is the registry: a file ``box.py`` is the figure ``box``; nothing else has to be edited.
A figure's file defines ``TITLE``, ``SOURCE``, ``data(evidence, ...)``, which gives the plotted
values as a table, and ``chart(frame, style)``, which draws them; its docstring is the caption.
Files that begin with ``_`` are machinery:

``_evidence``   the counted runs, with the compared factor as ``series`` and the rest as ``condition``
``_style``      colours, marks and type, the same in every figure and in the report
``_registry``   finds the files; draws, renders and saves

Start with :func:`save`.
"""

from wirepaint.figures._evidence import Evidence
from wirepaint.figures._registry import Drawing, Figure, check_suffix, draw, drawn, get, registry, save
from wirepaint.figures._style import MOST_SERIES, Style

__all__ = [
    "MOST_SERIES",
    "Drawing",
    "Evidence",
    "Figure",
    "Style",
    "check_suffix",
    "draw",
    "drawn",
    "get",
    "registry",
    "save",
]
