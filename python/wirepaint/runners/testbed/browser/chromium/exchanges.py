"""Gathers DevTools' network events into one exchange per request on the network.

Times are seconds of CLOCK_MONOTONIC as DevTools gives them. A redirect ends one exchange and
begins the next, so every answer of a server is an exchange of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wirepaint.runners.testbed.browser.chromium.devtools import EventHandler

TYPES = {
    "Document": "html",
    "Stylesheet": "css",
    "Script": "js",
    "Image": "image",
    "Font": "font",
    "Media": "media",
    "XHR": "data",
    "Fetch": "data",
    "EventSource": "data",
    "Ping": "data",
}


@dataclass
class Exchange:
    """One request and its answer."""

    id: str
    """Unique in the visit: DevTools' id, with the number of the hop after a redirect."""
    url: str
    method: str
    type: str
    frame: str
    initiator: str | None
    initiator_type: str
    priority: str
    """The last priority; ``asked_priority`` is the first."""
    discovered: float
    queued: float | None = None
    sent: float | None = None
    connect: tuple[float, float] | None = None
    """Begin and end of the connect that this request waited for."""
    tls_done: float | None = None
    first_byte: float | None = None
    last_byte: float | None = None
    status: int | None = None
    protocol: str | None = None
    connection: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the response as DevTools reports them; repeated ones joined by newlines."""
    encoded_bytes: int = 0
    head_bytes: int = 0
    """Bytes that came with the head of the response."""
    decoded_bytes: int = 0
    from_cache: bool = False
    wire_status: int | None = None
    """Status of the server's answer; ``status`` is the one that the page sees."""
    failed: str | None = None
    done: bool = False
    asked_priority: str = ""
    stack: tuple[str, ...] = ()
    """Addresses of the scripts that ran when the request was made, the innermost first."""

    @property
    def revalidated(self) -> bool:
        """Whether the server answered with 304, and the cache gave the body."""
        return self.wire_status == 304 and self.status != 304

    @property
    def base_id(self) -> str:
        """DevTools' id, shared by the hops of a redirect."""
        return self.id.partition(":")[0]

    def answered(self, response: dict[str, Any]) -> None:
        """Stores DevTools' record of the response's head."""
        self.status = response.get("status")
        self.protocol = response.get("protocol")
        self.headers = response.get("headers", {})
        if (
            response.get("fromDiskCache")
            or response.get("fromServiceWorker")
            or response.get("fromPrefetchCache")
        ):
            self.from_cache = True
        # Id 0 means no connection: a cache or an error.
        self.connection = response.get("connectionId") or None
        self.encoded_bytes = self.head_bytes = int(response.get("encodedDataLength", 0))
        if timing := response.get("timing"):
            start = timing["requestTime"]

            def at(key: str) -> float | None:
                return start + timing[key] / 1000 if timing.get(key, -1) >= 0 else None

            # sendEnd is the time when the write was reported back, sometimes after the data arrived.
            self.queued, self.sent = start, at("sendStart")
            self.first_byte = at("receiveHeadersStart") or at("receiveHeadersEnd")
            begin, end = at("connectStart"), at("connectEnd")
            if begin is not None and end is not None and not response.get("connectionReused"):
                # connectEnd includes TLS; the TCP handshake ends where TLS begins.
                self.connect, self.tls_done = (begin, at("sslStart") or end), at("sslEnd")


