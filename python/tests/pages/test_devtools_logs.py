"""Logs of Chrome's DevTools protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recording import START

from wirepaint.errors import UsageError
from wirepaint.pages import Page, import_har

BASE = "https://site.test/"
EPOCH = 1000.0
"""The log's clock at the navigation, in seconds."""


def event(method: str, /, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": params}


def sent(number: str, url: str, at: float, kind: str, **keys: Any) -> dict[str, Any]:
    request = {"url": url, "method": "GET", "headers": {"Referer": BASE}, "initialPriority": "High"}
    return event(
        "Network.requestWillBeSent", requestId=number, frameId="main", request=request,
        timestamp=EPOCH + at / 1000, wallTime=START.timestamp() + at / 1000, type=kind, **keys,
    )  # fmt: skip


def answer(mime: str, status: int = 200, **keys: Any) -> dict[str, Any]:
    headers = {"content-type": mime, "set-cookie": "a=1\nb=2"}
    return {"status": status, "mimeType": mime, "headers": headers, "protocol": "h2", **keys}


def answered(number: str, mime: str, at: float, size: int, total: int) -> list[dict[str, Any]]:
    start = EPOCH + at / 1000
    timing = {"requestTime": start, "connectStart": 0, "connectEnd": 30, "sslStart": 10, "sslEnd": 30,
              "sendEnd": 31, "receiveHeadersEnd": 51}  # fmt: skip
    response = answer(mime, encodedDataLength=100, connectionId=7, timing=timing)
    return [
        event("Network.responseReceived", requestId=number, response=response, timestamp=start + 0.06),
        event("Network.dataReceived", requestId=number, dataLength=size, encodedDataLength=0),
        event("Network.loadingFinished", requestId=number, encodedDataLength=total, timestamp=start + 0.08),
    ]


def load() -> list[dict[str, Any]]:
    frame = {"type": "parser", "url": BASE + "home"}
    return [
        sent("0", "data:,", -10, "Document"),
        sent("1", BASE, 0, "Document", initiator={"type": "other"}),
        sent("1", BASE + "home", 50, "Document", initiator={"type": "other"},
             redirectResponse=answer("text/html", 302) | {"headers": {"location": "/home"}}),
        *answered("1", "text/html", 50, 3000, 1100),
        sent("2", BASE + "a.js", 150, "Script", initiator=frame),
        *answered("2", "text/javascript", 150, 5000, 5100),
        sent("3", BASE + "b.json", 300, "Fetch",
             initiator={"type": "script", "stack": {"callFrames": [{"url": BASE + "a.js"}]}}),
        *answered("3", "application/json", 300, 10, 110),
        sent("4", BASE + "never", 300, "Image", initiator=frame),
        event("Page.loadEventFired", timestamp=EPOCH + 0.25),
    ]  # fmt: skip


def imported(folder: Path, text: str, page: str | None = None) -> Page:
    (folder / "log.json").write_text(text)
    return import_har(folder / "log.json", folder / "page", page=page)


def wrapped(each: dict[str, Any]) -> dict[str, Any]:
    return {"level": "INFO", "message": json.dumps({"message": each, "webview": "x"}), "timestamp": 1}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(load()),
        "\n".join(map(json.dumps, load())),
        json.dumps([{"message": each} for each in load()], indent=1),
        json.dumps([wrapped(each) for each in load()]),
        "\n".join(json.dumps(wrapped(each)) for each in load()),
    ],
    ids=["list", "lines", "message", "ChromeDriver", "ChromeDriver's lines"],
)
def test_a_log_gives_requests_with_causes_sizes_and_times(tmp_path: Path, text: str) -> None:
    page = imported(tmp_path, text)
    assert [(r.url.removeprefix(BASE), r.type, r.cause.by, r.cause.kind) for r in page.resources] == [
        ("", "html", None, "navigation"), ("home", "html", 0, "redirect"), ("a.js", "js", 1, "parser"),
        ("b.json", "data", 2, "script"),
    ]  # fmt: skip
    script = page.resources[2]
    assert (script.decoded_bytes, script.wire_bytes, script.priority) == (5000, 5000, "High")
    assert page.resources[1].decoded_bytes == 3000
    assert (script.recorded.start_ms, script.recorded.wait_ms) == (150.0, pytest.approx(20.0))
    assert script.cause.after_ms == pytest.approx(20.0)
    assert [r.recorded.after_load for r in page.resources] == [False, False, False, True]
    assert "1 requests without an answer" in page.notes


def test_bodies_are_there_when_the_log_holds_them(tmp_path: Path) -> None:
    asked = {"id": 5, "method": "Network.getResponseBody", "params": {"requestId": "1"}}
    given = {"id": 5, "result": {"body": "PHA+", "base64Encoded": True}}
    page = imported(tmp_path, json.dumps([*load(), asked, given]))
    stored = [r.body for r in page.resources if r.body]
    assert (tmp_path / "page" / "bodies" / stored[0]).read_bytes() == b"<p>"


def test_each_navigation_is_a_page(tmp_path: Path) -> None:
    second = [
        sent("9", BASE + "two", 900, "Document", initiator={"type": "other"}),
        *answered("9", "text/html", 900, 3000, 1100),
    ]
    text = json.dumps(load() + second)
    assert len(imported(tmp_path, text).resources) == 4
    assert [r.url for r in imported(tmp_path, text, page="2").resources] == [BASE + "two"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "found no request with an answer"),
        ("[1]", "found 1"),
        (
            '[{"method": "Network.requestWillBeSent", "params": {"request": {"url": 5}}}]',
            "request.url: found 5",
        ),
        ('{"method": "Page.x"}\n{"method"', "found what is no JSON"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        imported(tmp_path, text)
    assert message in str(caught.value)
