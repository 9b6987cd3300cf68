"""A page visit whose metrics can be worked out by hand, and results folders filled with such visits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from simulated_runs import OWN_METRIC, SIMULATED

from wirepaint.cli import invoke
from wirepaint.evaluation import congestion, plan
from wirepaint.evaluation.pages import PageRef
from wirepaint.metrics import enrol
from wirepaint.results import journal
from wirepaint.results.outcome import Outcome
from wirepaint.results.store import Store
from wirepaint.results.trace import write_table

MS = 1_000_000

EVALUATION = """\
title = "CUBIC or FLD?"
seed = 3
warmup = true
[scenarios]
network = [
  {{ title = "lte", down = {{ rate = "25 Mbit/s" }}, up = {{ rate = "25 Mbit/s" }} }},
  {{ title = "3g", down = {{ rate = "7 Mbit/s" }}, up = {{ rate = "7 Mbit/s" }} }},
]
congestion = {controls}
[[user_agents]]
pages = {pages}
visits = {visits}
"""

Tables = dict[str, list[dict[str, Any]]]


def visit_rows(stretch: float = 1.0) -> Tables:
    """A base document, a style sheet and an image over one h2 connection, a script over a plain one.

    In ms from the run's epoch, times ``stretch`` after navigation start at 100:

    ```
    base.html   sent 152, received 180-190
    style.css   sent 192, received 220-240      the same connection, opened at 100
    image.png   sent 192, received 230-260
    script.js   sent 218, received 250-290      another connection, opened at 192; DevTools says 300
    load event  400
    ```
    """

    def at(ms: float) -> int:
        return round((100 + (ms - 100) * stretch) * MS)

    def entry(
        request: str, url: str, kind: str, connection: int, first: bool, ms: tuple[float, ...], size: int
    ):
        discovered, sent, first_byte, last_byte = (at(t) for t in ms)
        plain = url.startswith("http:")
        return {
            "request": request, "page": "small", "url": url, "host": url.split("/")[2], "type": kind,
            "method": "GET", "status": 200, "protocol": "http/1.1" if plain else "h2",
            "connection": connection, "first_on_connection": first, "priority": "High",
            "initiator": None if kind == "html" else "https://a.test/", "served_by": "origin",
            "initiator_type": "other" if kind == "html" else "parser",
            "discovered": discovered, "queued": discovered, "sent": sent, "first_byte": first_byte,
            "last_byte": last_byte, "encoded_bytes": size, "decoded_bytes": 2 * size,
        }  # fmt: skip

    return {
        "page": [{
            "user_agent": "user", "page": "small", "url": "https://a.test/", "navigation_start": at(100),
            "base_request_sent": at(152), "base_first_byte": at(180), "base_last_byte": at(190),
            "first_paint": at(305), "first_contentful_paint": at(310), "largest_contentful_paint": at(350),
            "dom_content_loaded": at(320), "load_event": at(400), "objects": 4, "failed_objects": 0,
            "expected_objects": 4, "encoded_bytes": 690_000, "decoded_bytes": 1_380_000,
            "connections": 2, "surplus_connections": 1,
        }],
        "object": [
            entry("1", "https://a.test/", "html", 1, True, (100, 152, 180, 190), 30_000),
            entry("2", "https://a.test/style.css", "css", 1, False, (191, 192, 220, 240), 20_000),
            entry("3", "https://a.test/image.png", "image", 1, False, (191, 192, 230, 260), 40_000),
            entry("4", "http://b.test/script.js", "js", 2, True, (191, 218, 250, 300), 600_000),
        ],
        "chunk": [
            {"request": request, "connection": connection, "time": at(ms), "bytes": 1000}
            for request, connection, times in (
                ("1", 1, (180, 185, 190)), ("2", 1, (220, 240)), ("3", 1, (230, 260)), ("4", 2, (250, 290))
            )
            for ms in times
        ],
        "connection": [
            {
                "connection": 1, "client_address": "10.64.0.2", "client_port": 40001, "host": "a.test",
                "server_address": "10.1.0.1", "server_port": 443, "protocol": "h2", "encrypted": True,
                "congestion": "cubic", "initial_window": 10, "opened": at(100), "connected": at(126),
                "tls_done": at(152), "first_request": at(152), "last_byte": at(260), "mss": 1448,
                "bytes_received": 96_000, "bytes_sent": 900, "objects": 3, "retransmitted_segments": 3,
                "min_rtt": 26 * MS, "reason": "request",
            },
            {
                "connection": 2, "client_address": "10.64.0.2", "client_port": 40002, "host": "b.test",
                "server_address": "10.1.0.2", "server_port": 80, "protocol": "http/1.1", "encrypted": False,
                "congestion": "cubic", "initial_window": 10, "opened": at(192), "connected": at(218),
                "first_request": at(218), "last_byte": at(300), "mss": 1448, "bytes_received": 610_000,
                "bytes_sent": 400, "objects": 1, "retransmitted_segments": 0, "min_rtt": 26 * MS,
                "reason": "request",
            },
            {
                "connection": 3, "client_address": "10.64.0.2", "client_port": 40003, "host": "a.test",
                "server_address": "10.1.0.1", "server_port": 443, "encrypted": True, "opened": at(100),
                "connected": at(126), "bytes_received": 0, "bytes_sent": 0, "objects": 0, "reason": "surplus",
            },
        ],
    }  # fmt: skip


@pytest.fixture
def visit() -> Callable[..., Tables]:
    return visit_rows


@pytest.fixture
def results_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a results folder of synthetic visits: {lte, 3g} x {cubic, fld} x {small, large}.

    ``stretch`` gives the time scale of a run from its axes and visit (attributes), ``outcome`` its
    verdict, None for one that fails, "planned" for one not begun, or why it is skipped; ``backend`` may be
    ``both``, ``more_axes`` are further lines of ``[scenarios]``, ``retouch`` changes the tables of each run.
    Filled through the same store as real results; the names of the congestion controls are given, so
    that neither the kernel nor the data plane is asked.
    """
    monkeypatch.setattr(congestion, "of_kernel", lambda: ("reno", "cubic"))
    monkeypatch.setattr(congestion, "ours", lambda: {"fld": {}})

    def make(
        stretch: Callable[[Any], float],
        visits: int = 5,
        outcome: Callable[[Any], Outcome | str | None] = lambda axes: Outcome("valid"),
        name: str = "results",
        backend: str = "testbed",
        more_axes: str = "",
        pages: Sequence[str] = ("small", "large"),
        controls: Sequence[str] = ("cubic", "fld"),
        retouch: Callable[[dict[str, list[dict[str, Any]]]], None] = lambda tables: None,
    ) -> Path:
        file = tmp_path / f"{name}.toml"
        text = EVALUATION.format(visits=visits, pages=json.dumps(pages), controls=json.dumps(list(controls)))
        file.write_text(text.replace("[[user_agents]]", f"{more_axes}\n[[user_agents]]"))
        evaluation = plan(
            file,
            backend,
            page_resolver=lambda page, base, place: PageRef(name=page, folder=tmp_path, sha256="0" * 64),
        )
        folder = tmp_path / name
        with Store(folder, evaluation, {"kernel": "6.18.44"}) as store:
            for run in evaluation.runs:
                place = SimpleNamespace(**journal.condition(run), visit=run.visit)
                ended = outcome(place)
                if isinstance(ended, str):
                    if ended != "planned":
                        store.skip(run.key, ended)
                    continue
                number, partial = store.begin(run.key)
                if ended is None:
                    store.failed(run.key, number, "the browser ended by itself")
                    continue
                tables = visit_rows(stretch(place))
                axes = {name: value for name, value in journal.condition(run).items() if name != "proxy"}
                tables["page"][0]["page"] = axes["page"]
                retouch(tables)
                tables["run"] = [axes | {
                    "run_key": run.key, "seed": run.seed, "visit": run.visit,
                    "warmup": run.warmup, "attempt": 1, "started_unix": 1_760_000_000_000_000_000,
                    "duration": 500 * MS, "verdict": ended.verdict, "reasons": json.dumps(ended.reasons),
                    "kernel": "6.18.44", "browser": "HeadlessChrome/156.0.0.0", "wirepaint": "0.1.0",
                }]  # fmt: skip
                for table, rows in tables.items():
                    write_table(partial, table, rows)
                store.done(run.key, number, ended)
        return folder

    return make


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-traces", action="store_true", help="take the simulator's present traces as the right ones"
    )


@pytest.fixture(autouse=True)
def no_metrics_of_others() -> Iterator[None]:
    """Forgets the metrics of one's own that the test has read."""
    yield
    enrol([], "")


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the simulator, with metrics of a file of one's own: ``largest-object``, and a broken one."""
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "mine.py").write_text(OWN_METRIC)
    (folder / "e.toml").write_text(SIMULATED)
    arguments = ["run", str(folder / "e.toml"), "-o", str(folder / "results"), "--no-rehearse", "--trust"]
    assert invoke(arguments) == 0
    return folder / "results"
