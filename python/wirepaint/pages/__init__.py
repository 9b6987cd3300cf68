"""Recorded pages: import, synthesis of missing bodies, the shipped ones.

``import_har`` and ``import_folder`` write a page folder, ``load`` reads its index, ``prepare``
makes it ready to be served, ``shipped`` lists the pages of wirepaint, ``anonymise`` reduces a
page to sizes, types, times and causes.
"""

from wirepaint.pages.anonymise import anonymise
from wirepaint.pages.cache import cache_dir
from wirepaint.pages.catalogue import shipped
from wirepaint.pages.import_folder import import_folder
from wirepaint.pages.import_har import import_har
from wirepaint.pages.model import Cause, Page, Recorded, Resource, load
from wirepaint.pages.prepare import PreparedPage, prepare

__all__ = [
    "Cause",
    "Page",
    "PreparedPage",
    "Recorded",
    "Resource",
    "anonymise",
    "cache_dir",
    "import_folder",
    "import_har",
    "load",
    "prepare",
    "shipped",
]
