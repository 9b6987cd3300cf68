"""A site of several hosts on one loopback port, for recording: slow answers, codings, redirects, cookies."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """The answer of a path."""

    body: bytes = b""
    type: str = "text/plain"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    think_s: float = 0.0
    gzip: bool = False
    close_after: int | None = None
    """Closes the connection after N bytes of the body."""


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    host: str
    path: str
    headers: dict[str, str]
    body: bytes


Answers = dict[str, Answer | Callable[[Seen], Answer]]


class Site:
    """Serves ``host/path`` over HTTP/1.1 and remembers what was asked for."""

    def __init__(self, answers: Answers, tls: ssl.SSLContext | None = None) -> None:
        self.answers = answers
        self.seen: list[Seen] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site._serve(self)

            do_POST = do_OPTIONS = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_port
        self.scheme = "https" if tls else "http"

    def url(self, place: str) -> str:
        """Address of ``host/path``."""
        host, _, path = place.partition("/")
        return f"{self.scheme}://{host}:{self.port}/{path}"

    @property
    def resolve(self) -> dict[str, str]:
        """Where all hosts of the site are."""
        hosts = {place.partition("/")[0] for place in self.answers}
        return {f"{host}:{self.port}": f"127.0.0.1:{self.port}" for host in hosts}

    @property
    def asked(self) -> list[str]:
        """``METHOD host/path`` of each request."""
        return [f"{seen.method} {seen.host}{seen.path}" for seen in self.seen]

    def __enter__(self) -> Site:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        host = headers["host"].rpartition(":")[0]
        body = handler.rfile.read(int(headers.get("content-length", 0)))
        seen = Seen(handler.command, host, handler.path, headers, body)
        self.seen.append(seen)
        place = host + handler.path
        found = self.answers.get(place) or self.answers.get(place.partition("?")[0]) or Answer(status=404)
        answer = found(seen) if callable(found) else found
        time.sleep(answer.think_s)
        wire = gzip.compress(answer.body, 6) if answer.gzip else answer.body
        lines = {"Content-Type": answer.type, **answer.headers}
        if answer.gzip:
            lines["Content-Encoding"] = "gzip"
        if answer.status != 204:
            lines["Content-Length"] = str(len(wire))
        head = f"HTTP/1.1 {answer.status} Whatever\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        # In one piece, so that the kernel does not hold the body back.
        handler.wfile.write(head.encode() + b"\r\n" + wire[: answer.close_after])
        handler.close_connection = answer.close_after is not None
