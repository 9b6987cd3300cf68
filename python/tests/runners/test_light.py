"""The records of light users, read as what every browser reports; the real data plane on loopback."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from wirepaint import browsers, dataplane
from wirepaint.runners.testbed.browser import light
from wirepaint.runners.testbed.browser.contract import UNFINISHED

PORT = 8443
MS = 1_000_000


def described(folder: Path, timeouts_ms: list[int]) -> Path:
    """A run of one visit for each timeout: a document, and an image that takes 300 ms."""
    process = os.getpid()
    address = f"127.{64 + process // 256 % 128}.{process % 256}.77"
    origin = {"host": "a.test", "address": address, "port": PORT, "encrypted": True}
    image = {"kind": "markup", "by": 0, "at": 20, "element": "image"}
    resources: list[dict[str, Any]] = [
        {"type": "html", "wire_bytes": 4_000, "cause": None, "document": {"body_at": 10}},
        {"type": "image", "wire_bytes": 9_000, "cause": image, "think_ns": 300 * MS},
    ]
    responses: list[dict[str, Any]] = []
    for number, resource in enumerate(resources):
        url, headers = f"https://a.test:{PORT}/{number}", [["content-type", "a/b"]]
        resource |= {"url": url, "origin": 0, "status": 200, "headers": headers}
        resource["decoded_bytes"] = resource["wire_bytes"]
        body = folder / f"body{number}"
        body.write_bytes(b"x" * resource["wire_bytes"])
        response = {"method": "GET", "url": url, "status": 200, "headers": headers, "body": str(body)}
        responses.append(response | {"think_ns": resource.get("think_ns", 0)})
    congestion = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    visit = {"user_agent": "user", "name": "page", "page": "page", "browser": "light"}
    run = {
        "format": 5,
        "id": "light",
        "seed": 1,
        "trace_dir": str(folder),
        "work_dir": str(folder),
        "hosts": [
            {"name": "server", "role": "server", "congestion": "reno"},
            {"name": "client", "role": "client", "congestion": congestion, "address": "127.0.0.1"},
        ],
        "sites": {"site": {"origins": [origin], "responses": responses}},
        "pages": {"page": {"origins": [origin], "resources": resources}},
        "browsers": {"light": browsers.light(browsers.USUAL, connections=2, pipelining=1)},
        "visits": [visit | {"timeout_ns": timeout * MS} for timeout in timeouts_ms],
    }
    file = folder / "run.json"
    file.write_text(json.dumps(run))
    return file


@contextmanager
def server(run: Path) -> Iterator[str]:
    """The replay server; gives the hash of its authority."""
    with subprocess.Popen([dataplane.program(), "replay", run], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["ca_spki_sha256"]
        finally:
            process.terminate()


def test_a_visit_is_read_as_a_page_load_and_a_failed_one_with_its_cause(tmp_path: Path) -> None:
    run = described(tmp_path, timeouts_ms=[10_000, 250])
    with server(run) as authority:
        verb = [dataplane.program(), "light", run, f"--ca-spki-sha256={authority}"]
        subprocess.run(verb, check=True, stdout=subprocess.PIPE)
    assert light.failures(tmp_path) == {1: "no load event within 0.25 s"}
    [(number, load)] = light.read(tmp_path).items()
    assert number == 0
    assert load.first_paint is not None
    assert load.navigation_start < load.first_paint < load.load_event <= load.ended
    document, image = load.requests
    assert (document.id, document.type, document.status, document.protocol) == (
        load.document,
        "html",
        200,
        "h2",
    )
    assert image.initiator == document.url
    assert image.sent is not None and image.first_byte is not None
    assert image.first_byte - image.sent >= 300 * MS
    assert [request.failed for request in load.requests] == [None, None]
    [connection] = [connection for connection in load.connections if connection.requests]
    assert (connection.requests, connection.tls, connection.protocol) == (2, "TLS 1.3", "h2")
    assert connection.received > 13_000
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert light.congestion_controls(load) == [default]
    assert sum(chunk.bytes for chunk in image.chunks) == pytest.approx(9_000, abs=300)


def test_a_request_without_an_answer_says_so(tmp_path: Path) -> None:
    run = described(tmp_path, timeouts_ms=[10_000])
    text = json.loads(run.read_text())
    # The load event does not wait for it, and the visit ends before its answer.
    text["pages"]["page"]["resources"][1]["holds_load"] = "never"
    text["visits"][0]["timeout_ns"] = 280 * MS
    run.write_text(json.dumps(text))
    with server(run) as authority:
        verb = [dataplane.program(), "light", run, f"--ca-spki-sha256={authority}"]
        subprocess.run(verb, check=True, stdout=subprocess.PIPE)
    assert [request.failed for request in light.read(tmp_path)[0].requests] == [None, UNFINISHED]


def test_what_its_cache_holds_is_told_as_other_browsers_tell_it(tmp_path: Path) -> None:
    run = described(tmp_path, timeouts_ms=[10_000])
    text = json.loads(run.read_text())
    date = [["last-modified", "Sat, 26 Oct 1985 08:15:00 GMT"]]
    document, image = text["pages"]["page"]["resources"]
    document |= {"cached": "stale", "headers": date}
    image["cached"] = "fresh"
    text["sites"]["site"]["responses"][0]["headers"] += date
    run.write_text(json.dumps(text))
    with server(run) as authority:
        verb = [dataplane.program(), "light", run, f"--ca-spki-sha256={authority}"]
        subprocess.run(verb, check=True, stdout=subprocess.PIPE)
    confirmed, cached = light.read(tmp_path)[0].requests
    assert (confirmed.revalidated, confirmed.from_cache, confirmed.status) == (True, False, 200)
    assert confirmed.connection is not None and confirmed.encoded_bytes < 300
    assert (cached.revalidated, cached.from_cache, cached.status) == (False, True, 200)
    assert (cached.connection, cached.sent, cached.encoded_bytes, cached.failed) == (None, None, 0, None)
    asked = (tmp_path / "server-requests.jsonl").read_text().splitlines()
    assert len(asked) == 1
