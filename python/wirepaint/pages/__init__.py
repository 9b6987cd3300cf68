"""Recorded pages: import, synthesis of missing bodies, the shipped ones.

``import_har`` and ``import_folder`` write a page folder, ``load`` reads its index, ``prepare``
makes it ready to be served, ``resolve`` finds the folder that a reference means, ``shipped`` lists
what comes with wirepaint.
"""

from wirepaint.pages.import_har import import_har
from wirepaint.pages.model import Cause, Page, Recorded, Resource, load
from wirepaint.pages.prepare import PreparedPage, cache_dir, prepare

__all__ = [
    "Cause",
    "Page",
    "PreparedPage",
    "Recorded",
    "Resource",
    "cache_dir",
    "import_har",
    "load",
    "prepare",
]
