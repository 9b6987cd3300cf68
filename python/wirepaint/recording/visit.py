"""Loads a live page once in a fresh browser and keeps DevTools' records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirepaint.errors import PageTimeout, RunFailed
from wirepaint.recording.wish import Wish
from wirepaint.runners.testbed import process
from wirepaint.runners.testbed.browser.chromium import phone, program
from wirepaint.runners.testbed.browser.chromium.exchanges import Exchange
from wirepaint.runners.testbed.browser.chromium.running import Running
from wirepaint.runners.testbed.browser.chromium.watching import Watching

_REMEDIES = {
    "ERR_NAME_NOT_RESOLVED": "the name {host} was not found; check the address and the network",
    "ERR_CONNECTION_REFUSED": "{host} refused the connection; check the port, and that the server runs",
    "ERR_CONNECTION_TIMED_OUT": "{host} did not answer; check the address and the network",
    "ERR_ADDRESS_UNREACHABLE": "{host} cannot be reached; check the network",
    "ERR_INTERNET_DISCONNECTED": "there is no network",
    "ERR_EMPTY_RESPONSE": "{host} closed the connection without an answer; check scheme and port",
    "ERR_SSL_PROTOCOL_ERROR": "{host} does not speak TLS there; check scheme and port",
    "ERR_INVALID_HTTP_RESPONSE": "{host} does not speak HTTP there; check scheme and port",
    "ERR_TOO_MANY_REDIRECTS": "it redirects without end; --cookie-file may give the cookie that it wants",
    "ERR_ABORTED": "it is a download or has no content; name a page",
}


@dataclass
class Visit:
    """The records of one load. Times are seconds of CLOCK_MONOTONIC."""

    browser: str
    """Product and version."""
    title: str
    exchanges: list[Exchange]
    wall_clock: float
    """Seconds of Unix time at time 0."""
    load_event: float
    notes: list[str]


def visit(wish: Wish, folder: Path, netlog: Path) -> Visit:
    """Loads the page; the browser may write in ``folder`` and has ended on return.

    Raises ``RunFailed`` with advice if there is no page to record.
    """
    browser = _Browser(wish)
    rules = [f"MAP {host} {address}" for host, address in sorted(wish.resolve.items())]
    # TCP's handshake gives the round trip.
    more = ["--disable-quic", *(["--ignore-certificate-errors"] if wish.insecure else [])]
    argv = program.command_line(folder, netlog, wish.viewport, rules=rules, capture="Everything", more=more)
    running = Running(argv, program.environment(folder), folder / "log.txt", process.spawn, browser.on_event)
    try:
        return browser.load(running)
    finally:
        running.end()


class _Browser(Watching):
    """A running browser and its events so far."""

    def __init__(self, wish: Wish) -> None:
        super().__init__(wish.url)
        self._wish = wish
        self._own_headers = [(name, value) for name, value in wish.headers if name.lower() != "user-agent"]
        self._wall_clock: float | None = None

    def load(self, running: Running) -> Visit:
        """Loads the page and waits until the network is quiet."""
        self._devtools = running.devtools
        version = running.version()
        asked = self._wish.user_agent
        if self._wish.mobile:
            self._agent = phone.user_agent(version, asked)
        elif asked:
            self._agent = {"userAgent": asked}
        session = self._open_page()
        self._navigate(session)
        self._settle(wait_s=self._wish.wait_s)
        self._check_status()
        history = self._devtools.call("Page.getNavigationHistory", {}, session)
        title = history["entries"][history["currentIndex"]]["title"]
        if not running.close():
            self._noted.append(("killed the browser at the end; what it wrote last is lost", ""))
        counts = Counter(what for what, _ in self._noted)
        return Visit(
            browser=version,
            title=title,
            exchanges=self._exchanges.all,
            wall_clock=self._wall_clock or 0.0,
            load_event=self._milestones[self._loader, "load"],
            notes=[f"{what} ({count})" for what, count in sorted(counts.items())],
        )

    def _open_page(self) -> str:
        session = self._open_target(self._wish.viewport if self._wish.mobile else None)
        if self._wish.cookies:
            self._devtools.call("Network.setCookies", {"cookies": list(self._wish.cookies)}, session)
        return session

    def _watch(self, session: str, *, worker: bool) -> None:
        super()._watch(session, worker=worker)
        self._devtools.send("Network.setBypassServiceWorker", {"bypass": True}, session)
        if self._own_headers:
            self._devtools.send("Fetch.enable", {}, session)

    def _navigate(self, session: str) -> None:
        limit = self._wish.timeout_s
        if not self._goto(session, limit):
            waiting = f"{self._exchanges.in_flight} requests were open"
            raise PageTimeout(
                f"{self._url} was not loaded within {limit:g} s ({waiting}); --timeout gives it longer"
            )
        self._check_status()

    def _check_status(self) -> None:
        documents = self._documents()
        if not documents:
            raise RunFailed(f"{self._url}: the browser asked for no document; name a page on the network")
        status, url = documents[-1].status or 0, documents[-1].url
        if status >= 400:
            raise _denied(status, url)

    def _refused(self, error: str) -> RunFailed:
        error = error.removeprefix("net::")
        documents = [e for e in self._exchanges.all if e.type == "html"]
        last = documents[-1] if documents else None
        url = last.url if last else self._url
        if last and (last.status or 0) >= 400:
            return _denied(last.status or 0, url)
        if error.startswith("ERR_CERT_") or error == "ERR_SSL_SERVER_CERT_BAD_FORMAT":
            return RunFailed(f"{url}: the certificate is not accepted ({error}); --insecure accepts any")
        remedy = _REMEDIES.get(error, "it did not load; look at it in a browser")
        return RunFailed(f"{url}: {remedy.format(host=url.split('/')[2])} ({error})")

    def on_event(self, method: str, params: dict[str, Any], session: str | None) -> None:
        """Handles a DevTools event."""
        super().on_event(method, params, session)
        match method:
            case "Network.requestWillBeSent" if self._wall_clock is None:
                self._wall_clock = params["wallTime"] - params["timestamp"]
            case "Network.webSocketCreated":
                self._noted.append(("websockets are not replayed", params["url"]))
            case "Fetch.requestPaused":
                self._devtools.send("Fetch.continueRequest", self._with_headers(params), session)

    def _attached(self, kind: str, session: str) -> None:
        if kind == "service_worker":
            # It must not run, so that it sends no requests.
            self._noted.append(("service workers were not let run", ""))
        else:
            super()._attached(kind, session)

    def _with_headers(self, paused: dict[str, Any]) -> dict[str, Any]:
        """Adds the user's headers for the page's own host, and removes them from redirects to other hosts."""
        names = {name.lower() for name, _ in self._own_headers}
        asked = paused["request"]["headers"]
        headers = [(name, value) for name, value in asked.items() if name.lower() not in names]
        own = self._wish.own(paused["request"]["url"])
        if not own and len(headers) == len(asked):
            return {"requestId": paused["requestId"]}
        headers += self._own_headers if own else []
        return {
            "requestId": paused["requestId"],
            "headers": [{"name": name, "value": value} for name, value in headers],
        }


def _denied(status: int, url: str) -> RunFailed:
    remedy = {
        401: "--header or --cookie-file may let you in",
        403: "--header or --cookie-file may let you in, or --header 'User-Agent: ...'",
        404: "check the address",
    }.get(status, "try again later" if status in (429, 502, 503, 504) else "look at it in a browser")
    return RunFailed(f"{url} answered with status {status}; {remedy}")
