"""Sets up a browser for one page load and collects its events.

A visit of the testbed and a recording of a live page both build on :class:`Watching`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

from wirepaint.errors import PageTimeout, RunFailed
from wirepaint.runners.testbed.browser.chromium import phone
from wirepaint.runners.testbed.browser.chromium.devtools import Devtools, DevtoolsTimeout
from wirepaint.runners.testbed.browser.chromium.exchanges import Exchange, Exchanges

QUIET_S = 0.5
"""A visit ends when the network has been silent for this long after the load event."""
STALLED_S = 3.0
"""After the load event, a request without a byte for this long is cut off (long polls, streams)."""
BLANK = "about:blank"
LATE_S = 15.0
"""The longest wait for late objects after the load event."""


class Watching(ABC):
    """One load of one page in a browser of its own. A subclass starts the browser and sets ``_devtools``."""

    _devtools: Devtools

    def __init__(self, url: str) -> None:
        self._url = url
        self._exchanges = Exchanges()
        self._milestones: dict[tuple[str, str], float] = {}  # (loader, lifecycle name) -> time
        self._loader = self._frame = ""  # document and frame of the page
        self._targets: set[str] = set()
        self._agent: dict[str, Any] | None = None  # parameters of the user agent override
        self._noted: list[tuple[str, str]] = []  # other events: what happened, and to what
        self._crash: str | None = None

    def _open_target(self, phone_viewport: tuple[int, int] | None) -> str:
        """Opens a blank page, with the screen of a phone if asked for, and returns its session."""
        call = self._devtools.call
        call("Target.setDiscoverTargets", {"discover": True})
        call("Browser.setDownloadBehavior", {"behavior": "deny"})
        target = call("Target.createTarget", {"url": BLANK})["targetId"]
        self._targets.add(target)
        self._frame = target  # Chromium gives a page's main frame the id of its target.
        session = call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self._watch(session, worker=False)
        # A document reports nothing if it comes before the blank page's renderer has confirmed this.
        call("Page.setLifecycleEventsEnabled", {"enabled": True}, session)
        if phone_viewport:
            phone.emulate(self._devtools, session, phone_viewport)
        return session

    def _watch(self, session: str, *, worker: bool) -> None:
        """Turns on a target's events: requests, and new targets (other sites' frames, workers)."""
        send = self._devtools.send
        # DevTools never reads bodies, so the browser need not keep them.
        send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}, session)
        if self._agent:
            send("Emulation.setUserAgentOverride", self._agent, session)
        if not worker:
            send("Page.enable", {}, session)
            send("Page.setLifecycleEventsEnabled", {"enabled": True}, session)
        send("Inspector.enable", {}, session)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        send("Target.setAutoAttach", attach, session)

    def _goto(self, session: str, limit_s: float) -> bool:
        """Navigates; True once the load event has fired, False if it did not within the limit."""
        deadline = time.monotonic() + limit_s
        try:
            answer = self._devtools.call("Page.navigate", {"url": self._url}, session, limit_s)
            if error := answer.get("errorText"):
                raise self._refused(error)
            # A script may have sent the browser on to another document before this answer came.
            self._loader = self._loader or answer.get("loaderId", "")
            loaded = self._devtools.pump(self._loaded, deadline - time.monotonic())
        except DevtoolsTimeout:
            loaded = False
        self._check_alive()
        return loaded

    @abstractmethod
    def _refused(self, error: str) -> RunFailed:
        """The exception to raise if the browser does not navigate; ``error`` is its name of the error."""

    def _loaded(self) -> bool:
        return self._crash is not None or (self._loader, "load") in self._milestones

    def _settle(
        self,
        quiet_s: float = QUIET_S,
        wait_s: float = 0.0,
        *,
        expected: frozenset[str] = frozenset(),
        sure_s: float | None = None,
    ) -> None:
        """Waits until the network has been silent for ``quiet_s``, and then for ``wait_s``.

        A silence of ``sure_s`` is enough, if given, once the ``expected`` addresses were asked for.
        A script may have navigated to another document meanwhile; it has to load as well.
        """
        loaded = time.monotonic()
        settled: float | None = None

        def done() -> bool:
            nonlocal settled
            now = time.monotonic()
            since = now - max(loaded, self._exchanges.last_event or 0)
            silent = since >= quiet_s or (
                sure_s is not None and since >= sure_s and self._asked_for(expected)
            )
            quiet = silent and not self._exchanges.in_flight and self._loaded()
            if settled is None and (quiet or since >= max(STALLED_S, quiet_s) or now - loaded >= LATE_S):
                settled = now
            return bool(self._crash) or (settled is not None and now - settled >= wait_s)

        while not done():
            self._devtools.pump(done, min(quiet_s, sure_s or quiet_s) / 5)
        self._check_alive()
        if not self._loaded():
            raise PageTimeout(f"{self._url} goes on to another address that does not load")

    def _asked_for(self, expected: frozenset[str]) -> bool:
        return expected <= {exchange.url for exchange in self._exchanges.all}

    def _check_alive(self) -> None:
        if self._crash:
            raise RunFailed(f"{self._url}: {self._crash}")

    def _documents(self) -> list[Exchange]:
        """The exchanges of the page's document, redirects first."""
        return [exchange for exchange in self._exchanges.all if exchange.base_id == self._loader]

    def on_event(self, method: str, params: dict[str, Any], session: str | None) -> None:
        """Handles a DevTools event."""
        self._exchanges.handle(method, params, session)
        match method:
            case "Page.lifecycleEvent":
                self._milestones.setdefault((params["loaderId"], params["name"]), params["timestamp"])
            case "Page.frameNavigated" if params["frame"]["id"] == self._frame:
                # The page that the browser opened with has a load event, too.
                if params["frame"]["url"] != BLANK:
                    self._loader = params["frame"]["loaderId"]
            case "Target.attachedToTarget" if params["targetInfo"]["targetId"] not in self._targets:
                self._attached(params["targetInfo"]["type"], params["sessionId"])
            case "Target.targetCreated":
                target = params["targetInfo"]
                if (
                    target["type"] == "page"
                    and target.get("openerId")
                    and target["targetId"] not in self._targets
                ):
                    self._noted.append(("closed a window that the page opened", target["url"]))
                    self._devtools.send("Target.closeTarget", {"targetId": target["targetId"]})
            case "Page.javascriptDialogOpening":
                self._noted.append(("dismissed a dialog", params["type"]))
                self._devtools.send("Page.handleJavaScriptDialog", {"accept": False}, session)
            case "Inspector.targetCrashed" | "Target.targetCrashed":
                self._crash = f"a page process crashed ({params.get('status', 'no cause given')})"

    def _attached(self, kind: str, session: str) -> None:
        """Watches a new frame of another site, or a worker, and lets it run."""
        self._watch(session, worker="worker" in kind)
        self._devtools.send("Runtime.runIfWaitingForDebugger", {}, session)
