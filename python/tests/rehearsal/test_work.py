"""Computing times of the page's scripts, styles and handlers, from a trace."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from wirepaint.pages import PreparedPage
from wirepaint.pages.model import Page, Rehearsed
from wirepaint.rehearsal import work
from wirepaint.rehearsal.fitting import Part

from .takes import URL, request, take

HTML = """<!doctype html><html><head>
<script>first()</script><script type="module" src="/1"></script></head>
<body><p>text</p><script>second()</script>
</body></html>"""
MAIN = {"pid": 1, "tid": 2}
FRAME = {"isOutermostMainFrame": True, "isMainFrame": True}


def event(name: str, at: float, took: float, **args: Any) -> dict[str, Any]:
    """An event of the main thread, in ms, which waits for a CPU in half of its time."""
    times = {"ts": at * 1000, "dur": took * 1000, "tdur": took * 500}
    return {"name": name, "ph": "X", **times, "args": args, **MAIN}


def mark(name: str, at: float) -> dict[str, Any]:
    return {"name": name, "ph": "I", "ts": at * 1000, "args": {"data": FRAME}, **MAIN}


def evaluated(at: float, took: float, line: int, column: int) -> dict[str, Any]:
    return event("EvaluateScript", at, took, data={"url": URL, "lineNumber": line, "columnNumber": column})


@pytest.fixture
def described(tmp_path: Path) -> list[Rehearsed]:
    """The document and its module, after a load whose trace is known."""
    trace = [
        evaluated(10, 4.0, 2, 9),
        event("v8.compileModule", 20, 1.0, fileName=f"{URL}1"),
        evaluated(30, 40.0, 3, 26),
        event("v8.evaluateModule", 80, 2.0, worldId=0),
        event("RunMicrotasks", 82.5, 15.0, microtask_count=3),
        # Microtasks long after a script belong to no script.
        event("RunMicrotasks", 110, 30.0, microtask_count=1),
        event("UpdateLayoutTree", 140.5, 1.0),
        event("Layout", 142, 4.0),
        event("Paint", 147, 2.0),
        event("Layout", 149.1, 0.8),
        event("EventDispatch", 150, 6.0, data={"type": "DOMContentLoaded"}),
        mark("MarkDOMContent", 156),
        event("EventDispatch", 158, 1.0, data={"type": "load"}),  # an image's
        event("EventDispatch", 160, 9.0, data={"type": "load"}),
        mark("MarkLoad", 169),
    ]
    bodies = [HTML.encode(), b"export {}"]
    resources: list[dict[str, Any]] = []
    responses: list[dict[str, Any]] = []
    for number, (kind, body) in enumerate(zip(("html", "js"), bodies, strict=True)):
        file = tmp_path / str(number)
        file.write_bytes(gzip.compress(body))
        url = URL if number == 0 else f"{URL}{number}"
        headers = [["content-encoding", "gzip"]]
        resources.append(
            {
                "id": number,
                "url": url,
                "type": kind,
                "headers": headers,
                "wire_bytes": file.stat().st_size,
                "decoded_bytes": len(body),
                "cause": {"by": None, "kind": "navigation"} if number == 0 else {"by": 0, "kind": "parser"},
                "rehearsed": {"asked": 1},
            }
        )
        responses.append({"method": "GET", "url": url, "status": 200, "headers": headers, "body": str(file)})
    prepared = PreparedPage("page", URL, [("https", "a.test", 443)], responses, resources)
    page = Page.model_validate({"name": "page", "url": URL, "resources": resources})
    part = Part(prepared, page.resources, prepared.origins, (1280, 800))
    quiet = take([request(0, 0, 10), request(1, 12, 18)])
    quiet.trace = trace
    work.describe(part, quiet)
    found = [resource.rehearsed for resource in page.resources]
    return [each for each in found if each is not None]


def test_each_script_in_the_text_has_its_time(described: list[Rehearsed]) -> None:
    assert described[0].inline_ms == [4.0, 40.0]


def test_a_module_that_runs_without_a_name_is_that_of_the_document(described: list[Rehearsed]) -> None:
    # Compiled, run, and what its promises led to at once.
    assert described[1].compute_ms == 18.0


def test_a_layout_has_its_cpu_time_and_its_waits_apart(described: list[Rehearsed]) -> None:
    assert (described[0].compute_ms, described[0].layout_wait_ms) == (3.5, 3.0)
    assert (described[0].style_ms, described[0].style_wait_ms) == (0.5, 0.5)
    assert described[0].later_layouts_ms == 0.8


def test_handlers_are_those_that_end_with_the_event(described: list[Rehearsed]) -> None:
    assert (described[0].content_loaded_ms, described[0].load_event_ms) == (6.0, 9.0)
