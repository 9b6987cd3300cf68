"""Which answers a shared cache serves again without asking their server (RFC 9111), as squid decides."""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import parsedate_to_datetime

_KEPT = {200, 203, 300, 301, 308, 410}
"""Status codes that may be kept by a heuristic (squid's ``HttpStateData::reusableReply``)."""
_KEPT_IF_FRESH = {302, 307}
"""Those that may be kept where a header gives a lifetime."""
_LEAST_S = 60
"""Squid keeps nothing that is stale within ``minimum_expiry_time``, its default."""


def is_served_again(method: str, status: int, headers: Iterable[tuple[str, str]]) -> bool:
    """True if squid, with its defaults, answers a second request soon after the first by itself.

    ``headers`` are those that a replay sends: with the present date, and without ``Age`` and ``Expires``
    (:mod:`wirepaint.pages.headers`).
    """
    if method != "GET":
        return False
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        fields.setdefault(name.lower(), []).append(value)
    directives = _directives(fields.get("cache-control", []))
    if directives.keys() & {"no-store", "private", "no-cache"} or "*" in "".join(fields.get("vary", [])):
        return False
    lifetime = directives.get("s-maxage", directives.get("max-age"))
    if lifetime is not None:
        # A lifetime that is no number is none (RFC 9111, section 4.2.1).
        is_fresh = lifetime.isascii() and lifetime.isdigit() and int(lifetime) >= _LEAST_S
        return is_fresh and status in _KEPT | _KEPT_IF_FRESH
    # Heuristic: a fifth of the time since it was changed, which is long ago in a recording.
    return status in _KEPT and any(_is_date(value) for value in fields.get("last-modified", []))


def _directives(values: list[str]) -> dict[str, str]:
    """Names, in lower case, and values; the first of each name counts."""
    found: dict[str, str] = {}
    for part in ",".join(values).split(","):
        name, _, value = part.partition("=")
        found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def _is_date(value: str) -> bool:
    try:
        parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return False
    return True
