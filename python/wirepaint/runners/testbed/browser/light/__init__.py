"""Light users: the data plane's verb ``light`` loads pages for many users in one process.

It decides by the page model what to request and when, and speaks HTTP over sockets (crates/light-client).
This module reads its records as what every browser reports. Nothing is drawn: there is no speed index and no
screencast.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wirepaint import __version__
from wirepaint.runners.testbed.browser.contract import (
    UNFINISHED,
    BrowserOptions,
    Chunk,
    Connection,
    PageLoad,
    Request,
)

VISITS = "light-visits.jsonl"
"""The records, one JSON object per visit, in the run's work folder."""
TIMED_OUT = "no load event within "
"""How the cause of a visit begins whose time was up."""


def read(work_dir: Path) -> dict[int, PageLoad]:
    """The visits whose page was loaded, by their number in the run."""
    return {
        record["visit"]: _load(record, work_dir) for record in _records(work_dir) if record["failed"] is None
    }


def failures(work_dir: Path) -> dict[int, str]:
    """Why the other visits failed, by their number in the run: one line each."""
    return {
        record["visit"]: record["failed"] for record in _records(work_dir) if record["failed"] is not None
    }


def lateness(work_dir: Path) -> dict[int, int]:
    """Longest time in ns by which an effect of computing came late, by the visit's number in the run."""
    return {record["visit"]: record["late_ns"] for record in _records(work_dir)}


def congestion_controls(load: PageLoad) -> list[str]:
    """What the client read back from its sockets, once connected and in the end, each once."""
    names = {name for one in load.connections for name in (one.congestion, one.congestion_end)}
    return sorted(name for name in names if name is not None)


def _records(work_dir: Path) -> Iterator[dict[str, Any]]:
    with (work_dir / VISITS).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _load(record: dict[str, Any], work_dir: Path) -> PageLoad:
    requests = [_request(request, record["visit"]) for request in record["requests"]]
    document = next(r for r in record["requests"] if r["number"] == record["document"])
    return PageLoad(
        options=BrowserOptions(
            url=requests[0].url,
            http="h2" if record["http"] == "h2" else "h1",
            hosts={connection["host"]: connection["server_address"] for connection in record["connections"]},
            work_dir=work_dir,
            timeout_s=record["timeout_ns"] / 1e9,
            screencast=False,
        ),
        browser=f"light/{__version__}",
        navigation_start=record["navigation_start"],
        dom_content_loaded=record["dom_content_loaded"],
        load_event=record["load_event"],
        first_paint=record["first_paint"],
        # A page that paints has text.
        first_contentful_paint=record["first_paint"],
        largest_contentful_paint=record["largest_contentful_paint"],
        largest_url=None,
        viewport_complete=record["viewport_complete"],
        viewport_last_frame=None,
        document=_id(record["visit"], document["number"]),
        speed_index=None,
        requests=requests,
        connections=[Connection(**connection) for connection in record["connections"]],
        unseen=[],
        cut_off=None,
        unconfined=None,
        # One process serves all light users; its CPU time is not divided among them.
        cpu_s=0.0,
        controller_cpu_s=0.0,
        ended=record["ended"],
    )


def _id(visit: int, number: int) -> str:
    return f"{visit}.{number}"


def _request(record: dict[str, Any], visit: int) -> Request:
    same = (
        *("url", "method", "type", "initiator", "initiator_type", "priority", "discovered", "queued", "sent"),
        *("first_byte", "last_byte", "status", "protocol", "connection", "encoded_bytes", "decoded_bytes"),
        "in_viewport",
    )
    return Request(
        **{name: record[name] for name in same},
        id=_id(visit, record["number"]),
        frame="",
        asked_priority=record["priority"],
        from_cache=record["cached"] == "fresh",
        revalidated=record["cached"] == "stale",
        failed=None if record["last_byte"] is not None else UNFINISHED,
        chunks=[Chunk(time, size) for time, size in record["chunks"]],
    )
