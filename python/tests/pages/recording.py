"""Writes small HAR files, entry by entry, as the recorders do."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def entry(
    url: str,
    *,
    at: float = 0.0,
    time: float = 50.0,
    method: str = "GET",
    status: int = 200,
    mime: str = "text/html",
    size: int = 1000,
    text: str | None = None,
    response: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    asked: dict[str, str] | None = None,
    timings: dict[str, float] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """One entry that began ``at`` ms after the first and took ``time`` ms."""
    content: dict[str, Any] = {"size": size, "mimeType": mime}
    if text is not None:
        content |= {"text": text, "size": len(text.encode())}
    fields = {"content-type": mime, **(headers or {})}
    return {
        "startedDateTime": (START + timedelta(milliseconds=at)).isoformat().replace("+00:00", "Z"),
        "time": time,
        "request": {
            "method": method,
            "url": url,
            "headers": [{"name": k, "value": v} for k, v in (asked or {}).items()],
        },
        "response": {
            "status": status,
            "httpVersion": "h2",
            "headers": [{"name": k, "value": v} for k, v in fields.items()],
            "content": content,
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": -1,
            **(response or {}),
        },
        "timings": {"wait": 20.0, "receive": 5.0, **(timings or {})},
        **extra,
    }


def log(*entries: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {
        "log": {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": list(entries)}
        | keys
    }


def write(folder: Path, *entries: dict[str, Any], packed: bool = False, **keys: Any) -> Path:
    """A HAR file of these entries in ``folder``."""
    data = json.dumps(log(*entries, **keys)).encode()
    path = folder / ("page.har.gz" if packed else "page.har")
    path.write_bytes(gzip.compress(data) if packed else data)
    return path