class Exchanges:
    """Collects the exchanges of all sessions of one visit, in the order in which they began."""

    def __init__(self) -> None:
        self.all: list[Exchange] = []
        self.last_event: float | None = None
        """Time of the newest network event."""
        self._open: dict[str, Exchange] = {}
        self._early: dict[str, float] = {}
        self._handlers: dict[str, EventHandler] = {
            "Network.requestWillBeSent": self._will_be_sent,
            "Network.responseReceived": self._response,
            "Network.responseReceivedExtraInfo": self._on_wire,
            "Network.dataReceived": self._data,
            "Network.loadingFinished": self._finished,
            "Network.loadingFailed": self._failed,
            "Network.requestServedFromCache": self._served_from_cache,
            "Network.resourceChangedPriority": self._priority,
        }

    @property
    def in_flight(self) -> int:
        """Exchanges that have not ended."""
        return sum(not exchange.done for exchange in self._open.values())

    def handle(self, method: str, params: dict[str, Any], session: str | None) -> None:
        """Handles any DevTools event; ignores those of other domains."""
        if handler := self._handlers.get(method):
            handler(method, params, session)

    def _will_be_sent(self, method: str, params: dict[str, Any], session: str | None) -> None:
        request, number = params["request"], params["requestId"]
        if not request["url"].startswith(("http:", "https:")):
            return
        hop, stack = 0, tuple(_stack(params.get("initiator", {})))
        initiator, kind = _initiator(params.get("initiator", {}), stack)
        if (redirect := params.get("redirectResponse")) and _is_internal(redirect):
            # HSTS: it sent no request on the network.
            if (before := self._open.pop(number, None)) in self.all:
                self.all.remove(before)
        elif redirect and (before := self._open.get(number)):
            hop = int(before.id.partition(":")[2] or 0) + 1
            before.answered(redirect)
            before.last_byte = _headers_end(redirect) or params["timestamp"]
            before.done = True
            initiator, kind = before.url, "redirect"
        exchange = Exchange(
            id=f"{number}:{hop}" if hop else number,
            url=request["url"],
            method=request["method"],
            type=TYPES.get(params.get("type", ""), "other"),
            frame=params.get("frameId", ""),
            initiator=initiator,
            initiator_type=kind,
            priority=request.get("initialPriority", ""),
            asked_priority=request.get("initialPriority", ""),
            discovered=params["timestamp"],
            stack=stack,
        )
        self.all.append(exchange)
        self._open[number] = exchange
        self.last_event = params["timestamp"]

    def _response(self, method: str, params: dict[str, Any], session: str | None) -> None:
        if exchange := self._open.get(params["requestId"]):
            exchange.answered(params["response"])
            exchange.type = TYPES.get(params.get("type", ""), exchange.type)
            self.last_event = params["timestamp"]

    def _on_wire(self, method: str, params: dict[str, Any], session: str | None) -> None:
        if exchange := self._open.get(params["requestId"]):
            exchange.wire_status = params["statusCode"]

    def _data(self, method: str, params: dict[str, Any], session: str | None) -> None:
        if exchange := self._open.get(params["requestId"]):
            exchange.decoded_bytes += params["dataLength"]
            self.last_event = params["timestamp"]

    def _finished(self, method: str, params: dict[str, Any], session: str | None) -> None:
        if exchange := self._open.get(params["requestId"]):
            exchange.encoded_bytes = int(params["encodedDataLength"])
            if exchange.connection is None and any(
                other.url == exchange.url and other.connection is not None for other in self.all
            ):
                # It waited for another request for the same address and took that one's answer.
                exchange.from_cache = True
            exchange.last_byte = params["timestamp"]
            exchange.done = True
            self.last_event = max(params["timestamp"], self.last_event or 0)

    def _failed(self, method: str, params: dict[str, Any], session: str | None) -> None:
        if exchange := self._open.get(params["requestId"]):
            cause = params.get("blockedReason") or params.get("errorText") or "failed"
            cors = params.get("corsErrorStatus")
            exchange.failed = f"{cause} ({cors.get('corsError')})" if cors else cause
            exchange.done = True
            self.last_event = params["timestamp"]

    def _served_from_cache(self, method: str, params: dict[str, Any], session: str | None) -> None:
        if exchange := self._open.get(params["requestId"]):
            exchange.from_cache = True

    def _priority(self, method: str, params: dict[str, Any], session: str | None) -> None:
        if exchange := self._open.get(params["requestId"]):
            exchange.priority = params["newPriority"]


def _initiator(initiator: dict[str, Any], stack: Sequence[str]) -> tuple[str | None, str]:
    """Address and kind of a request's cause."""
    kind = initiator.get("type", "other")
    if kind not in ("parser", "script", "preload"):
        kind = "other"
    return initiator.get("url") or next(iter(stack), None), kind


def _stack(initiator: dict[str, Any]) -> dict[str, None]:
    """Addresses in the call stack, each once, the innermost first."""
    found: dict[str, None] = {}
    stack = initiator.get("stack")
    while stack:
        found |= dict.fromkeys(call["url"] for call in stack.get("callFrames", ()) if call.get("url"))
        stack = stack.get("parent")
    return found


def _is_internal(redirect: dict[str, Any]) -> bool:
    """True for a redirect that the browser made by itself."""
    return any(name.lower() == "non-authoritative-reason" for name in redirect.get("headers", ()))


def _headers_end(response: dict[str, Any]) -> float | None:
    timing = response.get("timing")
    if not timing or timing.get("receiveHeadersEnd", -1) < 0:
        return None
    return timing["requestTime"] + timing["receiveHeadersEnd"] / 1000
