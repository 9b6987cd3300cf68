"""Is the report's waterfall fluid at 1,000 requests? Prints CPU time per frame against a frame's 16.7 ms.

    .venv/bin/python benches/waterfall.py [REQUESTS]

Two made-up visits of 60 connections, each with 600 samples of its window, are shown in Chromium. Per view
it zooms, moves and scrolls, one step a frame. The peer is the same page while it only waits for frames. CPU
time is that of the page's main thread (script, style, layout, paint), so a busy machine changes it little;
the time from frame to frame is real. Asked for: CPU time beyond the peer's within one frame; the exit code
says so.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from playwright.sync_api import sync_playwright

from wirepaint.report import render, visits

SHELL = Path("/usr/lib/chromium/chromium-headless-shell")
FRAME_MS = 1000 / 60
STEPS = 120
CONNECTIONS = 60
END = 800_000
"""Length of a visit: 8 s in ticks of 10 µs."""

MEASURE = """
async ([view, steps]) => {
  if (view !== "idle") board.views.value = view;
  board.arrange();
  const list = view === "difference" ? board.difference.rows : board.panes[0].rows;
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  for (let n = 0; n < steps; n += 1) {
    if (view !== "idle") {
      if (n % 3 === 0) board.timeline.scale(n < steps / 2 ? 0.93 : 1.07, 3000);
      else if (n % 3 === 1) board.timeline.pan(0.02);
      else list.box.scrollTop += 90;
      board.render();
    }
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  return frames.sort((a, b) => a - b)[Math.floor(steps / 2)];
}
"""


def visit(requests: int, seed: int) -> dict[str, Any]:
    """A packed visit of ``requests`` requests, as :func:`wirepaint.report.visits.visit` gives it."""
    rng = random.Random(seed)
    rows, chunks = [], []
    for n in range(requests):
        queued = round(END * 0.8 * n / requests)
        sent, first, last = queued + rng.randrange(900), queued + rng.randrange(1_000, 9_000), queued + 20_000
        kind = rng.choice(["css", "js", "image", "font", "data"])
        row = {
            "url": f"https://host{n % 20}.example/{kind}/object-{n:04}.{kind}", "type": kind, "method": "GET",
            "status": 200, "protocol": "h2", "connection": n % CONNECTIONS, "priority": "High",
            "initiator_type": "parser", "first_on_connection": n < CONNECTIONS, "encoded_bytes": 40_000,
            "decoded_bytes": 90_000, "discovered": queued, "queued": queued, "sent": sent,
            "first_byte": first, "last_byte": last,
        }  # fmt: skip
        rows.append([row.get(name) for name in visits.OBJECT_COLUMNS])
        chunks.append([value for k in range(20) for value in (first if k == 0 else 500, 2_000)])
    connections = [
        {
            "connection": n, "host": f"host{n % 20}.example", "protocol": "h2", "encrypted": True,
            "congestion": "cubic", "initial_window": 10, "bytes_received": 600_000, "objects": 17,
            "retransmitted_segments": 2, "reason": "request", "server_address": "10.65.0.1",
            "server_port": 443, "mss": 1448, "opened": n * 100, "connected": n * 100 + 2_600,
            "tls_done": n * 100 + 5_200, "last_byte": END - 20_000, "closed": None, "min_rtt": 2_600,
            "group_hosts": None,
        }
        for n in range(CONNECTIONS)
    ]  # fmt: skip
    times = [END * k // 600 for k in range(600)]
    series = {
        "time": times, "cwnd": [10 + k % 90 for k in range(600)], "ssthresh": [None] * 300 + [60] * 300,
        "in_flight": [k % 80 for k in range(600)], "state": ["Open"] * 600, "resent": times[::50],
    }  # fmt: skip
    link = [END * k // visits.LINK_BUCKETS for k in range(visits.LINK_BUCKETS)]
    return {
        "key": f"run-{seed}", "end": END, "url": "https://host0.example/",
        "marks": [["FCP", 100_000], ["LCP", 300_000], ["load", 700_000]], "columns": visits.OBJECT_COLUMNS,
        "objects": rows, "headers": [], "headers_of": [None] * requests, "chunks": chunks,
        "connections": connections, "tcp": {str(n): series for n in range(CONNECTIONS)},
        "link": {"time": link, "queue": [k % 60 for k in range(500)], "drops": [0] * 500,
                 "delivered": [50_000] * 499 + [None], "capacity": [62_500] * 499 + [None]},
        "cpu": {"time": times[::8], "busy": [0.7] * 75},
    }  # fmt: skip


def page(requests: int) -> str:
    """The report's own template, style and scripts around two visits."""
    index = [
        {
            "key": f"run-{n}", "id": f"visit-{n}", "film": None, "series": n + 1, "scenario": f"scenario {n}",
            "network": "lte", "user_agent": "user", "page": "page", "visit": 1, "verdict": "valid",
            "backend": "testbed", "role": "median", "name": f"condition {n}", "marks": {},
            "requests": requests, "bytes": 0,
        }
        for n in range(2)
    ]  # fmt: skip
    packed = {f"visit-{n}": visits.pack(visit(requests, n)) for n in range(2)}
    shown = visits.Visits(index, packed, 0, 0, [])
    report = SimpleNamespace(visits=shown, manifest=SimpleNamespace(backend="testbed"))
    environment = render._environment()  # what the report itself draws with
    board = environment.get_template("waterfall.html.j2").render(report=report)
    style, scripts = environment.globals["style"], environment.globals["scripts"]
    tags = "".join(f"<script>{script}</script>" for script in scripts)  # type: ignore[attr-defined]
    return f"<!DOCTYPE html><style>{style}</style><main>{board}</main><div id=tip hidden></div>{tags}"


def main() -> int:
    if "--help" in sys.argv:
        print(__doc__)
        return 0
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "waterfall.html")
        file.write_text(page(requests), "utf-8")
        browser = playwright.chromium.launch(executable_path=SHELL, args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1280, "height": 1000})
        shown.goto(file.as_uri())
        shown.locator(".pane").nth(1).locator(".rows .bar").first.wait_for()
        clock = shown.context.new_cdp_session(shown)
        clock.send("Performance.enable", {"timeDomain": "threadTicks"})

        def cpu_ms() -> float:
            found = clock.send("Performance.getMetrics")["metrics"]
            return next(1000 * one["value"] for one in found if one["name"] == "TaskDuration")

        print(f"{requests} requests, two visits; ms of CPU a step, against a frame of {FRAME_MS:.1f}")
        print(f"{'view':14}{'CPU':>8}{'/ frame':>9}{'frame to frame, median':>25}")
        idle = 0.0
        for view in ("idle", "requests", "connections", "difference"):
            before = cpu_ms()
            frame = shown.evaluate(MEASURE, [view, STEPS])
            spent = (cpu_ms() - before) / STEPS
            idle = spent if view == "idle" else idle
            worst = max(worst, (spent - idle) / FRAME_MS)
            print(f"{view:14}{spent:8.1f}{spent / FRAME_MS:9.2f}{frame:25.1f}")
        browser.close()
    return 0 if worst <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
