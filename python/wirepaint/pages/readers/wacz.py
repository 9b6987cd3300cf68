"""Reads WACZ 1.1: a zip of WARC files and a list of their pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from zipfile import ZipInfo

from wirepaint.pages.har import Log
from wirepaint.pages.readers import warc
from wirepaint.pages.readers.source import Source
from wirepaint.pages.readers.warc_archive import Listed

_MAX_LIST = 32 * 2**20
_MAX_PAGES = 50_000

Open = Callable[[ZipInfo, int], Source]
"""Opens a member that may unpack to N bytes."""


def is_wacz(members: dict[str, ZipInfo]) -> bool:
    """True for a zip with WARC files in the folder of a WACZ."""
    return bool(_archives(members))


def read(members: dict[str, ZipInfo], open_member: Open, page: str | None) -> Log:
    """Reads the archives in it; the pages of its list come first."""
    listed: list[Listed] = []
    for name in ("pages/pages.jsonl", "pages/extraPages.jsonl"):
        if name in members:
            listed += _pages(open_member(members[name], _MAX_LIST))
    return warc.read(_opened(members, open_member), page, listed)


def _opened(members: dict[str, ZipInfo], open_member: Open) -> Iterator[Source]:
    """The archives, one after the other; together they may unpack to ``warc.MAX_BYTES``."""
    left = warc.MAX_BYTES
    for name in _archives(members):
        source = open_member(members[name], left)
        yield source
        left = source.left


def _archives(members: dict[str, ZipInfo]) -> list[str]:
    return sorted(n for n in members if n.startswith("archive/") and n.endswith((".warc", ".warc.gz")))


def _pages(source: Source) -> list[Listed]:
    """The pages of a list; ignores other lines, as the format requires."""
    pages: list[Listed] = []
    for line in source.read(_MAX_LIST).splitlines()[: _MAX_PAGES + 1]:
        try:
            page = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(page, dict) and isinstance(url := page.get("url"), str):
            words = {key: str(page.get(key) or "")[:500] for key in ("id", "ts", "title")}
            pages.append(Listed(url, words["id"], words["ts"], words["title"]))
    return pages
