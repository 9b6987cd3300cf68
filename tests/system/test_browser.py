"""The real browser with a small server of the test: its reports agree with the server's records."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from wirepaint.errors import MachineLacks, PageTimeout, RunFailed
from wirepaint.runners.testbed import process
from wirepaint.runners.testbed.browser import BrowserOptions, PageLoad, processes, visit
from wirepaint.runners.testbed.browser.chromium import program

try:
    program.find()
except MachineLacks as missing:
    pytest.skip(f"{missing}", allow_module_level=True)

HOST = "page.test"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8cfc0f01f00"
    "05000201a5f645400000000049454e44ae426082"
)


class Server:
    """Serves the given paths over HTTP/1.1 and remembers who asked for what."""

    def __init__(self, site: dict[str, tuple[str, bytes] | Callable[[BaseHTTPRequestHandler], None]]) -> None:
        self.seen: list[tuple[str, int]] = []
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                seen.append((self.path, self.client_address[1]))
                answer = site.get(self.path)
                if answer is None:
                    self.send_error(404)
                elif callable(answer):
                    answer(self)
                else:
                    self.send_response(200)
                    self.send_header("Content-Type", answer[0])
                    self.send_header("Content-Length", str(len(answer[1])))
                    self.end_headers()
                    self.wfile.write(answer[1])

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"

    def __enter__(self) -> Server:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def spawn(argv: Any, **options: Any) -> subprocess.Popen[bytes]:
    return process.spawn(argv, ordinary_user=os.geteuid() == 0, **options)


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="wirepaint-test-", dir="/dev/shm"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def load(server: Server, path: str = "", timeout_s: float = 15.0) -> PageLoad:
    started: list[subprocess.Popen[bytes]] = []

    def remember(argv: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(spawn(argv, **options))
        return started[0]

    with scratch() as work:
        options = BrowserOptions(
            url=server.url + path, http="h1", hosts={HOST: "127.0.0.1"}, work_dir=work, timeout_s=timeout_s
        )
        try:
            return visit(options, remember)
        finally:
            assert all(child.poll() is not None for child in started), "the browser still runs"
            assert not any(processes.tree(child.pid) for child in started)


def html(body: str) -> tuple[str, bytes]:
    return "text/html", f"<!doctype html><meta charset=utf-8><title>t</title>{body}".encode()


def test_requests_bytes_connections_and_ports_agree_between_devtools_netlog_and_server() -> None:
    picture, script = os.urandom(200_000), b"x" * 5_000
    site = {
        "/": html(
            "<h1>Hello</h1><script src=a.js></script>" + "".join(f"<img src={n}.png>" for n in range(8))
        ),
        "/a.js": ("text/javascript", b"var a='" + script + b"'"),
    } | {f"/{n}.png": ("image/png", PNG + picture) for n in range(8)}
    with Server(site) as server:
        seen = load(server)
        asked = dict(server.seen)
    assert seen.requests[0].url == server.url
    assert {exchange.url.removeprefix(server.url[:-1]) for exchange in seen.requests} == set(site)
    ports = {connection.number: connection.client_port for connection in seen.connections}
    for request in seen.requests:
        path = request.url.removeprefix(server.url[:-1])
        body = len(site[path][1])
        assert request.failed is None and request.status == 200
        assert request.decoded_bytes == body
        assert 0 < request.encoded_bytes - body < 1000, "body and headers"
        assert sum(chunk.bytes for chunk in request.chunks) == request.encoded_bytes
        assert request.connection is not None and ports[request.connection] == asked[path]
        times = [request.discovered, request.queued, request.sent, request.first_byte, request.last_byte]
        assert None not in times and times == sorted(times, key=lambda at: at or 0)
    assert sum(connection.requests for connection in seen.connections) == len(site)
    assert seen.browser.startswith("HeadlessChrome/")
    assert seen.notes == []


def test_milestones_come_in_their_order_on_the_monotonic_clock() -> None:
    before = time.monotonic_ns()
    with Server(
        {"/": html("<h1>Hello</h1><img src=a.png width=200 height=200>"), "/a.png": ("image/png", PNG)}
    ) as server:
        seen = load(server)
    after = time.monotonic_ns()
    assert before < seen.navigation_start < seen.requests[0].sent < after  # type: ignore[operator]
    assert seen.dom_content_loaded is not None and seen.first_contentful_paint is not None
    assert seen.largest_contentful_paint is not None and seen.viewport_complete is not None
    assert seen.navigation_start < seen.dom_content_loaded <= seen.load_event < seen.ended < after
    assert seen.navigation_start < seen.first_contentful_paint <= seen.viewport_complete
    # LCP is rounded by the browser to 4 ms.
    assert seen.first_contentful_paint <= seen.largest_contentful_paint + 4_000_000
    assert [e.in_viewport for e in seen.requests] == [e.url.endswith("a.png") for e in seen.requests]
    assert seen.speed_index is not None and 0 < seen.speed_index < (after - before) / 1e6


def test_frames_and_cpu_time_of_a_visit_are_kept() -> None:
    page = html("<h1>Hello</h1><img src=a.png width=200 height=200>")
    with Server({"/": page, "/a.png": ("image/png", PNG)}) as server:
        seen = load(server)
    times = [frame.time for frame in seen.frames]
    assert times == sorted(times)
    # The blank screen before the navigation; where the browser was late to show it, the first one after.
    assert seen.navigation_start <= times[0] < (seen.first_paint or 0)
    assert times[-1] <= seen.ended
    assert (seen.frames[0].progress, seen.frames[-1].progress) == (0.0, 1.0)
    painted = next(frame for frame in seen.frames if frame.progress > 0)
    assert seen.requests[0].first_byte is not None
    assert painted.time > seen.requests[0].first_byte, "nothing is painted before the document has begun"
    assert seen.frames[0].picture is not None
    spent = [cpu_s for _, cpu_s in seen.cpu_samples]
    assert seen.cpu_samples[0][0] < seen.load_event
    assert 0 < spent[0] <= spent[-1] <= seen.cpu_s


def test_the_view_port_is_complete_when_its_last_picture_is_painted_not_when_it_is_loaded() -> None:
    def late(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.4)
        handler.send_response(200)
        handler.send_header("Content-Type", "image/png")
        handler.send_header("Content-Length", str(len(PNG)))
        handler.end_headers()
        handler.wfile.write(PNG)

    with Server({"/": html("<h1>Hello</h1><img src=a.png width=300 height=200>"), "/a.png": late}) as server:
        seen = load(server)
    assert seen.viewport_complete is not None and seen.first_contentful_paint is not None
    loaded = seen.requests[1].last_byte
    assert loaded is not None
    # The browser rounds the time of the painting to 4 ms.
    assert seen.first_contentful_paint < loaded < seen.viewport_complete + 4_000_000
    assert seen.viewport_complete != loaded
    assert seen.viewport_last_frame is not None and seen.viewport_last_frame > loaded - 4_000_000


def test_a_picture_below_the_first_screen_is_not_in_the_view_port() -> None:
    page = html("<img src=top.png width=100 height=100><div style='height:3000px'></div><img src=low.png>")
    with Server({"/": page, "/top.png": ("image/png", PNG), "/low.png": ("image/png", PNG)}) as server:
        seen = load(server)
    assert {e.url.rpartition("/")[2] for e in seen.requests if e.in_viewport} == {"top.png"}


def test_the_pages_run_in_the_browsers_sandbox() -> None:
    with Server({"/": html("<p>hello")}) as server:
        assert load(server).unconfined is None


def test_each_hop_of_a_redirect_is_an_exchange_of_its_own() -> None:
    def away(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/new.png")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with Server({"/": html("<img src=old.png>"), "/old.png": away, "/new.png": ("image/png", PNG)}) as server:
        seen = load(server)
    hops = [(e.url.rpartition("/")[2], e.status, e.initiator_type) for e in seen.requests[1:]]
    assert hops == [("old.png", 302, "parser"), ("new.png", 200, "redirect")]
    assert seen.requests[2].id == seen.requests[1].id + ":1"
    assert (len(seen.requests), seen.unseen) == (3, [])


def test_an_object_that_begins_after_the_load_event_belongs_to_the_visit() -> None:
    page = html("<script>onload=()=>setTimeout(()=>fetch('late.txt'),200)</script>")
    with Server({"/": page, "/late.txt": ("text/plain", b"late")}) as server:
        seen = load(server)
    late = seen.requests[-1]
    assert late.url.endswith("late.txt") and late.failed is None
    assert late.last_byte is not None and late.last_byte > seen.load_event


def test_a_second_visit_finds_nothing_in_a_cache() -> None:
    def cacheable(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Cache-Control", "max-age=3600")
        handler.send_header("Content-Type", "text/css")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with Server({"/": html("<link rel=stylesheet href=a.css>"), "/a.css": cacheable}) as server:
        for _ in range(2):
            assert not any(exchange.from_cache for exchange in load(server).requests)
        assert [path for path, _ in server.seen].count("/a.css") == 2


def test_requests_of_workers_and_frames_are_the_pages_requests() -> None:
    page = html("<script>new Worker('worker.js')</script><iframe src=frame.html></iframe>")
    site = {
        "/": page,
        "/worker.js": ("text/javascript", b"fetch('/from-worker.txt')"),
        "/frame.html": html("<script>fetch('/from-frame.txt')</script>"),
        "/from-worker.txt": ("text/plain", b"w"),
        "/from-frame.txt": ("text/plain", b"f"),
    }
    with Server(site) as server:
        seen = load(server)
    paths = [exchange.url.removeprefix(server.url[:-1]) for exchange in seen.requests]
    assert sorted(paths) == sorted(site) == sorted(path for path, _ in server.seen)
    assert all(exchange.failed is None and exchange.last_byte for exchange in seen.requests)
    assert (len(seen.requests), seen.unseen) == (len(site), [])


def test_a_window_that_the_page_opens_is_closed_and_noted() -> None:
    page = html("<script>window.open('/other.html')</script><p>stay")
    with Server({"/": page, "/other.html": html("other")}) as server:
        seen = load(server)
    assert seen.requests[0].url == server.url
    assert all(note.startswith("closed a window that the page opened") for note in seen.notes)


def test_a_page_that_sends_the_browser_on_is_measured_to_the_load_event_of_the_last_document() -> None:
    first = html("<script>location.replace('/second.html')</script>")
    with Server(
        {"/": first, "/second.html": html("<img src=a.png>"), "/a.png": ("image/png", PNG)}
    ) as server:
        seen = load(server)
    assert [e.url.removeprefix(server.url) for e in seen.requests] == ["", "second.html", "a.png"]
    assert seen.document == seen.requests[1].id
    last = seen.requests[2].last_byte
    assert last is not None and seen.navigation_start < seen.requests[0].discovered + 1
    assert last < seen.load_event


def test_a_dialog_is_dismissed_and_noted() -> None:
    with Server({"/": html("<script>alert('stop')</script><p>after")}) as server:
        assert load(server).notes == ["dismissed a dialog: alert"]


def test_a_host_outside_the_run_does_not_resolve() -> None:
    with Server({"/": html("<img src=http://elsewhere.test/a.png>")}) as server:
        seen = load(server)
    assert [e.failed for e in seen.requests if "elsewhere" in e.url] == ["net::ERR_NAME_NOT_RESOLVED"]


def test_a_page_that_never_loads_fails_with_what_was_open() -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(8)

    with (
        Server({"/": html("<img src=never.png>"), "/never.png": silent}) as server,
        pytest.raises(PageTimeout, match="fired no load event within 2 s: 1 open requests"),
    ):
        load(server, timeout_s=2)


def test_a_script_without_end_fails_by_name() -> None:
    with (
        Server({"/": html("<script>for(;;);</script>")}) as server,
        pytest.raises(RunFailed, match="no load event within 2 s: a script runs without end"),
    ):
        load(server, timeout_s=2)


def test_a_script_without_end_after_the_load_event_fails_too() -> None:
    with (
        Server({"/": html("<script>onload=()=>setTimeout(()=>{for(;;);},100)</script>")}) as server,
        pytest.raises(RunFailed, match="does not answer: a script runs without end"),
    ):
        load(server, timeout_s=5)


def test_an_error_of_the_server_is_no_page_load() -> None:
    with Server({}) as server, pytest.raises(RunFailed, match="answered with status 404"):
        load(server)


def test_a_download_is_no_page_load() -> None:
    with (
        Server({"/": ("application/octet-stream", b"x" * 100)}) as server,
        pytest.raises(RunFailed, match="did not load: net::ERR_ABORTED"),
    ):
        load(server)


def test_no_server_is_a_failed_run() -> None:
    with Server({}) as server:
        pass
    with pytest.raises(RunFailed, match="did not load: net::ERR_CONNECTION_REFUSED"):
        load(server)


def test_a_browser_that_is_killed_fails_with_that_cause() -> None:
    killed = threading.Event()

    def kill(handler: BaseHTTPRequestHandler) -> None:
        for child in processes.tree(os.getpid())[1:]:
            if b"remote-debugging-pipe" in Path(f"/proc/{child.pid}/cmdline").read_bytes():
                processes.kill(child.pid)
                killed.set()
        time.sleep(1)

    with (
        Server({"/": html("<img src=kill.png>"), "/kill.png": kill}) as server,
        pytest.raises(RunFailed, match="the browser closed its DevTools pipe"),
    ):
        load(server)
    assert killed.is_set()


def test_a_page_process_that_crashes_fails_with_that_cause() -> None:
    def crash(handler: BaseHTTPRequestHandler) -> None:
        for child in processes.tree(os.getpid())[1:]:
            if b"--type=renderer" in Path(f"/proc/{child.pid}/cmdline").read_bytes():
                os.kill(child.pid, signal.SIGKILL)
        time.sleep(1)

    with (
        Server({"/": html("<img src=crash.png>"), "/crash.png": crash}) as server,
        pytest.raises(RunFailed, match="a page process crashed"),
    ):
        load(server)


def test_a_program_that_is_no_browser_is_a_failed_run() -> None:
    with scratch() as work:
        options = BrowserOptions(
            url="http://x/", http="h1", hosts={}, work_dir=work, binary=Path("/bin/false")
        )
        with pytest.raises(RunFailed, match="the browser did not start"):
            visit(options, spawn)


def test_the_browser_asks_for_nothing_on_its_own() -> None:
    page = html("<script>onload=()=>setTimeout(()=>fetch('end.txt'),2500)</script><img src=slow.png>")

    def slow(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(3)
        handler.send_response(200)
        handler.send_header("Content-Type", "image/png")
        handler.send_header("Content-Length", str(len(PNG)))
        handler.end_headers()
        handler.wfile.write(PNG)

    with Server({"/": page, "/slow.png": slow, "/end.txt": ("text/plain", b"")}) as server:
        seen = load(server)
    assert {request.url.rpartition("/")[2] for request in seen.requests} == {"", "slow.png"}
