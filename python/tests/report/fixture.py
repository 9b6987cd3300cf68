"""Writes a plausible results folder: 3 pages x {lte, 3g} x {cubic, fld} x 5 visits and the warm-up.

Everything goes through the product's own plan and store; only the loads are made up (load_model).
"""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any
from unittest import mock

from PIL import Image, ImageDraw

from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.evaluation import congestion as congestions
from wirepaint.evaluation import pages as page_references
from wirepaint.results.outcome import Outcome
from wirepaint.results.store import Store
from wirepaint.results.trace import write_table

from .load_model import MS, Load, Resource, page
from .load_model import Path as NetworkPath

NETWORKS = {"lte": NetworkPath(25e6, 13, 120), "3g": NetworkPath(7e6, 70, 250)}
GROWTH = {"cubic": 1, "fld": 2}
PAGES = {"gov-guide": (34, 4, 1), "museum": (63, 6, 2), "news-front": (118, 12, 3)}
SYSCTLS = {
    "client": {"net.ipv4.tcp_congestion_control": "reno", "net.ipv4.tcp_no_metrics_save": "1"},
    "server": {"net.ipv4.tcp_congestion_control": "reno", "net.ipv4.tcp_no_metrics_save": "1"},
}


def evaluation(visits: int, title: str) -> str:
    networks = ", ".join(
        f'{{ title = "{name}", '
        + ", ".join(
            f'{side} = {{ rate = "{path.rate / 1e6:g} Mbit/s", delay = "{path.delay_ms:g} ms" }}'
            for side in ("down", "up")
        )
        + " }"
        for name, path in NETWORKS.items()
    )
    return (
        f"title = {json.dumps(title)}\nseed = 42\n\n[scenarios]\nnetwork = [{networks}]\n"
        f'congestion = {json.dumps(list(GROWTH))}\nhttp = ["h2"]\n\n'
        f"[[user_agents]]\npages = {json.dumps(list(PAGES))}\nvisits = {visits}\n"
    )


def write_results(
    folder: Path,
    visits: int = 5,
    hostile: str = "",
    title: str = "CUBIC or FLD?",
    flaws: bool = True,
    done: int | None = None,
) -> Path:
    """A results folder as ``wirepaint run`` leaves it.

    ``hostile`` is appended to the URLs of one page; ``flaws`` makes some runs suspect, invalid or
    failed; only the first ``done`` runs are carried out.
    """
    pages = {name: page(name, *shape) for name, shape in PAGES.items()}
    for resource in pages["museum"]:
        resource.url += hostile
    file = folder.parent / f"{folder.name}.toml"
    file.write_text(evaluation(visits, title), encoding="utf-8")

    def find(name: str, base: Path, place: str) -> page_references.PageRef:
        return page_references.PageRef(name=name, folder=base / name, sha256="0" * 64)

    with mock.patch.object(congestions, "ours", lambda: {"fld": {}}):
        planned = plan(file, page_resolver=find)
    with Store(folder, planned, {"kernel": "6.18.44", "browser": "HeadlessChrome/141.0.7390.122"}) as store:
        for number, run in enumerate(planned.runs[:done]):
            attempt, target = store.begin(run.key)
            if flaws and number == 29:
                store.failed(run.key, attempt, "the browser ended before the page was loaded (signal 11)")
                continue
            reasons = flaw(number, run.congestion.label) if flaws else []
            outcome = write_run(target, number, run, pages[run.page_name], reasons)
            describe_run(target, pages[run.page_name], hostile)
            store.done(run.key, attempt, outcome)
        for name, path in NETWORKS.items():
            store.keep_calibration(name, calibration(name, path))
    file.unlink()
    return folder


def flaw(number: int, congestion: str) -> list[dict[str, Any]]:
    """A few runs that are not plainly valid, each for a reason that the product really checks."""
    if number == 17:
        found = {"check": "congestion", "severity": "invalid", "found": "bbr", "expected": congestion}
    elif number == 40:
        found = {
            "check": "lateness",
            "severity": "suspect",
            "found": "p99 1.84 ms",
            "expected": "at most 1 ms",
        }
    elif number % 11 == 5:
        found = {"check": "surplus_connections", "severity": "note", "found": 3, "expected": "counted only"}
    else:
        return []
    return [found]


