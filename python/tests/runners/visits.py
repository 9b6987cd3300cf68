"""One visit as browser, server and kernel would report it: two objects over one connection."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from wirepaint.runners.testbed.browser import BrowserOptions, PageLoad
from wirepaint.runners.testbed.browser.chromium.exchanges import Exchange
from wirepaint.runners.testbed.browser.chromium.netlog import Chunk, NetLog, Request
from wirepaint.runners.testbed.browser.chromium.observed import Observed
from wirepaint.runners.testbed.browser.contract import Connection
from wirepaint.runners.testbed.host import Counters
from wirepaint.runners.testbed.wiring import Counts

EPOCH_S = 1000
"""CLOCK_MONOTONIC at the run's epoch."""
HOST = "a.test"


def ms(milliseconds: float) -> int:
    """Nanoseconds since the epoch."""
    return round(milliseconds * 1e6)


def at(milliseconds: float) -> float:
    """The same instant as DevTools says it: seconds of CLOCK_MONOTONIC."""
    return EPOCH_S + milliseconds / 1000


def monotonic(milliseconds: int) -> int:
    """The same instant in nanoseconds of CLOCK_MONOTONIC."""
    return EPOCH_S * 10**9 + milliseconds * 10**6


def exchange(
    number: str, path: str, sent: float, first: float, last: float, size: int, **other: Any
) -> Exchange:
    """A request that was answered; times in ms since the epoch."""
    values = {
        "id": number,
        "url": f"https://{HOST}{path}",
        "method": "GET",
        "type": "html",
        "frame": "F",
        "initiator": None,
        "initiator_type": "other",
        "priority": "High",
        "discovered": at(sent - 2),
        "queued": at(sent - 1),
        "sent": at(sent),
        "first_byte": at(first),
        "last_byte": at(last),
        "status": 200,
        "protocol": "h2",
        "connection": 18,
        "encoded_bytes": size,
        "decoded_bytes": size - 100,
        "done": True,
    }
    return Exchange(**(values | other))


def request(path: str, sent: float, chunks: list[tuple[int, int]], **other: Any) -> Request:
    """NetLog's view of a request; chunks are (ms since the epoch, bytes)."""
    values = {
        "source": 10,
        "url": f"https://{HOST}{path}",
        "method": "GET",
        "started_ms": EPOCH_S * 1000 + int(sent),
        "initiator": "",
        "connection": 18,
        "chunks": [Chunk(EPOCH_S * 1000 + time, size) for time, size in chunks],
    }
    return Request(**(values | other))


def connection(source: int = 18, port: int = 4000, opened: int = 10, **other: Any) -> Connection:
    """NetLog's view of a connection; ``opened`` in ms since the epoch."""
    values = {
        "number": source,
        "opened": monotonic(opened),
        "host": HOST,
        "encrypted": True,
        "client_address": "10.64.0.2",
        "client_port": port,
        "server_address": "10.65.0.1",
        "server_port": 443,
        "connected": monotonic(opened + 20),
        "tls_done": monotonic(opened + 40),
        "closed": monotonic(900),
        "protocol": "h2",
        "received": 31_000,
        "sent": 900,
        "requests": 2,
    }
    return Connection(**(values | other))


def server_record(port: int = 4000, accepted: float = 30, **other: Any) -> dict[str, Any]:
    """The server's record of a connection."""
    return {
        "client_address": "10.64.0.2",
        "client_port": port,
        "server_address": "10.65.0.1",
        "server_port": 443,
        "host": HOST,
        "encrypted": True,
        "protocol": "h2",
        "accepted": ms(accepted),
        "tls_done": ms(accepted + 20),
        "closed": None,
        "congestion": "cubic",
        "congestion_end": "cubic",
        "initial_window": 10,
        "requests": 2,
        "body_bytes_sent": 30_000,
        "tcp": {"min_rtt_us": 20_100, "total_retrans": 3, "snd_mss": 1448},
    } | other


class Seen(SimpleNamespace):
    """A load as DevTools and NetLog report it; tests disturb one thing of it."""

    exchanges: list[Exchange]
    netlog: NetLog

    def load(self) -> PageLoad:
        """What the browser's engine makes of it."""
        marks = vars(self).copy()
        exchanges, log, visible = (marks.pop(name) for name in ("exchanges", "netlog", "visible"))
        seen = Observed(exchanges, log, EPOCH_S * 10**9, visible)
        return PageLoad(
            requests=seen.requests,
            connections=seen.connections,
            unseen=seen.unseen,
            cut_off=None if log.complete else "the NetLog",
            **marks,
        )


