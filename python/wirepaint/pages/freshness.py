"""What a browser's cache holds of a page after an earlier visit (RFC 9111), as Chromium reads the headers.

The answers are those that the replay server gives: recorded headers with the present date. A browser's
cache is private, so ``s-maxage`` and ``private`` mean nothing to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urldefrag

Headers = Sequence[Sequence[str]]
Cached = Literal["fresh", "stale"]

FOREVER_S = float("inf")
_BY_MODIFICATION = frozenset((200, 203, 206))
"""Statuses with a heuristic lifetime: a tenth of the time since the last modification (RFC 9111, 4.2.2)."""
_PERMANENT = frozenset((300, 301, 308, 410))
"""Statuses that Chromium keeps for ever where nothing else is said."""
_OF_UNCHANGED = ("cache-control", "content-location", "etag", "expires", "last-modified", "vary")
"""Headers of a 304, as the replay server sends them."""


def lifetime_s(status: int, headers: Headers) -> float:
    """For how many seconds a stored answer may be used without a request; 0 for one that has to be validated.

    It is the freshness lifetime less the recorded ``age``.
    """
    fields = _fields(headers)
    directives = _directives(fields)
    if "no-cache" in directives or fields.get("vary") == "*":
        return 0.0
    if "cache-control" not in fields and "no-cache" in fields.get("pragma", "").lower():
        return 0.0
    return max(0.0, _lifetime_s(status, fields, directives) - _seconds(fields.get("age")))


def _lifetime_s(status: int, fields: Mapping[str, str], directives: Mapping[str, str]) -> float:
    date = _time_s(fields.get("date"))
    if "max-age" in directives:
        return _seconds(directives["max-age"])
    if "expires" in fields:
        # The server moves it with the date; without a recorded date nobody knows how far.
        expires = _time_s(fields["expires"])
        return 0.0 if expires is None or date is None else expires - date
    modified = _time_s(fields.get("last-modified"))
    if status in _BY_MODIFICATION and modified is not None and "must-revalidate" not in directives:
        return FOREVER_S if date is None else (date - modified) / 10
    return FOREVER_S if status in _PERMANENT else 0.0


def cached(resource: Mapping[str, Any], age_s: float) -> Cached | None:
    """What the cache holds of a resource of a load graph that was fetched ``age_s`` ago; None for nothing."""
    headers = resource["headers"]
    fields = _fields(headers)
    # DEVIATION: parts of media are fetched anew; Chromium stores them.
    if resource["method"] != "GET" or resource["status"] == 206 or "no-store" in _directives(fields):
        return None
    if lifetime_s(resource["status"], headers) > age_s:
        return "fresh"
    return "stale" if resource["status"] == 200 and fields.keys() & {"etag", "last-modified"} else None


def warmed(graph: Mapping[str, Any], age_s: Callable[[str], float | None]) -> dict[str, Any]:
    """A load graph whose resources say what the cache holds of them.

    ``age_s`` gives for an address how long ago it was fetched, None for never. A resource that has to be
    validated has the headers of the server's 304.
    """
    return {**graph, "resources": [_warmed(resource, age_s) for resource in graph["resources"]]}


def _warmed(resource: Mapping[str, Any], age_s: Callable[[str], float | None]) -> dict[str, Any]:
    age = age_s(address(resource["url"]))
    held = None if age is None else cached(resource, age)
    if held is None:
        return dict(resource)
    if held == "fresh":
        return {**resource, "cached": held}
    kept = [[name, value] for name, value in resource["headers"] if name.lower() in _OF_UNCHANGED]
    return {**resource, "cached": held, "headers": kept}


def address(url: str) -> str:
    """The address by which an answer is stored."""
    return urldefrag(url).url


def _fields(headers: Headers) -> dict[str, str]:
    """Fields by their names in lower case; repeated ones joined by commas (RFC 9110, 5.3)."""
    fields: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        fields[key] = f"{fields[key]}, {value}" if key in fields else value.strip()
    return fields


def _directives(fields: Mapping[str, str]) -> dict[str, str]:
    parts: Iterable[str] = fields.get("cache-control", "").replace("\n", ",").split(",")
    pairs = (part.strip().lower().partition("=") for part in parts)
    return {name: value.strip('"') for name, _, value in pairs}


def _seconds(text: str | None) -> float:
    """A number of seconds; 0 for anything else."""
    return float(text) if text and text.isascii() and text.isdigit() else 0.0


def _time_s(text: str | None) -> float | None:
    try:
        return None if text is None else parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