def write_run(
    folder: Path, number: int, run: ResolvedRun, resources: list[Resource], reasons: list[dict[str, Any]]
) -> Outcome:
    """Writes all tables of one visit."""
    network, congestion = NETWORKS[run.network.name], run.congestion.label
    load = Load(resources, network, GROWTH[congestion], seed=1000 + number).run()
    objects = [row for row in load.objects if row is not None]
    last = max(row["last_byte"] for row in objects)
    severities = {reason["severity"] for reason in reasons}
    verdict = "invalid" if "invalid" in severities else "suspect" if "suspect" in severities else "valid"
    identity: dict[str, Any] = {
        "run_key": run.key, "backend": "testbed", "seed": run.seed, "scenario": run.scenario,
        "network": run.network.name, "congestion": congestion, "http": run.http, "initial_window": 10,
        "user_agent": run.user_agent, "page": run.page_name, "visit": run.visit, "warmup": run.warmup,
        "attempt": 1, "started_unix": 1_760_000_000_000_000_000 + number * 4_000 * MS,
        "duration": last + 500 * MS, "verdict": verdict, "reasons": json.dumps(reasons),
        "kernel": "6.18.44", "wirepaint": "0.1.0", "browser": "HeadlessChrome/141.0.7390.122",
        "sysctls": json.dumps(SYSCTLS), "server_congestion": congestion, "client_congestion": "reno",
        "server_initial_window": 10,
    }  # fmt: skip
    write_table(folder, "run", [identity])
    page = page_row(run, resources, load, objects, last)
    write_table(folder, "page", [page])
    for table, rows in screen_tables(page).items():
        write_table(folder, table, rows)
    write_table(folder, "object", objects)
    write_table(folder, "connection", connection_rows(load, congestion))
    write_table(folder, "host", [host_row(load, last)])
    for table in ("chunk", "tcp", "link"):
        write_table(folder, table, load.tables[table])
    return Outcome(verdict, reasons, last + 500 * MS)


def describe_run(folder: Path, resources: list[Resource], hostile: str) -> None:
    """Writes the part of the run description that the report reads: the recorded headers."""
    responses = [
        {
            "method": "GET",
            "url": one.url,
            "headers": [
                ["content-type", f"x-{one.type}/y"],
                ["x-wirepaint-pad", "0" * 900],
                ["etag", f'"{n}{hostile}"'],
            ],
        }
        for n, one in enumerate(resources)
    ]
    (folder / "run.json").write_text(json.dumps({"sites": {"page": {"responses": responses}}}), "utf-8")


