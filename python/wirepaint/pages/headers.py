"""Which recorded response headers a replay sends."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from email.utils import parsedate_to_datetime

PAD = "x-wirepaint-pad"

_HOP_BY_HOP = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade", "content-length", "http2-settings",
}  # fmt: skip
"""RFC 9110 section 7.6.1; the server writes its own."""

_PRIVATE = {
    "set-cookie", "set-cookie2", "authorization", "www-authenticate", "authentication-info", "x-client-ip",
}  # fmt: skip

_SECRET = re.compile(
    r"(^|-)(token|session|sessionid|secret|csrf|csrftoken|xsrf|jwt|apikey|api-key|auth|cookie)(-|$)"
)
"""Names of headers that carry secrets of the visitor."""

_MISLEADING = {
    # They redirect the browser, make it ask again, or report to third parties.
    "alt-svc", "alternate-protocol", "clear-site-data", "refresh", "service-worker-allowed",
    "strict-transport-security", "public-key-pins", "public-key-pins-report-only", "expect-ct", "nel",
    "report-to", "reporting-endpoints", "speculation-rules", "supports-loading-mode", "no-vary-search",
    "content-security-policy-report-only", "cross-origin-opener-policy-report-only",
    "cross-origin-embedder-policy-report-only", "critical-ch", "accept-ch", "use-as-dictionary",
    "origin-agent-cluster", "permissions-policy-report-only", "sourcemap", "x-sourcemap",
    "attribution-reporting-register-source", "attribution-reporting-register-trigger",
    "observe-browsing-topics",
}  # fmt: skip

_RESTRICTING = {
    # They restrict a page whose bodies are not the recorded ones.
    "content-security-policy", "x-frame-options", "x-content-type-options", "cross-origin-opener-policy",
    "cross-origin-embedder-policy", "cross-origin-resource-policy", "permissions-policy",
    "feature-policy", "document-policy", "content-disposition", "referrer-policy", "x-webkit-csp",
    "x-content-security-policy", "content-md5", "digest", "repr-digest",
}  # fmt: skip

_REMOVED = _PRIVATE | _MISLEADING | {"link", "status", "content-range"}

_STALE = ("date", "age", "expires", "warning")
"""They would make an answer stale on arrival, and the browser would ask for it again."""

_TOKEN = re.compile(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
_VISIBLE = re.compile(r"[^\x20-\x7e\x80-\uffff]")
_REVALIDATE = re.compile(r"(?i)(?:,|(?<!\s))\s*+stale-(while-revalidate|if-error)\s*+=\s*+\d+")
_REPORT = re.compile(r"(?i)(?:;|(?<!\s))\s*+report-(uri|to)\s[^;]*+")

Headers = list[tuple[str, str]]


def kept(recorded: Iterable[tuple[str, str]], *, synthetic: bool) -> Headers:
    """The headers to send, names in lower case, in recorded order.

    One padding header of the same length replaces those left out, so that the header block
    keeps its size. ``synthetic``: the body is not the recorded one.
    """
    result: Headers = []
    removed = 0
    recorded = [(name.strip().lower(), value) for name, value in recorded]
    lifetime = _lifetime(dict(recorded))
    for name, value in recorded:
        if name in _HOP_BY_HOP or name.startswith(":") or not _TOKEN.match(name):
            continue
        value = _VISIBLE.sub(" ", value).strip()
        if name in _REMOVED or name in _STALE or _SECRET.search(name) or (synthetic and name in _RESTRICTING):
            removed += _line(name, value)
        elif name == "content-security-policy":
            policy = _REPORT.sub("", value).strip(" ;")
            removed += len(value) - len(policy)
            if policy:
                result.append((name, policy))
        elif name == "cache-control":
            fresh = _REVALIDATE.sub("", value).strip(" ,")
            removed += len(value) - len(fresh)
            result.append((name, fresh))
        else:
            result.append((name, value))
    if lifetime is not None:
        result.append(("cache-control", f"max-age={lifetime}"))
        removed -= _line(*result[-1])
    return padded(result, removed)


def _lifetime(recorded: dict[str, str]) -> int | None:
    """Freshness lifetime in seconds of an answer that has only Expires."""
    if "cache-control" in recorded or "date" not in recorded or "expires" not in recorded:
        return None
    try:
        span = parsedate_to_datetime(recorded["expires"]) - parsedate_to_datetime(recorded["date"])
    except (TypeError, ValueError):
        return None
    return max(0, int(span.total_seconds()))


def padded(headers: Headers, removed: int) -> Headers:
    """``headers`` with a padding header that takes ``removed`` bytes as a line of HTTP/1.1."""
    room = removed - _line(PAD, "")
    if room < 0:
        return headers
    block = hashlib.shake_128(str(removed).encode()).hexdigest((room + 1) // 2)
    return [*headers, (PAD, block[:room])]


def replaced(headers: Headers, name: str, value: str | None) -> Headers:
    """``headers`` with ``name`` set to ``value`` in place (None: removed), added if it is missing."""
    result: Headers = []
    done = value is None
    for key, old in headers:
        if key != name:
            result.append((key, old))
        elif not done and value is not None:
            result.append((key, value))
            done = True
    if not done and value is not None:
        result.append((name, value))
    return result


def _line(name: str, value: str) -> int:
    return len(name) + len(value) + 4
