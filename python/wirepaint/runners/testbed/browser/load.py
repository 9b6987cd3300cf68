"""One page visit: start the browser, load the page, wait until it is quiet, end the browser.

Every visit has a process and a profile of its own, so caches, connections and TLS sessions are
cold. Whatever goes wrong ends as ``RunFailed`` with its cause, and the browser is gone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from wirepaint.errors import PageFailed, PageTimeout, RunFailed
from wirepaint.runners.testbed.browser import chromium, clock, netlog, paint, processes
from wirepaint.runners.testbed.browser.chromium import BrowserOptions
from wirepaint.runners.testbed.browser.devtools import DevtoolsTimeout
from wirepaint.runners.testbed.browser.exchanges import Exchange, Exchanges
from wirepaint.runners.testbed.browser.running import CLOSE_S, Running, Spawn

QUIET_S = 0.5
"""A visit ends when the network has been silent for this long after the load event."""
STALLED_S = 3.0
"""After the load event, a request without a byte for this long is cut off (long polls, streams)."""
LATE_S = 15.0
"""The longest wait for late objects after the load event."""
ANSWER_S = 5.0
"""A page that does not answer a script within this time runs a script without end."""
TRACE_S = 20.0
"""Time that the browser has to hand its trace over."""

SCREENCAST = {"format": "jpeg", "quality": 60, "maxWidth": 320, "maxHeight": 200}


@dataclass
class PageLoad:
    """What one visit showed. Times are nanoseconds since the run's epoch."""

    options: BrowserOptions
    browser: str
    """Product and version."""
    navigation_start: int
    dom_content_loaded: int | None
    load_event: int
    first_paint: int | None
    first_contentful_paint: int | None
    largest_contentful_paint: int | None
    largest_url: str | None
    """Address of the image that it shows; empty for text, None without one."""
    viewport_complete: int | None
    viewport_last_frame: int | None
    """When the screencast showed the final picture: the cross-check of ``viewport_complete``."""
    viewport_requests: set[str]
    """DevTools ids (without hop) of the requests whose objects paint in the first view port."""
    document: str
    """Id of the exchange that answered with the document."""
    speed_index: float | None
    """Milliseconds."""
    exchanges: list[Exchange]
    netlog: netlog.NetLog
    unconfined: str | None
    """What was missing of the browser's sandbox; None when it was in force."""
    cpu_s: float
    """CPU seconds of all processes of the browser."""
    controller_cpu_s: float
    """CPU seconds of this process while the page loaded."""
    ended: int
    """End of the visit."""
    notes: list[str] = field(default_factory=list)
    """What happened beside the load: dialogs answered, windows closed, requests cut off."""
    trace: list[dict[str, Any]] = field(default_factory=list)
    """Events of Chromium's own trace, where it was asked for."""

    def ns(self, seconds: float) -> int:
        """Nanoseconds since the epoch of a time that DevTools gave."""
        return round(seconds * 1e9) - self.options.epoch_ns


def visit(options: BrowserOptions, spawn: Spawn) -> PageLoad:
    """Loads ``options.url`` once in a fresh browser; raises ``RunFailed`` when it did not load."""
    options.home.mkdir(parents=True, exist_ok=True)
    # The browser is another user; the folder lies in the run's private scratch space.
    options.home.chmod(0o777)
    with _Browser(options, spawn) as browser:
        return browser.load()


