"""Serves a prepared page from 127.0.0.1 and loads it in the real browser; no root needed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import trustme

from wirepaint.pages import PreparedPage
from wirepaint.runners.testbed.browser import BrowserOptions, PageLoad, visit


class Server:
    """HTTP/1.1 in plain and over TLS; ``log`` lists (method, url) in order of arrival."""

    def __init__(self, page: PreparedPage) -> None:
        self.log: list[tuple[str, str]] = []
        self.ports: dict[str, int] = {}
        self._answers = {(r["method"], r["url"]): r for r in page.responses}
        self._hosts = sorted({host for _, host, _ in page.origins})

    async def run(self, started: threading.Event, stop: asyncio.Event) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert(*self._hosts).configure_cert(context)
        servers = []
        for scheme, tls in (("http", None), ("https", context)):
            server = await asyncio.start_server(
                lambda reader, writer, scheme=scheme: self._connection(reader, writer, scheme),
                "127.0.0.1",
                0,
                ssl=tls,
            )
            self.ports[scheme] = server.sockets[0].getsockname()[1]
            servers.append(server)
        started.set()
        await stop.wait()
        for server in servers:
            server.close()

    async def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, scheme: str
    ) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ", 2)
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                await reader.readexactly(int(fields.get("content-length", 0)))
                url = f"{scheme}://{fields['host']}{target}"
                self.log.append((method, url))
                writer.write(self._answer(method, url))
                await writer.drain()
        writer.close()

    def _answer(self, method: str, url: str) -> bytes:
        answer = self._answers.get((method, url))
        if answer is None:
            return b"HTTP/1.1 404 unknown\r\ncontent-length: 0\r\n\r\n"
        body = Path(answer["body"]).read_bytes() if answer["body"] else b""
        lines = [f"HTTP/1.1 {answer['status']} x", *(f"{name}: {value}" for name, value in answer["headers"])]
        if answer["status"] != 204:
            lines.append(f"content-length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


@contextlib.contextmanager
def serving(page: PreparedPage) -> Iterator[Server]:
    """The page's server, in a thread."""
    server, started = Server(page), threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.run(started, stop),))
    thread.start()
    try:
        assert started.wait(10)
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def load(page: PreparedPage, work_dir: Path) -> tuple[Server, PageLoad]:
    """Loads ``page`` once; all its requests reach the server here and nothing else."""
    with serving(page) as server:

        def spawn(
            argv: Sequence[str | Path],
            *,
            extra_fds: Mapping[int, int],
            env: Mapping[str, str],
            stdout: int | IO[Any],
            stderr: int | IO[Any],
        ) -> subprocess.Popen[bytes]:
            rules = f"MAP *:443 127.0.0.1:{server.ports['https']},MAP *:80 127.0.0.1:{server.ports['http']}"
            words = [a for a in map(str, argv) if not a.startswith("--host-resolver-rules")]
            words += [f"--host-resolver-rules={rules}", "--ignore-certificate-errors"]
            words += ["--no-sandbox"] if os.geteuid() == 0 else []

            def fds() -> None:
                for source in extra_fds.values():
                    os.set_inheritable(source, True)
                copies = {target: os.dup(source) for target, source in extra_fds.items()}
                for target, copy in copies.items():
                    os.dup2(copy, target)

            return subprocess.Popen(
                words, preexec_fn=fds, env=dict(env), stdout=stdout, stderr=stderr, close_fds=False
            )

        options = BrowserOptions(
            url=page.url, http="h1", hosts={}, work_dir=work_dir, timeout_s=60, screencast=False
        )
        return server, visit(options, spawn)
