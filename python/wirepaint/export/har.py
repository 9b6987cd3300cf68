"""Exports one run as HAR 1.2 (Odvarko et al., "HTTP Archive 1.2").

Fields beyond the format begin with ``_``, as it requires. Differences from other HAR files:

- ``timings.dns`` is -1: names are mapped inside the browser, nothing is resolved.
- ``timings.send`` is 0: the browser reports one instant for a sent request.
- ``blocked`` is all time before the request was sent, except ``connect``: waiting for a
  connection, and for its handshake if another request opened it.
- Bodies are not in the file; request headers are not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from wirepaint import __version__
from wirepaint.errors import UsageError
from wirepaint.results.reader import Results

Row = Mapping[str, Any]

_VERSIONS = {"http/1.1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}
_MIME_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "data": "application/json"}
NS_PER_MS = 1e6
TABLES = ("run", "page", "object", "connection")
"""The tables that an archive needs."""


def write(results: Results, run: Row, path: Path) -> Path:
    """Writes one done run (a row of ``Results.runs``) as a HAR file."""
    text = json.dumps(archive(results, run), indent=1, ensure_ascii=False) + "\n"
    try:
        path.unlink(missing_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(str(path), str(error.strerror).lower(), "a file that can be written") from None
    return path


def archive(results: Results, run: Row) -> dict[str, Any]:
    """The HAR document of one done run."""
    key = run["run_key"]

    def rows(table: str) -> list[dict[str, Any]]:
        return results.trace(key, table).to_dicts()

    of_run = next(iter(rows("run")), {})
    started = of_run.get("started_unix") or 0
    connections = {row["connection"]: row for row in rows("connection")}
    headers = _recorded_headers(results.file(key, "run.json"))
    objects = [row for row in rows("object") if row["discovered"] is not None]
    objects.sort(key=lambda row: row["discovered"])
    product, _, version = (of_run.get("browser") or "unknown/").partition("/")
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "wirepaint", "version": of_run.get("wirepaint") or __version__},
            "browser": {"name": product, "version": version},
            "pages": [_page(visit, run, started) for visit in rows("page")],
            "entries": [_entry(row, connections.get(row["connection"]), headers, started) for row in objects],
        }
    }


def _page(visit: Row, run: Row, started: int) -> dict[str, Any]:
    begin = visit["navigation_start"]

    def since(column: str) -> float | None:
        instant = visit[column]
        return None if instant is None or begin is None else (instant - begin) / NS_PER_MS

    def or_unknown(value: float | None) -> float:
        return -1 if value is None else value

    described = {
        name: value for name, value in run.items() if name not in ("position", "reasons", "cause", "kind")
    }
    return {
        "id": _page_id(visit),
        "title": visit["url"],
        "startedDateTime": _instant(started, begin or 0),
        "pageTimings": {
            "onContentLoad": or_unknown(since("dom_content_loaded")),
            "onLoad": or_unknown(since("load_event")),
            "_firstPaint": since("first_paint"),
            "_firstContentfulPaint": since("first_contentful_paint"),
            "_largestContentfulPaint": since("largest_contentful_paint"),
            "_viewportComplete": since("viewport_complete"),
        },
        "_run": described | {"reasons": json.loads(run["reasons"] or "[]")},
    }


def _page_id(row: Row) -> str:
    return f"page_{(row['visit'] or 0) + 1}"


def _entry(row: Row, connection: Row | None, headers: dict[Any, Any], started: int) -> dict[str, Any]:
    timings = _timings(row, connection)
    url, status = row["url"], row["status"] or 0
    received = headers.get((row["method"], url.partition("#")[0]), [])
    named = {name.lower(): value for name, value in received}
    version = _VERSIONS.get(row["protocol"] or "", row["protocol"] or "unknown")
    encoded = -1 if row["encoded_bytes"] is None else row["encoded_bytes"]
    entry: dict[str, Any] = {
        "pageref": _page_id(row),
        "startedDateTime": _instant(started, row["discovered"]),
        "time": sum(
            timings[part] for part in ("blocked", "connect", "send", "wait", "receive") if timings[part] > 0
        ),
        "request": {
            "method": row["method"] or "GET",
            "url": url,
            "httpVersion": version,
            "cookies": [],
            "headers": [],
            "queryString": [
                {"name": name, "value": value}
                for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True)
            ],
            "headersSize": -1,
            "bodySize": -1,
        },
        "response": {
            "status": status,
            "statusText": _phrase(status),
            "httpVersion": version,
            "cookies": [],
            "headers": [{"name": name, "value": value} for name, value in received],
            "content": {
                "size": row["decoded_bytes"] or 0,
                "mimeType": named.get("content-type")
                or _MIME_TYPES.get(row["type"], "application/octet-stream"),
            },
            "redirectURL": named.get("location", ""),
            "headersSize": -1,
            "bodySize": -1,
            "_transferSize": encoded,
        },
        "cache": {},
        "timings": timings,
        "_resourceType": row["type"],
        "_priority": row["priority"],
        "_initiator": row["initiator"],
        "_initiator_type": row["initiator_type"],
    }
    if row["failed"] is not None:
        entry["response"]["_error"] = row["failed"]
    if row["connection"] is not None:
        entry["connection"] = str(row["connection"])
    if connection is not None and connection["server_address"]:
        entry["serverIPAddress"] = connection["server_address"]
        entry["_congestion"] = connection["congestion"]
    return entry


def _timings(row: Row, connection: Row | None) -> dict[str, float]:
    """Milliseconds of the parts from discovery to last byte. They add up without ``ssl`` (in ``connect``).

    An unknown instant (the request failed before it) is replaced by the previous one.
    """
    discovered = row["discovered"]
    sent = max(row["sent"] or discovered, discovered)
    first = max(row["first_byte"] or sent, sent)
    last = max(row["last_byte"] or first, first)
    connect, ssl = -1.0, -1.0
    if row["first_on_connection"] and connection is not None and connection["opened"] is not None:

        def within(begin: int | None, end: int | None) -> float:
            """The part of a handshake between discovery and request."""
            if begin is None or end is None:
                return -1.0
            return max(0, min(end, sent) - max(begin, discovered)) / NS_PER_MS

        connect = within(connection["opened"], connection["tls_done"] or connection["connected"])
        ssl = within(connection["connected"], connection["tls_done"])
    return {
        "blocked": (sent - discovered) / NS_PER_MS - max(connect, 0.0),
        "dns": -1,
        "connect": connect,
        "ssl": ssl,
        "send": 0,
        "wait": (first - sent) / NS_PER_MS,
        "receive": (last - first) / NS_PER_MS,
    }


def _recorded_headers(run_file: Path | None) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Response headers for the replay server, by method and address."""
    if run_file is None:
        return {}
    try:
        sites = json.loads(run_file.read_bytes())["sites"].values()
        return {(one["method"], one["url"]): one["headers"] for site in sites for one in site["responses"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _instant(started: int, offset: int) -> str:
    """ISO 8601 in UTC, to the microsecond."""
    microseconds = (started + offset) // 1000
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC).replace(
        microsecond=microseconds % 1_000_000
    )
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
