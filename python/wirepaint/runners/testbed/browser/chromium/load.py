"""One page visit: start the browser, load the page, wait until it is quiet, end the browser.

Every visit has a process and a profile of its own, so caches, connections and TLS sessions are
cold. Every error ends the browser and raises ``RunFailed`` with its cause.
"""

from __future__ import annotations

import time
from typing import Any

from wirepaint.errors import PageFailed, PageTimeout, RunFailed
from wirepaint.runners.testbed.browser import processes
from wirepaint.runners.testbed.browser.chromium import clock, netlog, paint, phone, program
from wirepaint.runners.testbed.browser.chromium.devtools import DevtoolsTimeout
from wirepaint.runners.testbed.browser.chromium.exchanges import Exchange
from wirepaint.runners.testbed.browser.chromium.observed import Observed
from wirepaint.runners.testbed.browser.chromium.running import CLOSE_S, Running
from wirepaint.runners.testbed.browser.chromium.watching import QUIET_S, Watching
from wirepaint.runners.testbed.browser.contract import (
    UNFINISHED,
    BrowserOptions,
    Frame,
    Moments,
    PageLoad,
    Spawn,
)

ANSWER_S = 5.0
"""If a page does not answer a script within this time, one of its scripts runs without end."""
TRACE_S = 20.0
"""Longest wait for the browser's trace."""

SCREENCAST = {"format": "jpeg", "quality": 60, "maxWidth": 320, "maxHeight": 200}


def visit(options: BrowserOptions, spawn: Spawn, moments: Moments | None = None) -> PageLoad:
    """Loads ``options.url`` once in a fresh browser; raises ``RunFailed`` if it did not load."""
    options.home.mkdir(parents=True, exist_ok=True)
    # The browser is another user; the folder lies in the run's private scratch space.
    options.home.chmod(0o777)
    with _Browser(options, spawn, moments) as browser:
        return browser.load()


