"""Parses the events of Chrome's DevTools protocol that describe a page load, from logs.

Formats: a list of events (Lighthouse's ``devtoolslog.json``), one event per line, and both wrapped
in ``message`` (ChromeDriver's performance log, browsertime). Bodies are included if the log has the
answers to ``Network.getResponseBody``.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    model_validator,
)

from wirepaint.pages.har import Size, Text
from wirepaint.pages.model import faults_named

MAX_EVENTS = 200_000


def _headers(value: Any) -> Any:
    """The protocol joins the values of headers with the same name by line ends."""
    if not isinstance(value, dict):
        return {} if value is None else value
    return {str(name): str(text) for name, text in value.items()}


def _number(value: Any) -> Any:
    return value if isinstance(value, int | float) and abs(value) < 1e12 else -1.0


Headers = Annotated[dict[str, str], BeforeValidator(_headers), Field(max_length=1_000)]
Number = Annotated[float, BeforeValidator(_number)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Request(_Part):
    url: str
    method: str
    headers: Headers = {}
    priority: Text = Field(default="", validation_alias="initialPriority")
    post: Text = Field(default="", validation_alias="postData")


class Timing(_Part):
    """``started`` in seconds, the others in ms since then, -1 for none."""

    started: Number = Field(default=-1.0, validation_alias="requestTime")
    connect_start: Number = Field(default=-1.0, validation_alias="connectStart")
    connect_end: Number = Field(default=-1.0, validation_alias="connectEnd")
    ssl_start: Number = Field(default=-1.0, validation_alias="sslStart")
    ssl_end: Number = Field(default=-1.0, validation_alias="sslEnd")
    send_end: Number = Field(default=-1.0, validation_alias="sendEnd")
    headers_end: Number = Field(default=-1.0, validation_alias="receiveHeadersEnd")


class Response(_Part):
    status: int
    headers: Headers = {}
    asked: Headers = Field(default={}, validation_alias="requestHeaders")
    mime: Text = Field(default="", validation_alias="mimeType")
    protocol: Text = ""
    connection: Text = Field(default="", validation_alias="connectionId")
    server: Text = Field(default="", validation_alias="remoteIPAddress")
    size: Size = Field(default=-1, validation_alias="encodedDataLength")
    from_cache: bool | None = Field(default=False, validation_alias="fromDiskCache")
    from_worker: bool | None = Field(default=False, validation_alias="fromServiceWorker")
    timing: Timing | None = None


class Frame(_Part):
    id: Text = ""
    parent: Text = Field(default="", validation_alias="parentId")
    url: Text = ""


class Params(_Part):
    request_id: Text = Field(default="", validation_alias="requestId")
    frame_id: Text = Field(default="", validation_alias="frameId")
    timestamp: Number = -1.0
    wall_time: Number = Field(default=-1.0, validation_alias="wallTime")
    type: Text = ""
    initiator: Any = None
    request: Request | None = None
    response: Response | None = None
    redirect: Response | None = Field(default=None, validation_alias="redirectResponse")
    headers: Headers = {}
    status: Size = Field(default=-1, validation_alias="statusCode")
    data: Size = Field(default=-1, validation_alias="dataLength")
    encoded: Size = Field(default=-1, validation_alias="encodedDataLength")
    priority: Text = Field(default="", validation_alias="newPriority")
    frame: Frame | None = None
    body: str | None = None
    base64: bool | None = Field(default=False, validation_alias="base64Encoded")


class Event(_Part):
    """An event, or a command or its answer."""

    method: Text = ""
    id: int | str | None = None
    params: Params = Field(default_factory=lambda: Params.model_validate({}))
    result: Params | None = None

    @model_validator(mode="before")
    @classmethod
    def _unwrapped(cls, value: Any) -> Any:
        for _ in range(3):
            if not isinstance(value, dict) or "message" not in value or "method" in value:
                break
            value = value["message"]
            if isinstance(value, str):
                try:
                    value = json.loads(value)
                except (ValueError, RecursionError):
                    break
        if isinstance(value, dict):
            kept = {key: value[key] for key in ("method", "id", "params", "result") if key in value}
            method = value.get("method")
            wanted = method is None or (isinstance(method, str) and method.startswith(("Network.", "Page.")))
            return kept if wanted else {}
        return value


_EVENTS = TypeAdapter(Annotated[list[Event], Field(max_length=MAX_EVENTS)])


def events(data: bytes, place: str) -> list[Event]:
    """The events of a log that is a JSON list; raises UsageError for anything else."""
    with faults_named(place):
        return _EVENTS.validate_json(data)


def lines(data: bytes) -> bytes:
    """Turns one event per line into a JSON list."""
    return b"[" + b",".join(line for line in data.splitlines() if line.strip()) + b"]"
