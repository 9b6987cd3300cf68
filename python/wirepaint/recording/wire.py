"""Reads headers and bodies from a NetLog of capture mode ``Everything``.

DevTools gives bodies as text in a guessed encoding, forgets bodies of documents after a navigation,
and has none of redirects. The NetLog has the bytes of every body, before and after content-encoding,
for all requests. The log is read line by line, since it holds all bytes several times.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirepaint.errors import RunFailed

LARGEST_BODY = 64 * 2**20
LARGEST_PAGE = 256 * 2**20
"""Bytes of bodies that are kept; further bytes are only counted."""

_TAIL = re.compile(
    rb'"source":\{"id":(\d+),"start_time":"\d+","type":\d+\},"time":"(\d+)","type":(\d+)\}[\],]*\s*$'
)


@dataclass
class Answer:
    """One request and its answer; each hop of a redirect has its own. Times in ms of CLOCK_MONOTONIC."""

    url: str
    method: str
    started_ms: int
    sent_ms: int | None = None
    first_byte_ms: int | None = None
    last_byte_ms: int | None = None
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    request_headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    """The decoded body."""
    decoded_bytes: int = 0
    encoded_bytes: int = 0
    coded: bool = False
    """True if the browser decoded a content-encoding."""

    @property
    def wire_bytes(self) -> int:
        """Size of the body on the wire."""
        return self.encoded_bytes if self.coded else self.decoded_bytes

    @property
    def kept(self) -> bool:
        """True if ``body`` is complete."""
        return len(self.body) == self.decoded_bytes


@dataclass
class Wire:
    """All answers, in order of their requests, and the TCP handshakes by connection."""

    answers: list[Answer]
    handshakes_ms: dict[int, int]


def read(path: Path) -> Wire:
    """Reads a log, also one that was cut off; raises ``RunFailed`` if there is none."""
    try:
        with path.open("rb") as file:
            constants = json.loads(file.readline().strip().rstrip(b",") + b"}")["constants"]
            return _Reader(constants["logEventTypes"], constants["logEventPhase"]).run(file)
    except OSError as error:
        raise RunFailed(f"the browser left no NetLog: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailed(f"the browser's NetLog is not readable: {error!r}") from None


class _Reader:
    def __init__(self, types: dict[str, int], phases: dict[str, int]) -> None:
        self._handlers = {
            types[name.removeprefix("_on_")]: getattr(self, name)
            for name in dir(self)
            if name.startswith("_on_")
        }
        self._begin, self._end = phases["PHASE_BEGIN"], phases["PHASE_END"]
        self._answers: list[Answer] = []
        self._open: dict[int, Answer] = {}
        self._opened: dict[int, int] = {}
        self._handshakes: dict[int, int] = {}
        self._room = LARGEST_PAGE

    def run(self, lines: Iterator[bytes]) -> Wire:
        for line in lines:
            tail = _TAIL.search(line[-200:])
            if tail and (handler := self._handlers.get(int(tail[3]))):
                event = json.loads(line.strip().removeprefix(b'"events": [').rstrip(b",]"))
                handler(int(tail[1]), int(tail[2]), event["phase"], event.get("params") or {})
        return Wire(self._answers, self._handshakes)

    def _on_URL_REQUEST_START_JOB(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if phase == self._begin:
            answer = Answer(params.get("url", ""), params.get("method", "GET"), time)
            self._open[source] = answer
            self._answers.append(answer)

    def _on_HTTP_TRANSACTION_SEND_REQUEST_HEADERS(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        if answer := self._open.get(source):
            answer.sent_ms, answer.request_headers = time, _pairs(params["headers"])

    _on_HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS = _on_HTTP_TRANSACTION_SEND_REQUEST_HEADERS

    def _on_HTTP_TRANSACTION_READ_RESPONSE_HEADERS(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        if answer := self._open.get(source):
            first, *rest = params["headers"]
            answer.first_byte_ms, answer.headers = time, _pairs(rest)
            status = first.split()[1:2]
            answer.status = int(status[0]) if status and status[0].isdigit() else None

    def _on_URL_REQUEST_FILTERS_SET(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if answer := self._open.get(source):
            answer.coded = True

    def _on_URL_REQUEST_JOB_BYTES_READ(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        if answer := self._open.get(source):
            answer.encoded_bytes += params["byte_count"]
            answer.last_byte_ms = time

    def _on_URL_REQUEST_JOB_FILTERED_BYTES_READ(
        self, source: int, time: int, phase: int, params: dict[str, Any]
    ) -> None:
        if (answer := self._open.get(source)) is None:
            return
        count = params["byte_count"]
        answer.last_byte_ms = time
        if (
            answer.kept
            and "bytes" in params
            and len(answer.body) + count <= LARGEST_BODY
            and count <= self._room
        ):
            answer.body += base64.b64decode(params["bytes"])
            self._room -= count
        answer.decoded_bytes += count

    def _on_TCP_CONNECT(self, source: int, time: int, phase: int, params: dict[str, Any]) -> None:
        if phase == self._begin:
            self._opened[source] = time
        elif source in self._opened and "net_error" not in params:
            self._handshakes[source] = time - self._opened[source]


def _pairs(lines: list[str]) -> list[tuple[str, str]]:
    """Names and values; HTTP/2 lists pseudo-headers too, which begin with a colon."""
    pairs = (line.partition(":") for line in lines if not line.startswith(":"))
    return [(name.strip(), value.strip()) for name, _, value in pairs]
