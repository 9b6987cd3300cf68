"""Sizes and server time of a recorded response.

Recorders disagree about ``bodySize`` and ``_transferSize``: some count the header block of HTTP/2
into both, some write -1. The size of a body on the wire is the first of these that applies:

1. nothing, if HTTP allows no body (HEAD, 204); a 304 stands for the whole answer, but does not give
   its size on the wire;
2. without content-encoding: the decoded size (body, else ``content.size``), unless ``bodySize`` is
   known and smaller (recorders lose headers);
3. the response's Content-Length, unless ``bodySize`` is known and smaller (a broken transfer);
4. ``bodySize``; if it equals ``_transferSize`` and the header size is unknown, less a quarter
   of the header's text (its size after HPACK);
5. ``_transferSize`` less the header, measured or estimated in the same way;
6. ``content.size`` less ``content.compression``;
7. unknown (None): the stored body is encoded as a server would; without a body
   :func:`usual_wire_bytes` estimates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import urlsplit

from wirepaint.pages.codings import coding_of
from wirepaint.pages.har import Entry

_USUAL_RATIO = {"js": 0.29, "css": 0.18, "html": 0.23, "data": 0.27}
"""Encoded bytes over decoded bytes, by type: totals of 500 encoded responses of 25 recorded pages."""


def decoded_bytes(entry: Entry, body: bytes | None) -> int:
    """Bytes of the decoded body; -1 if unknown."""
    if body is not None:
        return len(body)
    return entry.response.content.size


def wire_bytes(entry: Entry, body: bytes | None) -> int | None:
    """Bytes of the body on the wire; None if unknown (rule 7)."""
    response = entry.response
    decoded = decoded_bytes(entry, body)
    if entry.request.method.upper() == "HEAD" or response.status == 204:
        return 0
    encoded = coding_of(entry.header("content-encoding")) != "identity"
    if response.status == 304:
        return None if encoded else max(decoded, 0)
    sized, transferred, head = response.body_size, response.transfer_size, response.headers_size
    if not encoded and decoded > 0 and not 0 < sized < decoded and (response.headers or body is not None):
        return decoded
    length = entry.header("content-length").strip()
    stated = int(length) if length.isdecimal() and len(length) < 12 else -1
    if stated > 0 and (sized <= 0 or stated <= sized):
        return stated
    if sized > 0:
        with_head = head <= 0 and sized == transferred
        return max(1, sized - _packed_head(entry)) if with_head else sized
    if transferred > 0:
        return max(0, transferred - (head if head > 0 else _packed_head(entry)))
    if response.content.compression > 0 and decoded > response.content.compression:
        return decoded - response.content.compression
    if decoded <= 0:
        return 0
    return None


def usual_wire_bytes(kind: str, decoded: int) -> int:
    """Estimated size on the wire of an encoded body of ``decoded`` bytes."""
    return max(1, round(decoded * _USUAL_RATIO.get(kind, 0.5))) if decoded > 0 else 0


def _packed_head(entry: Entry) -> int:
    text = sum(len(h.name) + len(h.value) + 4 for h in entry.response.headers)
    return text if entry.response.http_version.lower().startswith("http/1") else text // 4


def think_times(entries: Iterable[Entry]) -> list[float]:
    """Server time of each entry in ms: its wait less a round trip to its host.

    The round trip is the shortest TCP handshake to the host (``connect`` less ``ssl``; QUIC: the
    whole handshake), else the shortest wait for it.
    """
    entries = list(entries)
    handshakes: dict[str, list[float]] = defaultdict(list)
    waits: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        host = urlsplit(entry.request.url).hostname or ""
        timings = entry.timings
        tcp = timings.connect - max(timings.ssl, 0.0)
        if timings.connect > 0:
            handshakes[host].append(tcp if tcp > 0.5 else timings.connect)
        if timings.wait > 0:
            waits[host].append(timings.wait)
    result: list[float] = []
    for entry in entries:
        host = urlsplit(entry.request.url).hostname or ""
        trip = min(handshakes[host] or waits[host] or [0.0])
        result.append(round(max(0.0, entry.timings.wait - trip), 3))
    return result
