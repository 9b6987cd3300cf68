"""The replay server before real Chromium: a small page over every protocol, as the browser sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest

from wirepaint.dataplane import program
from wirepaint.dataplane.description import Host, Origin, Run, Site, Transport
from wirepaint.errors import MachineLacks
from wirepaint.runners.testbed.browser.chromium import program as chromium

try:
    BROWSER, PROGRAM = chromium.find(), program()
except MachineLacks as missing:
    pytest.skip(f"{missing}", allow_module_level=True)

PAGE, OTHER = "page.test", "other.test"
# Loopback addresses of this process alone, so that tests may run beside each other.
PAGE_ADDRESS, OTHER_ADDRESS = (
    f"127.{64 + os.getpid() // 256 % 128}.{os.getpid() % 256}.{number}" for number in (101, 102)
)
IMAGES = 12
THINK_MS = 30

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><!--%s--></svg>' % (b"x" * 30_000)
INDEX = b"""<!doctype html><link rel=stylesheet href=/style.css><body>
<script src=/script.js></script>%s<script defer src=/late.js></script>""" % b"".join(
    b"<img src=/image%d.svg>" % i for i in range(IMAGES)
)
SCRIPT = b"""
function ask(method, url, headers) {
  const x = new XMLHttpRequest();
  x.open(method, url, false);
  for (const [name, value] of Object.entries(headers || {})) x.setRequestHeader(name, value);
  x.send(method == 'POST' ? 'x'.repeat(200000) : null);
  return x;
}
const other = '%s', lines = [];
lines.push(ask('GET', '/data?time=' + Math.random()).responseText);
lines.push(ask('GET', '/away').responseText);
lines.push(ask('POST', '/form').status);
lines.push(ask('GET', other + '/cross', {'x-own': '1'}).responseText);
lines.push(ask('HEAD', '/data').getResponseHeader('content-length'));
const part = ask('GET', '/media', {'range': 'bytes=2-4'});
lines.push(part.status + part.responseText + part.getResponseHeader('content-range'));
document.body.append(Object.assign(document.createElement('pre'), {textContent: lines.join()}));
"""
EXPECTED = "data,arrived,201,crossed,4,206cdebytes 2-4/10"
LATE = b"document.body.append(getComputedStyle(document.body).color, document.images.length)"


def responses(folder: Path, base: str, other: str) -> list[dict[str, Any]]:
    """The recording of the page."""
    found = []

    def add(method: str, url: str, status: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        file = folder / f"body{len(found)}"
        file.write_bytes(body)
        all_headers = [
            ("content-type", kind),
            ("alt-svc", 'h3=":443"'),
            ("strict-transport-security", "max-age=9"),
        ]
        found.append(
            {
                "method": method,
                "url": url,
                "status": status,
                "headers": all_headers + list(headers),
                "body": str(file),
            }
        )

    add("GET", f"{base}/", 200, "text/html", INDEX)
    found[0]["think_ns"] = THINK_MS * 1_000_000
    add("GET", f"{base}/style.css", 200, "text/css", b"body { color: rgb(1, 2, 3) }")
    add("GET", f"{base}/script.js", 200, "text/javascript", SCRIPT % other.encode())
    add("GET", f"{base}/late.js", 200, "text/javascript", LATE)
    for i in range(IMAGES):
        add("GET", f"{base}/image{i}.svg", 200, "image/svg+xml", SVG)
    add("GET", f"{base}/data?time=17", 200, "text/plain", b"data")
    add("GET", f"{base}/away", 302, "text/plain", b"", ("location", "/there"))
    add("GET", f"{base}/there", 200, "text/plain", b"arrived")
    add("POST", f"{base}/form", 201, "text/plain", b"")
    add("GET", f"{other}/cross", 200, "text/plain", b"crossed", ("access-control-allow-origin", "*"))
    add("GET", f"{base}/media", 206, "text/plain", b"abcdefghij", ("content-range", "bytes 0-9/10"))
    return found


class Replay:
    """A running replay server; ``stop`` ends it and reads its records."""

    def __init__(self, folder: Path, *, http: Literal["h1", "h2"], encrypted: bool) -> None:
        scheme, port = ("https", 8443) if encrypted else ("http", 8080)
        self.url = f"{scheme}://{PAGE}:{port}"
        origins = [
            Origin(address=address, port=port, encrypted=encrypted, host=host)
            for host, address in ((PAGE, PAGE_ADDRESS), (OTHER, OTHER_ADDRESS))
        ]
        recorded = responses(folder, self.url, f"{scheme}://{OTHER}:{port}")
        file = Run(
            id="test",
            trace_dir=folder,
            work_dir=folder,
            hosts=[Host(name="server", role="server", congestion="reno")],
            transport=Transport(http=http),
            sites={"page": Site(origins=origins, responses=recorded)},
        ).write()
        self.folder = folder
        self.process = subprocess.Popen([PROGRAM, "replay", file], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.ready = json.loads(self.process.stdout.readline())

    def stop(self) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
        """Summary, connections, requests."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=10)
        assert self.process.returncode == 0

        def lines(name: str) -> list[dict[str, Any]]:
            return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

        return json.loads(out), lines("server-connections.jsonl"), lines("server-requests.jsonl")