def page_load(**other: Any) -> Seen:
    """A load of ``/`` and ``/a.png``."""
    values = {
        "options": BrowserOptions(
            url=f"https://{HOST}/",
            http="h2",
            hosts={HOST: "10.65.0.1"},
            work_dir=Path("w"),
            epoch_ns=EPOCH_S * 10**9,
        ),
        "browser": "HeadlessChrome/156",
        "navigation_start": ms(5),
        "dom_content_loaded": ms(200),
        "load_event": ms(300),
        "first_paint": ms(150),
        "first_contentful_paint": ms(150),
        "largest_contentful_paint": ms(280),
        "largest_url": "",
        "viewport_complete": ms(280),
        "viewport_last_frame": ms(285),
        "visible": {"2"},
        "document": "1",
        "speed_index": 160.0,
        "exchanges": [
            exchange("1", "/", 51, 73.4, 80, 10_100),
            exchange("2", "/a.png", 85, 110.2, 250, 20_100, type="image", initiator=f"https://{HOST}/"),
        ],
        "netlog": NetLog(
            [
                request("/", 51, [(71, 4_000), (79, 6_100)]),
                request("/a.png", 85, [(110, 10_000), (249, 10_100)], source=11),
            ],
            [connection()],
            complete=True,
        ),
        "unconfined": None,
        "cpu_s": 0.4,
        "controller_cpu_s": 0.01,
        "ended": ms(850),
        "notes": [],
    }
    return Seen(**(values | other))


def asked() -> dict[str, Any]:
    """What of the run's description is checked."""
    of_page = {
        "resources": [
            {"id": 0, "method": "GET", "url": f"https://{HOST}/", "status": 200, "wire_bytes": 10_000},
            {"id": 1, "method": "GET", "url": f"https://{HOST}/a.png", "status": 200, "wire_bytes": 20_000},
        ],
        "answering": [0, 1],
        "rehearsed": False,
    }
    checks = {
        "own_initial_window": False,
        "calibration": {"quantities": []},
        "identity": {"page": "sample", "user_agent": "user"},
        "pages": {"sample": of_page},
    }
    return {
        "segments": [{"name": "access", "down": {"delay_ns": ms(15)}, "up": {"delay_ns": ms(15)}}],
        "hosts": [
            {"name": "client", "role": "client", "congestion": "reno", "address": "10.64.0.2"},
            {"name": "server", "role": "server", "congestion": "cubic", "initial_window": 10},
        ],
        "transport": {"http": "h2", "tls": "1.3", "sysctls": {}},
        "sites": {"sample": {"origins": [{"host": HOST, "address": "10.65.0.1"}], "responses": []}},
        "visits": [
            {
                "user_agent": "user",
                "name": "sample",
                "client": "client",
                "site": "sample",
                "cache": "cold",
            }
        ],
        "flows": [],
        "checks": checks,
    }


def counters(**other: Any) -> Counters:
    """A quiet machine of two cores during one second."""
    values = {
        "duration": 1.0,
        "cores": 2,
        "parts": {"server": 0.1, "emulator": 0.05},
        "browser": 0.4,
        "controller": 0.05,
        "tasks": 0.65,
        "steal": 0.0,
        "pressure": 0.05,
    }
    return Counters(**(values | other))


def emulator_summary(**other: Any) -> dict[str, Any]:
    """The emulator's last line after an undisturbed run."""
    lateness = {"p50": 5_000, "p99": 20_000, "max": 200_000}
    sides = {side: {"largest_shift": 0} for side in ("down", "up")}
    return {"faults": [], "clock_steps": 0, "lateness": lateness, **sides} | other


def settings(**other: str) -> dict[str, str]:
    """Two of the settings of a path."""
    return {"server s0 MTU": "1500", "server s0 queueing disciplines": "noqueue"} | other


def counts(**other: int) -> Counts:
    """One end of an undisturbed path."""
    values = {
        "sent": 40,
        "received": 30,
        "received_bytes": 30 * 52,
        "dropped": 0,
        "segments": 40,
        "opened": 0,
        "accepted": 0,
        "others": 0,
    }
    return Counts(**(values | other))