class _Browser:
    """A running browser and what it has told so far."""

    def __init__(self, options: BrowserOptions, spawn: Spawn) -> None:
        self._options, self._spawn = options, spawn
        self._exchanges = Exchanges()
        self._frames: list[paint.Frame] = []
        self._milestones: dict[tuple[str, str], float] = {}  # (loader, lifecycle name) -> time
        self._lcp: dict[str, tuple[float, str]] = {}  # frame -> wall clock and image of the last candidate
        self._loader = self._frame = ""  # document and frame of the page
        self._anchor: tuple[float, float] | None = None  # one instant: monotonic, wall clock
        self._targets: set[str] = set()
        self._notes: list[str] = []
        self._crash: str | None = None
        self._clock = clock.script(options.clock_ms, options.seed)
        self._trace: list[dict[str, Any]] = []
        self._traced: bool | None = None  # whether the trace is complete, once it has come

    def __enter__(self) -> _Browser:
        options = self._options
        self._running = Running(
            chromium.arguments(options),
            chromium.environment(options.home),
            options.log,
            self._spawn,
            self._on_event,
        )
        self._devtools = self._running.devtools
        return self

    def __exit__(self, *_: object) -> None:
        self._running.end()

    def load(self) -> PageLoad:
        """Loads the page and returns what was seen."""
        cpu_before = time.process_time()
        version = self._running.version()
        session = self._open_page()
        self._start_trace()
        self._navigate(session)
        self._end_trace()
        self._settle()
        controller_cpu = time.process_time() - cpu_before
        walk = self._evaluate(session, paint.WALK)
        metrics = self._devtools.call("Performance.getMetrics", {}, session, ANSWER_S)["metrics"]
        starts = [metric["value"] for metric in metrics if metric["name"] == "NavigationStart"]
        unconfined = processes.unconfined(self._running.pid)
        cpu = processes.cpu(self._running.pid)
        ended = time.monotonic()
        if not self._running.close():
            self._notes.append(f"the browser did not close within {CLOSE_S:g} s and was killed")
        return self._result(version, starts[0], walk, unconfined, cpu, controller_cpu, ended)

    def _open_page(self) -> str:
        call = self._devtools.call
        call("Target.setDiscoverTargets", {"discover": True})
        call("Browser.setDownloadBehavior", {"behavior": "deny"})
        target = call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._targets.add(target)
        session = call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self._watch(session)
        call(
            "Page.addScriptToEvaluateOnNewDocument",
            {"source": paint.OBSERVE, "worldName": paint.WORLD},
            session,
        )
        # Without it a page that has no script of its own gets no world, and the observers never start.
        call("Runtime.enable", {}, session)
        call("Performance.enable", {"timeDomain": "timeTicks"}, session)
        call("PerformanceTimeline.enable", {"eventTypes": ["largest-contentful-paint"]}, session)
        if self._options.screencast:
            call("Page.startScreencast", SCREENCAST, session)
        return session

    def _watch(self, session: str, *, session_of_worker: bool = False) -> None:
        """Has a target tell of its requests, and of targets that it makes (other sites' frames, workers)."""
        if session_of_worker:
            evaluate = {"expression": self._clock}
            self._devtools.send("Runtime.evaluate", evaluate, session)
        else:
            self._devtools.send("Page.addScriptToEvaluateOnNewDocument", {"source": self._clock}, session)
        # Bodies are never read back, so none need be kept.
        self._devtools.send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}, session)
        self._devtools.send("Page.enable", {}, session)
        self._devtools.send("Page.setLifecycleEventsEnabled", {"enabled": True}, session)
        self._devtools.send("Inspector.enable", {}, session)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        self._devtools.send("Target.setAutoAttach", attach, session)

    def _start_trace(self) -> None:
        if self._options.trace:
            config = {"includedCategories": list(self._options.trace), "recordMode": "recordUntilFull"}
            self._devtools.call("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})

    def _end_trace(self) -> None:
        if self._options.trace:
            self._devtools.call("Tracing.end", {})
            if not self._devtools.pump(lambda: self._traced is not None, TRACE_S) or not self._traced:
                raise RunFailed(f"{self._options.url}: the browser's trace is not complete")

    def _navigate(self, session: str) -> None:
        url, limit = self._options.url, self._options.timeout_s
        deadline = time.monotonic() + limit
        try:
            answer = self._devtools.call("Page.navigate", {"url": url}, session, limit)
            if error := answer.get("errorText"):
                raise PageFailed(f"{url} did not load: {error}")
            self._frame, self._loader = answer["frameId"], answer.get("loaderId", "")
            loaded = self._devtools.pump(self._loaded, deadline - time.monotonic())
        except DevtoolsTimeout:
            loaded = False
        self._check_alive()
        if not loaded:
            why = (
                "a script runs without end"
                if self._stuck(session)
                else f"{self._exchanges.in_flight} open requests"
            )
            raise PageTimeout(f"{url} fired no load event within {limit:g} s: {why}")
        document = self._document()
        if document.status is None or document.status >= 400:
            raise PageFailed(f"{url} answered with status {document.status}")

    def _loaded(self) -> bool:
        return self._crash is not None or (self._loader, "load") in self._milestones

    def _stuck(self, session: str) -> bool:
        """True when the page's main thread does not get round to the simplest script."""
        try:
            self._devtools.call("Runtime.evaluate", {"expression": "1"}, session, ANSWER_S)
        except DevtoolsTimeout:
            return True
        return False

    def _settle(self) -> None:
        """Waits until the network is quiet."""
        loaded = time.monotonic()
        quiet_s = QUIET_S if self._options.quiet_s is None else self._options.quiet_s

        def quiet() -> bool:
            now = time.monotonic()
            since = now - max(loaded, self._exchanges.last_event or 0)
            if self._crash or (since >= quiet_s and not self._exchanges.in_flight and self._loaded()):
                return True
            return since >= max(STALLED_S, quiet_s) or now - loaded >= LATE_S

        while not quiet():
            self._devtools.pump(quiet, quiet_s / 5)
        self._check_alive()

    def _evaluate(self, session: str, expression: str) -> dict[str, Any]:
        """Runs a script in our world of the page's document."""
        try:
            world = {"frameId": self._frame, "worldName": paint.WORLD}
            context = self._devtools.call("Page.createIsolatedWorld", world, session, ANSWER_S)
            evaluate = {
                "expression": expression,
                "contextId": context["executionContextId"],
                "returnByValue": True,
            }
            answer = self._devtools.call("Runtime.evaluate", evaluate, session, ANSWER_S)
        except DevtoolsTimeout:
            raise PageTimeout(
                f"{self._options.url}: the page does not answer: a script runs without end"
            ) from None
        if "exceptionDetails" in answer:
            raise RunFailed(f"the view-port walk failed: {answer['exceptionDetails'].get('text')}")
        return answer["result"]["value"]

    def _result(
        self,
        version: str,
        navigation_start: float,
        walk: dict[str, Any],
        unconfined: str | None,
        cpu: float,
        controller_cpu: float,
        ended: float,
    ) -> PageLoad:
        def milestone(name: str) -> float | None:
            return self._milestones.get((self._loader, name))

        def ns(seconds: float | None) -> int | None:
            return None if seconds is None else round(seconds * 1e9) - self._options.epoch_ns

        first = self._exchanges.all[0].discovered
        # A redirect by script or meta tag begins a second document; the visit began with the first.
        start = min(navigation_start, first)
        progress = paint.visual_progress([frame for frame in self._frames if frame.time >= start])
        last_frame = paint.last_change(progress)
        lcp, largest_url = self._lcp.get(self._frame, (None, None))
        if lcp is not None and self._anchor:
            lcp += self._anchor[0] - self._anchor[1]
        urls = set(walk["urls"])
        # By id, since the walk may name the address before a redirect or after it.
        visible = {exchange.base_id for exchange in self._exchanges.all if exchange.url in urls}
        loaded = [e.last_byte for e in self._exchanges.all if e.base_id in visible and not e.failed]
        painted = [navigation_start + at / 1000 for url, at in walk["paints"] if url in urls]
        # The largest paint lies in the view port by definition; text may wait for its font.
        ends = [milestone("firstContentfulPaint"), lcp, *loaded, *painted]
        if walk["opaque"]:
            ends.append(last_frame)
        complete = max((at for at in ends if at is not None), default=None)
        for exchange in self._exchanges.all:
            if not exchange.done:
                exchange.failed = "not finished when the visit ended"
        load_event = milestone("load")
        assert load_event is not None  # _navigate waited for it
        return PageLoad(
            options=self._options,
            browser=version,
            navigation_start=ns(start) or 0,
            dom_content_loaded=ns(milestone("DOMContentLoaded")),
            load_event=ns(load_event) or 0,
            first_paint=ns(milestone("firstPaint")),
            first_contentful_paint=ns(milestone("firstContentfulPaint")),
            largest_contentful_paint=ns(lcp),
            largest_url=largest_url,
            viewport_complete=ns(complete),
            viewport_last_frame=ns(last_frame),
            viewport_requests=visible,
            document=self._document().id,
            speed_index=paint.speed_index(progress, start),
            exchanges=self._exchanges.all,
            netlog=netlog.read(self._options.netlog),
            unconfined=unconfined,
            cpu_s=cpu,
            controller_cpu_s=controller_cpu,
            ended=ns(ended) or 0,
            notes=self._notes,
            trace=self._trace,
        )

    def _document(self) -> Exchange:
        """The exchange that answered with the page's document."""
        documents = [e for e in self._exchanges.all if e.base_id == self._loader]
        if not documents:
            raise RunFailed(f"{self._options.url}: the browser reported no request for the document")
        return documents[-1]

    def _check_alive(self) -> None:
        if self._crash:
            raise RunFailed(f"{self._options.url}: {self._crash}")

    def _on_event(self, method: str, params: dict[str, Any], session: str | None) -> None:
        self._exchanges.handle(method, params, session)
        match method:
            case "Page.screencastFrame":
                frame = params["metadata"]
                at = frame.get("monotonicTimestamp")
                if at is None and self._anchor:
                    at = frame["timestamp"] + self._anchor[0] - self._anchor[1]
                if at is not None:
                    self._frames.append(paint.Frame(at, params["data"]))
                self._devtools.send("Page.screencastFrameAck", {"sessionId": params["sessionId"]}, session)
            case "Tracing.dataCollected":
                self._trace += params["value"]
            case "Tracing.tracingComplete":
                self._traced = not params["dataLossOccurred"]
            case "Page.lifecycleEvent":
                self._milestones.setdefault((params["loaderId"], params["name"]), params["timestamp"])
            case "Page.frameNavigated" if params["frame"]["id"] == self._frame:
                self._loader = params["frame"]["loaderId"]
            case "Network.requestWillBeSent" if self._anchor is None:
                self._anchor = (params["timestamp"], params["wallTime"])
            case "PerformanceTimeline.timelineEventAdded":
                event = params["event"]
                image = event.get("lcpDetails", {}).get("url", "")
                self._lcp[event["frameId"]] = event["time"], image
            case "Target.attachedToTarget" if params["targetInfo"]["targetId"] not in self._targets:
                self._watch(params["sessionId"], session_of_worker="worker" in params["targetInfo"]["type"])
                self._devtools.send("Runtime.runIfWaitingForDebugger", {}, params["sessionId"])
            case "Target.targetCreated":
                target = params["targetInfo"]
                if (
                    target["type"] == "page"
                    and target.get("openerId")
                    and target["targetId"] not in self._targets
                ):
                    self._notes.append(f"closed a window that the page opened: {target['url']}")
                    self._devtools.send("Target.closeTarget", {"targetId": target["targetId"]})
            case "Page.javascriptDialogOpening":
                self._notes.append(f"dismissed a dialog of type {params['type']}")
                self._devtools.send("Page.handleJavaScriptDialog", {"accept": False}, session)
            case "Inspector.targetCrashed" | "Target.targetCrashed":
                self._crash = f"a page process crashed ({params.get('status', 'no cause given')})"
