"""Loads a live page once in a fresh browser and keeps what DevTools tells of it."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirepaint.errors import PageTimeout, RunFailed
from wirepaint.recording.wish import PHONE_PIXELS, Wish
from wirepaint.runners.testbed import process
from wirepaint.runners.testbed.browser import chromium
from wirepaint.runners.testbed.browser.devtools import DevtoolsTimeout
from wirepaint.runners.testbed.browser.exchanges import Exchange, Exchanges
from wirepaint.runners.testbed.browser.load import LATE_S, QUIET_S, STALLED_S
from wirepaint.runners.testbed.browser.running import Running

PHONE_AGENT = (
    "Mozilla/5.0 (Linux; Android 11; moto g power (2022)) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/{major}.0.0.0 Mobile Safari/537.36"
)

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
    """What one load showed. Times are seconds of CLOCK_MONOTONIC."""

    browser: str
    """Product and version."""
    title: str
    exchanges: list[Exchange]
    wall_clock: float
    """Seconds of Unix time at time 0."""
    load_event: float
    notes: list[str]


def visit(wish: Wish, folder: Path, netlog: Path) -> Visit:
    """Loads the page; the browser may write in ``folder`` and has ended when this returns.

    Raises ``RunFailed`` that says what to do when there is no page to record.
    """
    browser = _Browser(wish)
    rules = [f"MAP {host} {address}" for host, address in sorted(wish.resolve.items())]
    # A round trip is measured on TCP's handshake.
    more = ["--disable-quic", *(["--ignore-certificate-errors"] if wish.insecure else [])]
    argv = chromium.command_line(folder, netlog, wish.viewport, rules=rules, capture="Everything", more=more)
    running = Running(argv, chromium.environment(folder), folder / "log.txt", _spawn, browser.on_event)
    try:
        return browser.load(running)
    finally:
        running.end()


def _spawn(argv: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    return process.spawn(argv, ordinary_user=os.geteuid() == 0, **options)


class _Browser:
    """What a running browser has told so far."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._own_headers = [(name, value) for name, value in wish.headers if name.lower() != "user-agent"]
        self._exchanges = Exchanges()
        self._loads: dict[str, float] = {}  # loader -> time of its load event
        self._loader = self._frame = ""  # document and frame of the page
        self._wall_clock: float | None = None
        self._targets: set[str] = set()
        self._agent: dict[str, Any] | None = None
        self._counts: Counter[str] = Counter()
        self._crash: str | None = None

    def load(self, running: Running) -> Visit:
        """Loads the page and waits until the network is quiet."""
        self._devtools = running.devtools
        version = running.version()
        self._agent = _user_agent(self._wish, version)
        session = self._open_page()
        self._navigate(session)
        self._settle()
        history = self._devtools.call("Page.getNavigationHistory", {}, session)
        title = history["entries"][history["currentIndex"]]["title"]
        if not running.close():
            self._counts["times the browser had to be killed at the end; what it wrote last is lost"] += 1
        load_event = self._loads[self._loader]
        return Visit(
            browser=version,
            title=title,
            exchanges=self._exchanges.all,
            wall_clock=self._wall_clock or 0.0,
            load_event=load_event,
            notes=[f"{count} {what}" for what, count in sorted(self._counts.items())],
        )

    def _open_page(self) -> str:
        call = self._devtools.call
        call("Target.setDiscoverTargets", {"discover": True})
        call("Browser.setDownloadBehavior", {"behavior": "deny"})
        target = call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._targets.add(target)
        session = call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self._watch(session)
        # A document that comes before the blank one's renderer has confirmed this tells nothing.
        call("Page.setLifecycleEventsEnabled", {"enabled": True}, session)
        if self._wish.cookies:
            call("Network.setCookies", {"cookies": list(self._wish.cookies)}, session)
        if self._wish.mobile:
            width, height = self._wish.viewport
            screen = {"width": width, "height": height, "deviceScaleFactor": PHONE_PIXELS, "mobile": True}
            call("Emulation.setDeviceMetricsOverride", screen, session)
            call("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 5}, session)
        return session

    def _watch(self, session: str) -> None:
        """Has a target tell of its requests, and of targets that it makes (other sites' frames, workers)."""
        send = self._devtools.send
        # Bodies come from the NetLog.
        send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}, session)
        send("Network.setBypassServiceWorker", {"bypass": True}, session)
        send("Page.enable", {}, session)
        send("Page.setLifecycleEventsEnabled", {"enabled": True}, session)
        send("Inspector.enable", {}, session)
        if self._agent:
            send("Emulation.setUserAgentOverride", self._agent, session)
        if self._own_headers:
            send("Fetch.enable", {}, session)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        send("Target.setAutoAttach", attach, session)

    def _navigate(self, session: str) -> None:
        url, limit = self._wish.url, self._wish.timeout_s
        deadline = time.monotonic() + limit
        try:
            answer = self._devtools.call("Page.navigate", {"url": url}, session, limit)
            if error := answer.get("errorText"):
                raise self._failed(error.removeprefix("net::"))
            self._frame, self._loader = answer["frameId"], answer.get("loaderId", "")
            loaded = self._devtools.pump(self._loaded, deadline - time.monotonic())
        except DevtoolsTimeout:
            loaded = False
        self._check_alive()
        if not loaded:
            waiting = f"{self._exchanges.in_flight} requests were open"
            raise PageTimeout(
                f"{url} was not loaded within {limit:g} s ({waiting}); --timeout gives it longer"
            )
        self._check_status()

    def _loaded(self) -> bool:
        return self._crash is not None or self._loader in self._loads

    def _settle(self) -> None:
        """Waits until the network is quiet, and then as long as is wished for."""
        loaded = time.monotonic()
        quiet_since: float | None = None

        def done() -> bool:
            nonlocal quiet_since
            now = time.monotonic()
            since = now - max(loaded, self._exchanges.last_event or 0)
            quiet = since >= QUIET_S and not self._exchanges.in_flight and self._loaded()
            if quiet_since is None and (quiet or since >= STALLED_S or now - loaded >= LATE_S):
                quiet_since = now
            return bool(self._crash) or (quiet_since is not None and now - quiet_since >= self._wish.wait_s)

        while not done():
            self._devtools.pump(done, QUIET_S / 5)
        self._check_alive()
        if not self._loaded():
            raise PageTimeout(f"{self._wish.url} goes on to another address that does not load")
        self._check_status()

    def _check_status(self) -> None:
        documents = [e for e in self._exchanges.all if e.base_id == self._loader]
        if not documents:
            raise RunFailed(
                f"{self._wish.url}: the browser asked for no document; name a page on the network"
            )
        status, url = documents[-1].status or 0, documents[-1].url
        if status >= 400:
            raise self._refused(status, url)

    def _refused(self, status: int, url: str) -> RunFailed:
        remedy = {
            401: "--header or --cookie-file may let you in",
            403: "--header or --cookie-file may let you in, or --header 'User-Agent: ...'",
            404: "check the address",
        }.get(status, "try again later" if status in (429, 502, 503, 504) else "look at it in a browser")
        return RunFailed(f"{url} answered with status {status}; {remedy}")

    def _failed(self, error: str) -> RunFailed:
        documents = [e for e in self._exchanges.all if e.type == "html"]
        last = documents[-1] if documents else None
        url = last.url if last else self._wish.url
        if last and (last.status or 0) >= 400:
            return self._refused(last.status or 0, url)
        if error.startswith("ERR_CERT_") or error == "ERR_SSL_SERVER_CERT_BAD_FORMAT":
            return RunFailed(f"{url}: the certificate is not accepted ({error}); --insecure accepts any")
        remedy = _REMEDIES.get(error, "it did not load; look at it in a browser")
        return RunFailed(f"{url}: {remedy.format(host=url.split('/')[2])} ({error})")

    def _check_alive(self) -> None:
        if self._crash:
            raise RunFailed(f"{self._wish.url}: {self._crash}; try again")

    def on_event(self, method: str, params: dict[str, Any], session: str | None) -> None:
        """Takes what DevTools tells."""
        self._exchanges.handle(method, params, session)
        match method:
            case "Network.requestWillBeSent" if self._wall_clock is None:
                self._wall_clock = params["wallTime"] - params["timestamp"]
            case "Network.webSocketCreated":
                self._counts["websockets, which are not replayed"] += 1
            case "Fetch.requestPaused":
                self._devtools.send("Fetch.continueRequest", self._with_headers(params), session)
            case "Page.lifecycleEvent" if params["name"] == "load":
                self._loads.setdefault(params["loaderId"], params["timestamp"])
            case "Page.frameNavigated" if params["frame"]["id"] == self._frame:
                self._loader = params["frame"]["loaderId"]
            case "Target.attachedToTarget" if params["targetInfo"]["targetId"] not in self._targets:
                if params["targetInfo"]["type"] == "service_worker":
                    # Without running it asks for nothing.
                    self._counts["service workers, which were not let run"] += 1
                    return
                self._watch(params["sessionId"])
                self._devtools.send("Runtime.runIfWaitingForDebugger", {}, params["sessionId"])
            case "Target.targetCreated":
                target = params["targetInfo"]
                if (
                    target["type"] == "page"
                    and target.get("openerId")
                    and target["targetId"] not in self._targets
                ):
                    self._counts["windows that the page opened, which were closed"] += 1
                    self._devtools.send("Target.closeTarget", {"targetId": target["targetId"]})
            case "Page.javascriptDialogOpening":
                self._counts["dialogs dismissed"] += 1
                self._devtools.send("Page.handleJavaScriptDialog", {"accept": False}, session)
            case "Inspector.targetCrashed" | "Target.targetCrashed":
                self._crash = f"a page process crashed ({params.get('status', 'no cause given')})"

    def _with_headers(self, paused: dict[str, Any]) -> dict[str, Any]:
        """Adds the wished headers for the page's own host, and takes them off a redirect that leaves it."""
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


def _user_agent(wish: Wish, version: str) -> dict[str, Any] | None:
    """What the browser shall say of itself; None leaves it as it is."""
    if not wish.mobile:
        return {"userAgent": wish.user_agent} if wish.user_agent else None
    full = version.partition("/")[2] or "0"
    major = full.partition(".")[0]
    brands = [("Chromium", major, full), ("Not.A/Brand", "24", "24.0.0.0")]
    return {
        "userAgent": wish.user_agent or PHONE_AGENT.format(major=major),
        "platform": "Linux armv8l",
        "userAgentMetadata": {
            "brands": [{"brand": name, "version": short} for name, short, _ in brands],
            "fullVersionList": [{"brand": name, "version": long} for name, _, long in brands],
            "platform": "Android",
            "platformVersion": "11",
            "architecture": "",
            "model": "moto g power (2022)",
            "mobile": True,
        },
    }
