"""Joins the records of DevTools and the NetLog of a visit to the content of a HAR."""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from datetime import UTC, datetime
from urllib.parse import urldefrag

from wirepaint import __version__
from wirepaint.pages import har
from wirepaint.recording.queueing import behind_others
from wirepaint.recording.secrets import Secrets, suspects
from wirepaint.recording.visit import Visit
from wirepaint.recording.wire import Answer, Wire
from wirepaint.runners.testbed.browser.chromium.exchanges import Exchange

_PAGE = "page_1"

_RESOURCE_TYPES = {
    "html": "document",
    "css": "stylesheet",
    "js": "script",
    "image": "image",
    "font": "font",
    "media": "media",
    "data": "fetch",
}

_TEXT = ("text/", "json", "javascript", "ecmascript", "xml", "svg", "manifest", "x-www-form-urlencoded")


def har_log(visit: Visit, wire: Wire, secrets: Secrets) -> tuple[har.Log, list[str]]:
    """The log, and its notes."""
    joiner = _Joiner(visit, wire, secrets)
    entries = [joiner.entry(place, exchange) for place, exchange in enumerate(visit.exchanges)]
    began = visit.exchanges[0].discovered
    page = har.RecordedPage(
        id=_PAGE,
        title=secrets.text(visit.title),
        started=_clock(visit, began),
        timings=har.PageTimings(on_load=(visit.load_event - began) * 1000),
    )
    creator = har.Creator(name=f"wirepaint {__version__} in", version=visit.browser)
    log = har.Log(creator=creator, pages=[page], entries=entries)
    notes = [*visit.notes, *(f"{count} {what}" for what, count in sorted(joiner.counts.items()))]
    notes += [f"{owner} hidden at {count} places" for owner, count in sorted(secrets.found.items())]
    if names := suspects(entry.request.url for entry in entries):
        shown = ", ".join(names[:8])
        notes.append(f"addresses have parameters that may be secret ({shown}); look at them before you share")
    return log, notes


def _clock(visit: Visit, seconds: float) -> datetime:
    return datetime.fromtimestamp(visit.wall_clock + seconds, UTC)


