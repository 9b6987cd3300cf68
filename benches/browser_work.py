"""What a browser's main thread does while it loads the shipped pages: asking, parsing, styles, layout, paint.

    sudo .venv/bin/python benches/browser_work.py [--visits N] [--json]

Loads each shipped page through the whole testbed without a limit, with Chromium's own trace switched on,
and adds up the CPU time of the main thread until the load event by kind of work. What parsing and layout
cost depends on what a document says, so that no page made for it tells: the page model's costs per request
asked for, per element and per 1024 bytes of documents and stylesheets (``Compute``,
python/wirepaint/catalog/browsers) are least squares over these pages. The trace itself costs some of the
time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import page_load
from scipy.optimize import nnls

from wirepaint import pages
from wirepaint.pages.loading import load_graph
from wirepaint.runners.testbed.browser import BrowserOptions
from wirepaint.runners.testbed.cells import Cells

CATEGORIES = ["devtools.timeline", "blink"]
KINDS = {
    "ask": "ResourceFetcher::requestResource",
    "html": "ParseHTML",
    "css": "ParseAuthorStyleSheet",
    "layout": "UpdateLayoutTree|Layout|PrePaint|Paint|Layerize|Commit|HitTest",
}
"""Names of trace events by kind; the first that fits."""


def visit(ask: dict[str, Any]) -> dict[str, Any]:
    """Inside a cell: one visit; main-thread CPU time in us by kind of work, and layouts."""
    from wirepaint.runners.testbed.browser.chromium import load

    navigate, on_event = load._Browser._navigate, load._Browser.on_event
    events: list[dict[str, Any]] = []
    complete: list[bool] = []

    def heard(self: load._Browser, method: str, params: dict[str, Any], session: str | None) -> None:
        match method:
            case "Tracing.dataCollected":
                events.extend(params["value"])
            case "Tracing.tracingComplete":
                complete.append(not params["dataLossOccurred"])
            case _:
                on_event(self, method, params, session)

    def watched(self: load._Browser, session: str) -> None:
        config = {"includedCategories": CATEGORIES, "recordMode": "recordUntilFull"}
        self._devtools.call("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
        navigate(self, session)
        self._devtools.call("Tracing.end", {})
        if not self._devtools.pump(lambda: bool(complete), 20) or not complete[0]:
            raise RuntimeError("the browser's trace is not complete")

    load._Browser._navigate, load._Browser.on_event = watched, heard
    page_load.load_testbed(ask)
    return work(events)


def work(events: list[dict[str, Any]]) -> dict[str, Any]:
    """CPU time in us by kind of work until the load event, on the thread that fired it."""
    loads = [event for event in events if event["name"] == "MarkLoad"]
    load = [event for event in loads if event["args"]["data"]["isOutermostMainFrame"]][-1]
    here = [e for e in events if (e["pid"], e["tid"]) == (load["pid"], load["tid"])]
    here.sort(key=lambda event: (event["ts"], -event.get("dur", 0)))
    spans = [event for event in here if event.get("ph") == "X" and event["ts"] < load["ts"]]
    # In the category "blink" only these names count: its other spans are parts of those above.
    spans = [span for span in spans if "devtools.timeline" in span["cat"] or span["name"] == KINDS["ask"]]
    used: Counter[str] = Counter()
    stack: list[tuple[float, str]] = []
    for span in spans:
        while stack and stack[-1][0] <= span["ts"]:
            stack.pop()
        kind = next((kind for kind, names in KINDS.items() if re.fullmatch(names, span["name"])), "other")
        used[kind] += span.get("tdur", 0)
        if stack:
            used[stack[-1][1]] -= span.get("tdur", 0)  # spans nest: each counts less what is within it
        stack.append((span["ts"] + span.get("dur", 0), kind))
    layouts = sum(span["name"] == "Layout" for span in spans)
    return {"us": dict(used), "layouts": layouts}


def fit(rows: list[dict[str, Any]], kind: str, features: tuple[str, ...]) -> dict[str, float]:
    """Least squares of the CPU time of ``kind``, in us for one of each feature."""
    x = np.array([[row[feature] for feature in features] for row in rows], float)
    y = np.array([row["us"].get(kind, 0) for row in rows])
    weights = 1 / np.maximum(y, 1000)
    found, _ = nnls(x * weights[:, None], y * weights)
    return dict(zip(features, found.tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visits", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # a cell imports this file by name
    rows = []
    with tempfile.TemporaryDirectory() as scratch, Cells() as cells:
        for name, folder in sorted(pages.shipped().items()):
            page = pages.prepare(folder, pages.cache_dir())
            seen = []
            for number in range(options.visits + 1):
                trace = Path(scratch) / f"{name}-{number}"
                seen.append(page_load.visited(cells, "browser_work:visit", page, "h2", trace))
            rows.append(row_of(page, seen[1:]))
    costs = {
        "ask": fit(rows, "ask", ("requests",)),
        "html": fit(rows, "html", ("html_kib", "elements")),
        "css": fit([row for row in rows if not row["synthetic"]], "css", ("css_kib",)),
        "layout": fit(rows, "layout", ("layouts", "elements")),
    }
    if options.json:
        print(json.dumps({"pages": rows, "us": costs}, indent=1))
        return
    print(f"main thread until the load event, CPU time in ms, median of {options.visits} visits")
    print(f"{'':14}{'elements':>9}{'html KiB':>9}{'css KiB':>9}{'layouts':>8}", end="")
    print("".join(f"{kind:>9}" for kind in (*KINDS, "other")))
    for row in rows:
        print(f"{row['page']:14}{row['elements']:9}{row['html_kib']:9.0f}{row['css_kib']:9.0f}", end="")
        print(f"{row['layouts']:8.0f}", end="")
        print("".join(f"{row['us'].get(kind, 0) / 1000:9.1f}" for kind in (*KINDS, "other")))
    for kind, of in costs.items():
        print(f"{kind}: " + ", ".join(f"{cost:.1f} us of {feature}" for feature, cost in of.items()))


def row_of(page: pages.PreparedPage, seen: list[dict[str, Any]]) -> dict[str, Any]:
    """A page's features and the medians of its visits."""
    graph = load_graph(page, BrowserOptions.viewport)
    documents = [resource.get("document") for resource in graph["resources"]]
    kib: Counter[str] = Counter()
    for resource in page.resources:
        kib[resource["type"]] += resource["decoded_bytes"] / 1024
    kinds = {kind for each in seen for kind in each["us"]}
    return {
        "page": page.name,
        "synthetic": page.resources[0]["synthetic"],
        "elements": sum(document["elements"] for document in documents if document),
        "requests": len(page.resources),
        "html_kib": kib["html"],
        "css_kib": kib["css"],
        "layouts": statistics.median(each["layouts"] for each in seen),
        "us": {kind: statistics.median(each["us"].get(kind, 0) for each in seen) for kind in kinds},
    }


if __name__ == "__main__":
    main()
