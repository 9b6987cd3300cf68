"""Recording a live page: what the archive tells beside what nginx served, and what recording costs.

The site is local and lives on several hosts, over HTTP/2: a start that redirects twice, a single-page
application from an npm package (swagger-ui-dist), its programming interface on a slow host of its own,
pictures on another. nginx's log is the truth: requests, bytes on the wire, time that its answers took.
Arm ``recorded`` is a load by ``wirepaint page record``, arm ``plain`` the same load without the bytes in
the browser's log; they alternate, and the ratio of their page load times is what recording costs.

    benches/record.py [--loads N] [--keep DIR] [--json]

Needs nginx (apt-get install nginx-light), npm and openssl. ``--keep`` leaves the site, its nginx.conf and
the last archive in DIR, for a comparison of the archive's replay with the site served live.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from wirepaint import ordinary, recording
from wirepaint.pages import Page, load
from wirepaint.pages.synthesis.binary import image
from wirepaint.recording import command
from wirepaint.recording import visit as recorder
from wirepaint.runners.testbed.browser.chromium import program

PACKAGE = "swagger-ui-dist@5.35.0"
HOSTS = ("spa.test", "www.spa.test", "api.spa.test", "pictures.test")
PICTURES = 6
SLOW_S = {"/openapi.json": 0.25, "/news.json": 0.12}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loads", type=int, default=7, help="of each arm")
    parser.add_argument("--keep", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--backend", action="store_true", help="only serve the interface; prints its port")
    options = parser.parse_args()
    if options.backend:
        backend = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        print(backend.server_port, flush=True)
        backend.serve_forever()
    require_programs()
    with tempfile.TemporaryDirectory(prefix="wirepaint-bench-") as name:
        folder = Path(options.keep or name).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # the browser is another user
        row = measure(folder, options.loads)
    if options.json:
        print(json.dumps(row))
        return
    for key, value in row.items():
        print(f"{key:34} {value}")


def measure(folder: Path, loads: int) -> dict[str, Any]:
    """One row: the archive beside nginx's log, and both arms' page load times in ms."""
    times: dict[str, list[float]] = {"recorded": [], "plain": []}
    took: list[float] = []
    with site(folder) as port:
        url = f"https://spa.test:{port}/"
        log = folder / "access.log"
        found: list[dict[str, Any]] = []
        for number in range(loads + 1):
            before = len(log.read_text().splitlines())
            began = time.monotonic()
            recorded = load_recorded(url, port, folder / "page")
            ended = time.monotonic()
            served = [json.loads(line) for line in log.read_text().splitlines()[before:]]
            plain = load_plain(url, port)
            if number == 0:
                continue  # warms the disk's cache
            times["recorded"].append(recorded)
            times["plain"].append(plain)
            took.append(ended - began)
            found.append(compared(load(folder / "page"), served))
    pairs = zip(times["recorded"], times["plain"], strict=True)
    last = found[-1]
    return {
        "requests served": last["served"],
        "requests missing in the archive": max(row["missing"] for row in found),
        "requests nginx did not serve": max(row["strange"] for row in found),
        "bytes on the wire, served": last["bytes"],
        "largest error of a body on the wire": f"{max(row['wire_error'] for row in found)} bytes",
        "error of server time, median": f"{statistics.median(row['think_median'] for row in found):.1f} ms",
        "error of server time, largest": f"{max(row['think_largest'] for row in found):.1f} ms",
        "page load time, recorded": f"{statistics.median(times['recorded']):.1f} ms",
        "page load time, plain": f"{statistics.median(times['plain']):.1f} ms",
        "ratio, median of pairs": round(statistics.median(a / b for a, b in pairs), 3),
        "whole recording": f"{statistics.median(took):.1f} s",
    }


def wish_of(url: str, port: int) -> recording.Wish:
    """The requests of both arms."""
    where = {f"{host}:{port}": f"127.0.0.1:{port}" for host in HOSTS}
    return replace(recording.read(url, insecure=True), resolve=where)


def load_time(seen: recorder.Visit) -> float:
    """From the navigation to the load event, in ms."""
    return (seen.load_event - seen.exchanges[0].discovered) * 1000


def load_recorded(url: str, port: int, out: Path) -> float:
    """Records the page into ``out``; its page load time in ms."""
    kept = multiprocessing.Value("d", lock=False)  # a child of this process loads the page

    def remembered(*arguments: Any) -> recorder.Visit:
        seen = recorder.visit(*arguments)
        kept.value = load_time(seen)
        return seen

    command.visit = remembered
    recording.record(wish_of(url, port), out)
    return kept.value


def load_plain(url: str, port: int) -> float:
    """The page load time in ms when the NetLog keeps no bytes."""

    def without_bytes(*arguments: Any, **options: Any) -> list[str]:
        return usual(*arguments, **options | {"capture": "Default"})

    def load(folder: Path, _: ordinary.Say) -> float:
        return load_time(recorder.visit(wish_of(url, port), folder, folder / "netlog.json"))

    usual, program.command_line = program.command_line, without_bytes
    try:
        with ordinary.done(load, url, browser=True) as (_, took_ms):
            return took_ms
    finally:
        program.command_line = usual


def compared(page: Page, served: list[dict[str, Any]]) -> dict[str, Any]:
    """The archive beside what nginx says that it served."""
    truth = {(line["method"], line["url"]): line for line in served}
    archive = {(r.method, r.url): r for r in page.resources}
    both = truth.keys() & archive.keys()
    think = [abs(archive[key].think_ms - 1000 * float(truth[key]["upstream"] or 0)) for key in both]
    return {
        "served": len(truth),
        "missing": len(truth.keys() - both),
        "strange": len(archive.keys() - both),
        "bytes": sum(truth[key]["bytes"] for key in both),
        "wire_error": max(abs(archive[key].wire_bytes - truth[key]["bytes"]) for key in both),
        "think_median": statistics.median(think),
        "think_largest": max(think),
    }


class Slow(BaseHTTPRequestHandler):
    """The programming interface: answers after a while."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(SLOW_S.get(self.path, 0))
        operation = {"summary": "An operation", "responses": {"200": {"description": "fine"}}}
        paths = {f"/things/{number}": {"get": operation} for number in range(60)}
        body = json.dumps({"openapi": "3.0.0", "info": {"title": "Slow", "version": "1"}, "paths": paths})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def site(folder: Path) -> Iterator[int]:
    """Serves the site until the end of the block; its port."""
    root = folder / "www"
    if not root.exists():
        lay_out(root)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    application(root, port)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=spa.test",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    backend = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    backend.daemon_threads = True
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    (folder / "access.log").write_text("")
    (folder / "nginx.conf").write_text(configuration(folder, root, port, backend.server_port))
    nginx = subprocess.Popen(
        ["nginx", "-e", folder / "error.log", "-p", folder, "-c", folder / "nginx.conf", "-g", "daemon off;"]
    )
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
    finally:
        nginx.send_signal(signal.SIGTERM)
        nginx.wait()
        backend.shutdown()


