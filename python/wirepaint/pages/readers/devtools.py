"""Reads logs of Chrome's DevTools protocol: their requests become the entries of a recording."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from wirepaint.errors import UsageError
from wirepaint.pages import har
from wirepaint.pages.readers.devtools_events import (
    Event,
    Headers,
    Params,
    Request,
    Response,
    Timing,
    events,
    lines,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ACCEPTED = "a log with the events Network.requestWillBeSent and Network.responseReceived"


@dataclass
class _Hop:
    """One request and its answer; a redirect is a hop of its own."""

    id: str
    request: Request
    started: float
    wall: float
    initiator: Any
    type: str
    page: int
    response: Response | None = None
    finished: float = -1.0
    data: int = 0
    transfer: int = -1
    cached: bool = False
    body: Params | None = None
    asked: Headers = field(default_factory=dict)
    answered: Headers = field(default_factory=dict)


def read(data: bytes, place: str) -> har.Log:
    """Reads a log that is a JSON list of events."""
    reader = _Reader()
    for event in events(data, place):
        reader.take(event)
    return reader.log(place)


def read_lines(data: bytes, place: str) -> har.Log:
    """Reads a log with one event per line."""
    return read(lines(data), place)


class _Reader:
    def __init__(self) -> None:
        self._hops: list[_Hop] = []
        self._open: dict[str, _Hop] = {}
        """The last hop of each request id."""
        self._of: dict[str, list[_Hop]] = defaultdict(list)
        self._asked: dict[str, list[Headers]] = defaultdict(list)
        self._answered: dict[str, list[Params]] = defaultdict(list)
        self._main = ""
        self._pages: list[_Hop] = []
        self._load: dict[int, float] = {}
        self._commands: dict[int | str, str] = {}

    def take(self, event: Event) -> None:
        """Reads the next event; ignores unrelated ones."""
        params = event.params
        hop = self._open.get(params.request_id)
        match event.method:
            case "Network.requestWillBeSent" if params.request is not None:
                self._sent(params, params.request, hop)
            case "Network.responseReceived" if hop is not None and params.response is not None:
                hop.response = params.response
                hop.type = params.type or hop.type
            case "Network.dataReceived" if hop is not None:
                hop.data += max(params.data, 0)
            case "Network.loadingFinished" if hop is not None:
                hop.finished, hop.transfer = params.timestamp, params.encoded
            case "Network.requestServedFromCache" if hop is not None:
                hop.cached = True
            case "Network.resourceChangedPriority" if hop is not None and params.priority:
                hop.request.priority = params.priority
            case "Network.requestWillBeSentExtraInfo":
                self._asked[params.request_id].append(params.headers)
            case "Network.responseReceivedExtraInfo":
                self._answered[params.request_id].append(params)
            case "Page.loadEventFired" if self._pages:
                self._load.setdefault(len(self._pages), params.timestamp)
            case "Page.frameNavigated" if params.frame and not params.frame.parent:
                self._main = self._main or params.frame.id
            case "Network.getResponseBody":
                self._body(event)
            case "" if event.id in self._commands and event.result is not None:
                self._keep(self._commands[event.id], event.result)
            case _:
                pass

    def _sent(self, params: Params, request: Request, last: _Hop | None) -> None:
        redirected = params.redirect is not None and last is not None
        if redirected and last is not None:
            last.response, last.finished = params.redirect, params.timestamp
            last.transfer = params.redirect.size if params.redirect else -1
        network = request.url.lower().startswith("http")
        hop = _Hop(
            params.request_id, request, params.timestamp, params.wall_time, params.initiator,
            params.type, len(self._pages),
        )  # fmt: skip
        if params.type == "Document" and network and not redirected:
            self._main = self._main or params.frame_id
            if params.frame_id == self._main or not params.frame_id:
                self._pages.append(hop)
                hop.page = len(self._pages)
        self._open[params.request_id] = hop
        self._of[params.request_id].append(hop)
        self._hops.append(hop)

    def _body(self, event: Event) -> None:
        found = event.result if event.result is not None else event.params
        if found.body is not None:
            self._keep(event.params.request_id, found)
        elif event.id is not None:
            self._commands[event.id] = event.params.request_id

    def _keep(self, request_id: str, found: Params) -> None:
        if (hop := self._open.get(request_id)) is not None and found.body is not None:
            hop.body = found

    def log(self, place: str) -> har.Log:
        """The recording; raises UsageError if the log is no page load."""
        if not self._hops or all(hop.response is None for hop in self._hops):
            raise UsageError(place, "no request with an answer", _ACCEPTED)
        if len(self._hops) > har.MAX_ENTRIES:
            raise UsageError(place, f"{len(self._hops)} requests", f"at most {har.MAX_ENTRIES}")
        self._add_extras()
        zero = next((hop.wall - hop.started for hop in self._hops if hop.wall > 0), 0.0)
        log = har.Log(creator=har.Creator(name="a DevTools log"), entries=[])
        for number, hop in enumerate(self._pages, start=1):
            loaded = self._load.get(number, -1.0)
            log.pages.append(
                har.RecordedPage(
                    id=f"page_{number}",
                    title=hop.request.url,
                    started=_date(zero + hop.started),
                    timings=har.PageTimings(on_load=max((loaded - hop.started) * 1000, -1.0)),
                )
            )
        unanswered = sum(hop.response is None and hop.request.url.startswith("http") for hop in self._hops)
        if unanswered:
            log.notes.append(f"{unanswered} requests without an answer")
        log.entries += [_entry(hop, zero) for hop in self._hops if hop.response is not None]
        return log

    def _add_extras(self) -> None:
        """Takes the headers as sent on the wire, if the log has them for each hop of a request."""
        for request_id, hops in self._of.items():
            asked, answered = self._asked.get(request_id, []), self._answered.get(request_id, [])
            for number, hop in enumerate(hops):
                if len(asked) == len(hops):
                    hop.asked = asked[number]
                if len(answered) == len(hops):
                    hop.answered = answered[number].headers


def _entry(hop: _Hop, zero: float) -> har.Entry:
    response = hop.response
    assert response is not None  # the caller leaves out those without
    answered = hop.answered or response.headers
    asked = hop.asked or response.asked or hop.request.headers
    cached = hop.cached or bool(response.from_cache) or bool(response.from_worker)
    transfer = -1 if cached else hop.transfer
    head = response.size if 0 < response.size <= transfer else -1
    content = har.Content(size=hop.data, mime=response.mime)
    if hop.body is not None:
        content.text, content.encoding = hop.body.body, "base64" if hop.body.base64 else ""
    elif hop.finished < 0 or (cached and not hop.data):
        content.size = -1
    return har.Entry(
        page=f"page_{hop.page}" if hop.page else "",
        started=_date(zero + hop.started),
        time=_span(hop.started, hop.finished, 1000),
        request=har.Request(
            method=hop.request.method,
            url=hop.request.url,
            headers=_list(asked),
            body_size=len(hop.request.post.encode("utf-8", "replace")),
        ),
        response=har.Response(
            status=response.status,
            http_version=response.protocol,
            headers=_list(answered),
            headers_size=head,
            body_size=transfer - head if head > 0 and transfer > head else -1,
            transfer_size=transfer,
            content=content,
        ),
        timings=_timings(response.timing, hop.finished),
        connection=response.connection,
        server=response.server,
        initiator=hop.initiator,
        priority=hop.request.priority,
        resource_type=hop.type.lower(),
    )


def _timings(timing: Timing | None, finished: float) -> har.Timings:
    if timing is None:
        return har.Timings()
    headers_at = timing.started + timing.headers_end / 1000
    return har.Timings(
        connect=_span(timing.connect_start, timing.connect_end),
        ssl=_span(timing.ssl_start, timing.ssl_end),
        wait=_span(timing.send_end, timing.headers_end),
        receive=_span(headers_at, finished, 1000),
    )


def _span(start: float, end: float, scale: float = 1.0) -> float:
    return (end - start) * scale if 0 <= start <= end else -1.0


def _list(headers: Headers) -> list[har.Header]:
    return [har.Header(name=n, value=v) for n, text in headers.items() for v in text.split("\n")]


def _date(seconds: float) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return _EPOCH