class _Joiner:
    """Makes the entries one by one."""

    def __init__(self, visit: Visit, wire: Wire, secrets: Secrets) -> None:
        self._visit, self._secrets = visit, secrets
        self._answers = _pairs(visit.exchanges, wire.answers)
        self._handshakes = dict(wire.handshakes_ms)
        trips = {connection: ms / 1000 for connection, ms in wire.handshakes_ms.items()}
        self._queued = behind_others(visit.exchanges, trips)
        self.counts: Counter[str] = Counter()

    def entry(self, place: int, exchange: Exchange) -> har.Entry:
        """The entry of an exchange."""
        answer = self._answers.get(exchange.id)
        status = exchange.status or (answer.status if answer else None) or 0
        hidden = self._secrets.text
        headers = answer.headers if answer and answer.headers else _split(exchange.headers)
        named = {name.lower(): value for name, value in headers}
        first, last = self._times(exchange, answer)
        asked = {name.lower(): value for name, value in answer.request_headers} if answer else {}
        posted = asked.get("content-length", "")
        return har.Entry(
            place=place,
            page=_PAGE,
            started=_clock(self._visit, exchange.discovered),
            time=max(0.0, (last - exchange.discovered) * 1000),
            request=har.Request(
                method=exchange.method,
                url=hidden(exchange.url),
                headers=[har.Header(name="Referer", value=hidden(asked.get("referer", "")))],
                body_size=int(posted) if posted.isdecimal() else 0,
            ),
            response=har.Response(
                status=status,
                http_version=exchange.protocol or "",
                headers=[har.Header(name=name, value=hidden(value)) for name, value in headers],
                body_size=answer.wire_bytes if answer else -1,
                content=self._content(exchange, answer, status, named),
            ),
            timings=self._timings(exchange, answer, first, last),
            connection=str(exchange.connection or ""),
            initiator={"type": exchange.initiator_type, "url": hidden(exchange.initiator or "")},
            priority=exchange.priority,
            resource_type=_RESOURCE_TYPES.get(exchange.type, ""),
        )

    def _times(self, exchange: Exchange, answer: Answer | None) -> tuple[float, float]:
        """First and last byte, from DevTools, else in whole milliseconds from the NetLog."""
        seen = answer.first_byte_ms if answer else None
        first = exchange.first_byte or (seen / 1000 if seen else exchange.discovered)
        ended = answer.last_byte_ms if answer else None
        last = exchange.last_byte or (ended / 1000 if ended else first)
        return max(first, exchange.discovered), max(first, last)

    def _timings(self, exchange: Exchange, answer: Answer | None, first: float, last: float) -> har.Timings:
        sent = exchange.sent or (answer.sent_ms / 1000 if answer and answer.sent_ms else None)
        # Also for a connection that was opened before this request: its handshake gives the round trip.
        shook = self._handshakes.pop(exchange.connection, None) if exchange.connection else None
        connect = -1.0 if shook is None else max(float(shook), 0.5)
        if exchange.connect:
            begin, end = exchange.connect
            connect = (end - begin) * 1000
        return har.Timings(
            connect=connect,  # only TCP's: a HAR would add that of TLS, and name it ssl
            wait=max(0.0, (first - sent - self._queued.get(exchange.id, 0.0)) * 1000) if sent else -1.0,
            receive=(last - first) * 1000,
        )

    def _content(
        self, exchange: Exchange, answer: Answer | None, status: int, headers: dict[str, str]
    ) -> har.Content:
        coding = headers.get("content-encoding", "").strip().lower()
        bodiless = status in (0, 204, 304) or 300 <= status < 400 or exchange.method in ("HEAD", "OPTIONS")
        if answer is None or (not answer.decoded_bytes and exchange.decoded_bytes):
            if not bodiless:
                self.counts["answers that the browser's log does not have, synthesised"] += 1
            return har.Content(size=exchange.decoded_bytes)
        stated = headers.get("content-length", "")
        if 300 <= status < 400 and status != 304 and stated.isdecimal() and int(stated) > 0:
            self.counts["bodies of redirects, which no browser reads, synthesised"] += 1
            return har.Content(size=int(stated))
        if (not exchange.done or exchange.failed) and answer.decoded_bytes:
            self.counts["answers cut off before their end, kept as far as they came"] += 1
        if not answer.kept:
            self.counts["bodies too large to be kept, synthesised"] += 1
            return har.Content(size=answer.decoded_bytes)
        if coding not in ("", "identity") and not answer.coded and answer.decoded_bytes:
            self.counts["bodies in a coding that the browser did not undo, synthesised"] += 1
            return har.Content(size=answer.decoded_bytes)
        body = bytes(answer.body)
        if any(word in headers.get("content-type", "").lower() for word in _TEXT):
            body = self._secrets.hidden(body)
        text = base64.b64encode(body).decode()
        answer.body.clear()
        return har.Content(size=len(body), text=text, encoding="base64")


def _split(headers: dict[str, str]) -> list[tuple[str, str]]:
    """Splits headers of the same name, which DevTools joins by newlines."""
    return [(name, value) for name, values in headers.items() for value in values.split("\n")]


def _pairs(exchanges: list[Exchange], answers: list[Answer]) -> dict[str, Answer]:
    """The NetLog's answer for each exchange; the nearest in time if an address has several."""
    waiting: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for answer in answers:
        waiting[answer.method, urldefrag(answer.url).url].append(answer)
    pairs: dict[str, Answer] = {}
    for exchange in exchanges:
        candidates = waiting[exchange.method, urldefrag(exchange.url).url]
        if candidates:
            asked = (exchange.queued or exchange.discovered) * 1000
            nearest = min(candidates, key=lambda answer: abs(answer.started_ms - asked))
            candidates.remove(nearest)
            pairs[exchange.id] = nearest
    return pairs