def lay_out(root: Path) -> None:
    """Puts the application and the pictures into ``root``."""
    with tempfile.TemporaryDirectory() as name:
        packed = subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=name, check=True, capture_output=True, text=True
        )
        subprocess.run(["tar", "-xzf", packed.stdout.split()[-1]], cwd=name, check=True)
        root.mkdir(parents=True)
        shutil.copytree(Path(name) / "package", root / "spa", ignore=shutil.ignore_patterns("*.map"))
    (root / "pictures").mkdir()
    for number in range(PICTURES):
        picture, _ = image("image/png", 20_000 + 30_000 * number, str(number))
        (root / "pictures" / f"{number}.png").write_bytes(picture)


def application(root: Path, port: int) -> None:
    """Has the application ask the slow host for its description, and the document show the pictures."""
    initializer = root / "spa/swagger-initializer.js"
    initializer.write_text(
        "window.onload = () => {"
        f"fetch('https://api.spa.test:{port}/news.json').then(answer => answer.json());"
        f"window.ui = SwaggerUIBundle({{url: 'https://api.spa.test:{port}/openapi.json',"
        "validatorUrl: null, dom_id: '#swagger-ui',"
        "presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],"
        "layout: 'StandaloneLayout'}) };"
    )
    pictures = "".join(
        f'<img src="https://pictures.test:{port}/{n}.png" width=60 alt="">' for n in range(PICTURES)
    )
    document = (root / "spa/index.html").read_text()
    mark = "<!-- pictures -->"
    document = document.partition(mark)[0] if mark in document else document.partition("</body>")[0]
    (root / "spa/index.html").write_text(f"{document}{mark}{pictures}</body></html>")


def require_programs() -> None:
    """Ends the benchmark where a program that it needs is not installed."""
    for needed in ("nginx", "npm", "openssl"):
        if shutil.which(needed) is None:
            sys.exit(f"{needed} is not installed: apt-get install nginx-light npm openssl")


def configuration(folder: Path, root: Path, port: int, backend: int, address: str = "127.0.0.1") -> str:
    """nginx's configuration: each host, and a log of the served answers in JSON lines."""
    listen = f"listen {address}:{port} ssl http2; ssl_certificate {folder}/cert.pem;"
    listen += f" ssl_certificate_key {folder}/key.pem;"
    user = "user root;" if os.geteuid() == 0 else ""
    return f"""{user} worker_processes 1; pid {folder}/nginx.pid;
events {{ worker_connections 256; }}
http {{
  types {{ text/html html; text/css css; text/javascript js; image/png png; application/json json; }}
  log_format served escape=json '{{"method":"$request_method","url":"$scheme://$http_host$request_uri",'
    '"status":$status,"bytes":$body_bytes_sent,"upstream":"$upstream_header_time"}}';
  access_log {folder}/access.log served;
  gzip on; gzip_types text/css text/javascript application/json; gzip_min_length 200; gzip_proxied any;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fast;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ server_name spa.test; {listen} return 301 https://www.spa.test:{port}/; }}
  server {{ server_name www.spa.test; {listen} root {root}/spa;
    location = / {{ return 302 /index.html; }} }}
  server {{ server_name pictures.test; {listen} root {root}/pictures; }}
  server {{ server_name api.spa.test; {listen}
    location / {{ proxy_pass http://127.0.0.1:{backend}; add_header access-control-allow-origin *; }} }}
}}
"""


if __name__ == "__main__":
    main()
