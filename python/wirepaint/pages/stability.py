"""Checks whether a page with its recorded bodies will ask for exactly the recorded resources."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from wirepaint.pages import references
from wirepaint.pages.selection import Selection

_ADDRESS = re.compile(r"""["'](?:https?:)?//([a-z0-9.-]+\.[a-z]{2,})[/"']""", re.I)
_LOADS = ("createElement", ".src", "fetch(", "XMLHttpRequest", "document.write", "Image(")


def doubt(selection: Selection) -> str | None:
    """Why the recorded bodies may ask for other resources; None if there is no sign of it.

    Signs are requests that no recorded document or stylesheet refers to (scripts must have
    made them), and scripts inside documents that load from hosts missing in the recording.
    """
    if not selection.base.entry.response.content.recorded:
        return None
    hosts = {urlsplit(draft.url).hostname for draft in selection.drafts}
    referred: set[str] = set()
    for draft in selection.drafts:
        if draft.kind not in ("html", "css"):
            continue
        referred |= {references.key(found.url) for found in draft.markup.found}
        referred |= {references.key(icon) for icon in draft.markup.icons}
        for script in draft.markup.scripts:
            strangers = {host.lower() for host in _ADDRESS.findall(script)} - hosts
            if strangers and any(word in script for word in _LOADS):
                return f"a script of the document may load from {min(strangers)}, which was not recorded"
    unexplained = [
        draft
        for draft in selection.drafts
        if draft is not selection.drafts[0]
        and draft.came_from is None
        and (draft.method != "GET" or references.key(draft.url) not in referred)
    ]
    if unexplained:
        return f"scripts made {len(unexplained)} of the recorded requests, such as {unexplained[0].url[:80]}"
    return None