def screen_tables(page: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Five frames, 50 ms apart from the first paint on, the second without a picture; a core half busy."""
    first, last = page["first_paint"], page["load_event"]
    frames = [
        {
            "time": first + 50 * MS * n,
            "progress": n / 4,
            "picture": None if n == 1 else picture(n),
        }
        for n in range(5)
    ]
    busy = [{"time": time, "browser": time / 2e9} for time in range(page["navigation_start"], last, 50 * MS)]
    return {"frame": frames, "cpu": busy}


def picture(filled: int) -> str:
    """A small picture with ``filled`` boxes."""
    image = Image.new("RGB", (64, 40), "white")
    for n in range(filled):
        ImageDraw.Draw(image).rectangle((4 + 15 * n, 4, 15 + 15 * n, 36), fill=(40, 90, 40 + 40 * n))
    data = io.BytesIO()
    image.save(data, "WEBP")
    return base64.b64encode(data.getvalue()).decode()


def page_row(
    run: ResolvedRun, resources: list[Resource], load: Load, objects: list[dict[str, Any]], last: int
) -> dict[str, Any]:
    blocking = [row["last_byte"] for row in objects if row["type"] in ("html", "css")]
    first_paint = max(blocking) + 24 * MS
    hero = max((row for row in objects[:40] if row["type"] == "image"), key=lambda row: row["encoded_bytes"])
    return {
        "user_agent": run.user_agent, "page": run.page_name, "url": resources[0].url,
        "navigation_start": 120 * MS, "base_request_sent": objects[0]["sent"],
        "base_first_byte": objects[0]["first_byte"], "base_last_byte": objects[0]["last_byte"],
        "first_paint": first_paint, "first_contentful_paint": first_paint + 9 * MS,
        "largest_contentful_paint": max(hero["last_byte"], first_paint) + 31 * MS,
        "dom_content_loaded": max(blocking) + 40 * MS, "load_event": last + 12 * MS,
        "objects": len(objects), "failed_objects": 0, "expected_objects": len(objects),
        "encoded_bytes": sum(row["encoded_bytes"] for row in objects),
        "decoded_bytes": sum(row["decoded_bytes"] for row in objects),
        "connections": len(load.connections), "surplus_connections": 1,
    }  # fmt: skip


def connection_rows(load: Load, congestion: str) -> list[dict[str, Any]]:
    rtt = 2 * load.delay
    return [
        {
            "connection": c.number, "client_address": "10.64.0.2", "client_port": 40_000 + c.number,
            "server_address": f"10.64.1.{c.number}", "server_port": 443, "host": c.host, "protocol": "h2",
            "encrypted": True, "congestion": congestion, "initial_window": 10, "opened": c.opened,
            "connected": c.opened + rtt, "tls_done": c.ready, "first_request": c.first_request,
            "last_byte": c.last_byte, "bytes_received": c.received + 300 * c.objects,
            "bytes_sent": 120 * c.objects, "objects": c.objects, "retransmitted_segments": c.lost,
            "min_rtt": rtt + 480_000, "mss": 1448, "reason": "request",
        }
        for c in load.connections.values()
    ]  # fmt: skip


def host_row(load: Load, last: int) -> dict[str, Any]:
    seconds = last / 1e9
    return {
        "cpu_browser": 0.46, "cpu_server": 0.03, "cpu_emulator": 0.08 * seconds, "cpu_foreign": 0.01,
        "cpu_total": 2 * seconds, "steal": 0.0, "pressure": 0.02,
        "lateness_p50": 4_800, "lateness_p99": 21_000 + load.rng.randrange(6_000), "lateness_max": 190_000,
    }  # fmt: skip


def calibration(name: str, path: NetworkPath) -> dict[str, Any]:
    """As the short form of ``network calibrate`` leaves it."""
    rtt = 2 * path.delay_ms

    def quantity(
        label: str, unit: str, asked: float, measured: float, tolerance: float, **more: Any
    ) -> dict[str, Any]:
        error = measured - asked if more.get("tolerance_unit") else (measured - asked) / asked
        common = {
            "name": label,
            "unit": unit,
            "asked": asked,
            "measured": measured,
            "error": error,
            "note": "",
        }
        return common | {"tolerance": tolerance, "tolerance_unit": "", "verdict": "ok"} | more

    skipped = {"name": "queue up", "unit": "packets", "asked": None, "measured": None, "error": None,
               "tolerance": None, "tolerance_unit": ""}  # fmt: skip
    return {
        "network": name, "short": True, "verdict": "ok", "lateness_p50": 5_100, "lateness_p99": 18_700,
        "lateness_max": 94_000, "faults": [], "duration_s": 2.7, "machine": {"host": "here"},
        "quantities": [
            quantity("rate down", "bit/s", path.rate, path.rate * 1.00004, 0.001),
            quantity("rate up", "bit/s", path.rate, path.rate * 0.99998, 0.001),
            quantity("round trip, median", "ms", rtt, rtt + 0.021, 0.1, tolerance_unit="ms"),
            skipped | {"verdict": "not compared", "note": "unlimited"},
        ],
    }  # fmt: skip
