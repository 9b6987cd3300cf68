"""The cause of each request, according to the recorder."""

from __future__ import annotations

import json
from typing import Any

from wirepaint.pages.har import Entry
from wirepaint.pages.model import CauseKind


def initiator(entry: Entry) -> tuple[str, str]:
    """URL and type (``parser``, ``script``, ``other``) of the recorded initiator; each may be empty.

    It reads Chrome's and Browsertime's ``_initiator`` objects (URL, else the first frame of
    the stack that has one), chrome-har's ``_initiator`` text with ``_initiator_type``, and ``_norm``.
    """
    value = entry.initiator
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if isinstance(value, dict):
        url = value.get("url")
        if not isinstance(url, str) or not url.startswith("http"):
            url = _first_frame(value.get("stack"))
        return url, str(value.get("type", ""))
    if isinstance(value, str) and value:
        return value, entry.initiator_type
    hints = entry.hints
    # Without a type it may be just a copy of the Referer.
    if hints.initiator and (hints.initiator_type or hints.initiator != entry.request.header("referer")):
        return hints.initiator, hints.initiator_type
    return "", entry.initiator_type


def _first_frame(stack: Any) -> str:
    """URL of the innermost frame that has one; asynchronous parents come after."""
    for _ in range(32):
        if not isinstance(stack, dict):
            break
        frames = stack.get("callFrames")
        for frame in frames if isinstance(frames, list) else []:
            url = frame.get("url") if isinstance(frame, dict) else None
            if isinstance(url, str) and url.startswith("http"):
                return url
        stack = stack.get("parent")
    return ""


def kind(parent_type: str, recorded: str) -> CauseKind:
    """The kind of cause, from the parent's type and the recorded type."""
    if parent_type == "css":
        return "css"
    if parent_type == "js" or recorded == "script":
        return "script"
    if recorded in ("parser", "preload", ""):
        return "parser"
    return "other"