class _Browser(Watching):
    """A running browser and its events so far."""

    def __init__(self, options: BrowserOptions, spawn: Spawn, moments: Moments | None) -> None:
        super().__init__(options.url)
        self._options, self._spawn, self._moments = options, spawn, moments
        self._frames: list[paint.Frame] = []
        self._lcp: dict[str, tuple[float, str]] = {}  # frame -> wall clock and image of the last candidate
        self._anchor: tuple[float, float] | None = None  # one instant: monotonic, wall clock
        self._clock = clock.script(options.clock_ms, options.seed)
        self._cpu_samples: list[tuple[float, float]] = []  # CLOCK_MONOTONIC, CPU seconds
        self._trace: list[dict[str, Any]] = []
        self._traced: bool | None = None  # whether the trace is complete, once it has come

    def __enter__(self) -> _Browser:
        options = self._options
        self._running = Running(
            program.arguments(options),
            program.environment(options.home),
            options.log,
            self._spawn,
            self.on_event,
        )
        self._devtools = self._running.devtools
        return self

    def __exit__(self, *_: object) -> None:
        self._running.end()

    def load(self) -> PageLoad:
        """Loads the page and returns the observations."""
        cpu_before = time.process_time()
        watch = processes.StopWatch(self._running.pid)
        version = self._running.version()
        self._agent = phone.user_agent(version) if self._options.mobile else None
        session = self._open_page()
        self._start_trace()

        self._devtools.meanwhile = watch.look
        if self._moments:
            self._moments.begin(processes.cpu(self._running.pid))
        self._navigate(session)
        if self._moments:
            self._moments.end(processes.cpu(self._running.pid), watch.stopped_s)
        self._devtools.meanwhile = None
        self._cpu_samples = watch.cpu_samples
        self._end_trace()
        quiet_s = QUIET_S if self._options.quiet_s is None else self._options.quiet_s
        if quiet_s:
            self._settle(quiet_s, expected=self._options.expected, sure_s=self._options.sure_s)
        controller_cpu = time.process_time() - cpu_before
        walk = self._evaluate(session, paint.WALK)
        metrics = self._devtools.call("Performance.getMetrics", {}, session, ANSWER_S)["metrics"]
        starts = [metric["value"] for metric in metrics if metric["name"] == "NavigationStart"]
        unconfined = processes.unconfined(self._running.pid)
        cpu = processes.cpu(self._running.pid)
        ended = time.monotonic()
        if not self._running.close():
            self._noted.append(("the browser was killed", f"it did not close within {CLOSE_S:g} s"))
        return self._result(version, starts[0], walk, unconfined, cpu, controller_cpu, ended)

    def _open_page(self) -> str:
        session = self._open_target(self._options.viewport if self._options.mobile else None)
        call = self._devtools.call
        call(
            "Page.addScriptToEvaluateOnNewDocument",
            {"source": paint.OBSERVE, "worldName": paint.WORLD},
            session,
        )
        # Without it, a page without scripts gets no isolated world, and the observers never start.
        call("Runtime.enable", {}, session)
        call("Performance.enable", {"timeDomain": "timeTicks"}, session)
        call("PerformanceTimeline.enable", {"eventTypes": ["largest-contentful-paint"]}, session)
        if self._options.screencast:
            call("Page.startScreencast", SCREENCAST, session)
        return session

    def _watch(self, session: str, *, worker: bool) -> None:
        if worker:
            self._devtools.send("Runtime.evaluate", {"expression": self._clock}, session)
        else:
            self._devtools.send("Page.addScriptToEvaluateOnNewDocument", {"source": self._clock}, session)
        super()._watch(session, worker=worker)

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
        if not self._goto(session, limit):
            why = (
                "a script runs without end"
                if self._stuck(session)
                else f"{self._exchanges.in_flight} open requests"
            )
            raise PageTimeout(f"{url} fired no load event within {limit:g} s: {why}")
        document = self._document()
        if document.status is None or document.status >= 400:
            raise PageFailed(f"{url} answered with status {document.status}")

    def _refused(self, error: str) -> RunFailed:
        return PageFailed(f"{self._url} did not load: {error}")

    def _stuck(self, session: str) -> bool:
        """True if the page's main thread does not answer even the simplest script."""
        try:
            self._devtools.call("Runtime.evaluate", {"expression": "1"}, session, ANSWER_S)
        except DevtoolsTimeout:
            return True
        return False

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
        frames = paint.since(self._frames, start)
        progress = paint.visual_progress(frames)
        last_frame = paint.last_change(progress)
        lcp, largest_url = self._lcp.get(self._frame, (None, None))
        if lcp is not None and self._anchor:
            lcp += self._anchor[0] - self._anchor[1]
        urls = set(walk["urls"])
        # By id, since the walk may name the address before or after a redirect.
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
                exchange.failed = UNFINISHED
        log = netlog.read(program.netlog_file(self._options))
        observed = Observed(self._exchanges.all, log, self._options.epoch_ns, visible)
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
            document=self._document().id,
            speed_index=paint.speed_index(progress, start),
            requests=observed.requests,
            connections=observed.connections,
            unseen=observed.unseen,
            cut_off=None if log.complete else "the NetLog",
            unconfined=unconfined,
            cpu_s=cpu,
            controller_cpu_s=controller_cpu,
            ended=ns(ended) or 0,
            frames=[
                Frame(ns(at) or 0, share, picture) for at, share, picture in paint.thinned(frames, progress)
            ],
            cpu_samples=[(ns(at) or 0, cpu_s) for at, cpu_s in self._cpu_samples],
            notes=[f"{what}: {of}" for what, of in self._noted],
            trace=self._trace,
        )

    def _document(self) -> Exchange:
        """The exchange that answered with the page's document."""
        documents = self._documents()
        if not documents:
            raise RunFailed(f"{self._options.url}: the browser reported no request for the document")
        return documents[-1]

    def on_event(self, method: str, params: dict[str, Any], session: str | None) -> None:
        super().on_event(method, params, session)
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
            case "Network.requestWillBeSent" if self._anchor is None:
                self._anchor = (params["timestamp"], params["wallTime"])
            case "PerformanceTimeline.timelineEventAdded":
                event = params["event"]
                image = event.get("lcpDetails", {}).get("url", "")
                self._lcp[event["frameId"]] = event["time"], image