def dump_dom(url: str, http: Literal["h1", "h2"], profile: Path, authority: str) -> str:
    """The view of the page's own scripts once it has loaded."""
    done = subprocess.run(
        [
            BROWSER,
            *chromium.FLAGS,
            *chromium.HTTP_FLAGS[http],
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            f"--user-data-dir={profile}",
            f"--host-resolver-rules=MAP {PAGE} {PAGE_ADDRESS},MAP {OTHER} {OTHER_ADDRESS},MAP * ~NOTFOUND",
            f"--ignore-certificate-errors-spki-list={authority}",
            "--dump-dom",
            url,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


@pytest.mark.timed
@pytest.mark.parametrize(
    ("http", "encrypted", "protocol"),
    [
        pytest.param("h1", False, "http/1.1", id="plain"),
        pytest.param("h1", True, "http/1.1", id="tls"),
        pytest.param("h2", True, "h2", id="h2"),
    ],
)
def test_chromium_loads_the_page_as_it_was_recorded(
    tmp_path: Path, http: Literal["h1", "h2"], encrypted: bool, protocol: str
) -> None:
    server = Replay(tmp_path, http=http, encrypted=encrypted)
    try:
        dom = dump_dom(f"{server.url}/", http, tmp_path / "profile", server.ready["ca_spki_sha256"])
        summary, connections, requests = server.stop()
    finally:
        server.process.kill()
        server.process.wait()

    assert EXPECTED in dom
    assert f"rgb(1, 2, 3){IMAGES}" in dom, "style and images were applied before the late script ran"

    used = [connection for connection in connections if connection["requests"]]
    assert {connection["protocol"] for connection in used} == {protocol}
    assert {connection["congestion"] for connection in connections} == {"reno"}
    assert {connection["initial_window"] for connection in connections} == {10}
    if encrypted:
        assert {connection["host"] for connection in used} == {PAGE, OTHER}
    assert summary["unmatched"] == summary["congestion_differs"] == summary["initial_window_differs"] == 0

    assert {request["matched"] for request in requests} == {"exact", "query"}
    by_query = [request["url"] for request in requests if request["matched"] == "query"]
    assert len(by_query) == 2 and all("/data" in url for url in by_query), "the random time and the HEAD"
    images = [request for request in requests if "/image" in request["url"]]
    assert len(images) == IMAGES and all(request["wire_bytes"] == len(SVG) for request in images)
    if protocol == "h2":
        style = next(request for request in requests if "style.css" in request["url"])
        assert style["priority"].startswith("u=0"), "Chromium says what is urgent"

    base = next(request for request in requests if request["url"] == f"{server.url}/")
    thought = (base["first_byte"] - base["time"]) / 1e6
    assert THINK_MS <= thought < THINK_MS + 20
    for request in requests:
        assert request["time"] <= request["first_byte"] <= request["last_byte"]


def test_a_browser_that_was_not_told_of_the_authority_gets_nothing(tmp_path: Path) -> None:
    server = Replay(tmp_path, http="h2", encrypted=True)
    try:
        dom = dump_dom(f"{server.url}/", "h2", tmp_path / "profile", "A" * 43 + "=")
        summary, _, _ = server.stop()
    finally:
        server.process.kill()
        server.process.wait()
    assert EXPECTED not in dom
    assert summary["requests"] == 0
