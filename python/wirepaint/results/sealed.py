"""JSON with the SHA-256 of its own content, to detect flipped bits and edits."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from wirepaint import files
from wirepaint.errors import UsageError

KEY = "sha256"
_text = json.JSONEncoder(
    separators=(",", ":"), sort_keys=True, check_circular=False, default=lambda other: other.hex()
).encode
"""Made once: a journal may have a million rows, and each is sealed."""
LARGEST = 64 * 2**20
"""Largest document in bytes; the manifest of 10,000 scenarios has a thirtieth of it."""


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, independent of spaces and escapes in its text."""
    return hashlib.sha256(_text(value).encode()).hexdigest()


def dumps(value: dict[str, Any]) -> bytes:
    """The text of a document, sealed."""
    content = {key: inner for key, inner in value.items() if key != KEY}
    return json.dumps(content | {KEY: digest(content)}, indent=1).encode() + b"\n"


def parse(path: Path, accepted: str) -> dict[str, Any]:
    """The document in a file, without a check of its seal; raises UsageError if it is none."""
    try:
        value = json.loads(files.content(path, LARGEST, accepted))
        json.dumps(value, ensure_ascii=False).encode()  # refuses halves of surrogate pairs
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError(str(path), "a damaged file", accepted)
    return value


def check(value: dict[str, Any], path: Path) -> None:
    """Raises UsageError if the content does not match the seal."""
    content = {key: inner for key, inner in value.items() if key != KEY}
    if value.get(KEY) != digest(content):
        raise UsageError(
            str(path), "a damaged file: its content does not fit its sha256", "the file as wirepaint wrote it"
        )
