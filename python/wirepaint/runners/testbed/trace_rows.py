"""The rows of the trace's tables: objects, connections and page of a visit; connections of flows and PEPs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urldefrag, urlsplit

from wirepaint.runners.testbed import squid
from wirepaint.runners.testbed.browser.contract import Connection, PageLoad, Request

BROWSER_CACHE, REVALIDATED = "browser cache", "revalidated"
"""Values of ``served_by``: no request, and a request that was answered with 304."""
_OF_PEP = {"ahead": "ahead", "asked": "pep"}
"""Where a response came from, by the records of a PEP."""


def asked(load: PageLoad, cache: str) -> list[Request]:
    """The requests of a visit whose answers count as objects.

    A page may use an address several times, and the browser keeps what came the first time. With a cache that
    was not ``cold``, that may come from the cache, too.
    """
    if cache == "cold":
        return [request for request in load.requests if not request.from_cache]
    known: set[str] = set()
    asked: list[Request] = []
    for request in load.requests:
        if not (request.from_cache and request.url in known):
            asked.append(request)
        known.add(request.url)
    return asked


def objects_of(requests: Iterable[Request], page: str, by_proxy: Collection[int]) -> list[dict[str, Any]]:
    objects = [
        {
            "request": request.id,
            "page": page,
            "url": request.url,
            "host": urlsplit(request.url).hostname,
            "type": request.type,
            "method": request.method,
            "status": request.status,
            "protocol": None if request.from_cache else request.protocol,
            "connection": None if request.from_cache else request.connection,
            "first_on_connection": None,
            "initiator": request.initiator,
            "initiator_type": request.initiator_type,
            "priority": request.priority,
            "in_viewport": request.in_viewport,
            "served_by": _served_by(request, by_proxy),
            "discovered": request.discovered,
            # Of an answer from the cache only the end is a time of the network process.
            "queued": None if request.from_cache else request.queued,
            "sent": None if request.from_cache else request.sent,
            "first_byte": None if request.from_cache else request.first_byte,
            "last_byte": request.last_byte,
            "encoded_bytes": 0 if request.from_cache else request.encoded_bytes,
            "decoded_bytes": request.decoded_bytes,
            "failed": request.failed,
        }
        for request in requests
    ]
    first_of: dict[int, dict[str, Any]] = {}
    for row in objects:
        if row["connection"] is not None:
            row["first_on_connection"] = False
            best = first_of.get(row["connection"])
            if row["sent"] is not None and (best is None or row["sent"] < best["sent"]):
                first_of[row["connection"]] = row
    for row in first_of.values():
        row["first_on_connection"] = True
    return objects


def _served_by(request: Request, by_proxy: Collection[int]) -> str | None:
    """Where a response came from; ``by_proxy`` are the connections on which a proxy answers."""
    if request.from_cache:
        return BROWSER_CACHE
    if request.connection is None:
        return None
    if request.connection in by_proxy:
        return squid.told(request.cache or "")
    return REVALIDATED if request.revalidated else "origin"


def of_pep(
    objects: Iterable[dict[str, Any]],
    connections: Iterable[Connection],
    answers: Sequence[Mapping[str, Any]],
) -> None:
    """Fills in which responses a PEP had sent ahead, and which it was asked for."""
    ports = {connection.number: connection.client_port for connection in connections}
    served = {
        (one["client_port"], one["method"], one["url"]): _OF_PEP[one["from"]]
        for one in answers
        if one["wanted"]
    }
    for row in objects if answers else ():
        if row["served_by"] == BROWSER_CACHE:
            continue
        port = ports.get(row["connection"])
        row["served_by"] = served.get((port, row["method"], urldefrag(row["url"]).url))


def connections_of(
    load: PageLoad, objects: list[dict[str, Any]], served: Mapping[int, dict[str, Any]]
) -> list[dict[str, Any]]:
    carried: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in objects:
        if row["connection"] is not None:
            carried[row["connection"]].append(row)
    rows = []
    for connection in load.connections:
        mine = carried[connection.number]
        record = served.get(connection.number, {})
        tcp = record.get("tcp") or {}
        closed = connection.closed
        rows.append(
            {
                "connection": connection.number,
                "client_address": connection.client_address or record.get("client_address"),
                "client_port": connection.client_port or record.get("client_port"),
                "server_address": connection.server_address,
                "server_port": connection.server_port,
                "host": connection.host,
                "protocol": connection.protocol
                or next((row["protocol"] for row in mine if row["protocol"]), None),
                "encrypted": connection.encrypted,
                "congestion": record.get("congestion"),
                "initial_window": record.get("initial_window"),
                "opened": connection.opened,
                "connected": connection.connected,
                "tls_done": connection.tls_done,
                "first_request": min((row["sent"] for row in mine if row["sent"] is not None), default=None),
                "last_byte": max(
                    (row["last_byte"] for row in mine if row["last_byte"] is not None), default=None
                ),
                # A connection that closes when the browser ends was open at the end of the visit.
                "closed": closed if closed is not None and closed < load.ended else None,
                "bytes_received": connection.received,
                "bytes_sent": connection.sent,
                "objects": connection.requests,
                "retransmitted_segments": tcp.get("total_retrans"),
                "min_rtt": _min_rtt(tcp),
                "mss": tcp.get("snd_mss"),
                "reason": "request" if connection.requests else "surplus",
            }
        )
    return rows


def page_of(
    load: PageLoad,
    visit: Mapping[str, Any],
    resources: Iterable[Mapping[str, Any]],
    objects: list[dict[str, Any]],
    connections: list[dict[str, Any]],
) -> dict[str, Any]:
    base = next(row for row in objects if row["request"] == load.document)
    failed = [row for row in objects if row["failed"]]
    return {
        "user_agent": visit["user_agent"],
        "page": visit["name"],
        "url": base["url"],
        "navigation_start": load.navigation_start,
        "base_request_sent": base["sent"],
        "base_first_byte": base["first_byte"],
        "base_last_byte": base["last_byte"],
        "first_paint": load.first_paint,
        "first_contentful_paint": load.first_contentful_paint,
        "largest_contentful_paint": load.largest_contentful_paint,
        "viewport_complete": load.viewport_complete,
        "dom_content_loaded": load.dom_content_loaded,
        "load_event": load.load_event,
        "speed_index": load.speed_index,
        "objects": len(objects) - len(failed),
        "failed_objects": len(failed),
        "expected_objects": sum(resource.get("expected", True) for resource in resources),
        "encoded_bytes": sum(row["encoded_bytes"] for row in objects),
        "decoded_bytes": sum(row["decoded_bytes"] for row in objects),
        "connections": sum(row["reason"] == "request" for row in connections),
        "surplus_connections": sum(row["reason"] == "surplus" for row in connections),
    }


def of_flow(record: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a flow's connection."""
    server, tcp = record["server"], record["server"].get("tcp") or {}
    addresses = ("client_address", "client_port", "server_address", "server_port")
    same = ("connection", *addresses, "opened", "connected", "last_byte", "bytes_received", "bytes_sent")
    return (
        dict.fromkeys(("host", "protocol", "objects", "reason"))
        | {name: record[name] for name in same}
        | {
            "encrypted": False,
            "congestion": server["congestion"],
            "initial_window": server["initial_window"],
            "retransmitted_segments": tcp.get("total_retrans"),
            "min_rtt": _min_rtt(tcp),
            "mss": tcp.get("snd_mss"),
        }
    )


def of_hop(record: Mapping[str, Any], number: int, begun: int) -> dict[str, Any]:
    """The row of a connection between the sides of a PEP, which the remote side opened at ``begun``."""
    tcp = record.get("tcp") or {}
    same = ("client_address", "client_port", "server_address", "server_port", "congestion", "initial_window")
    return (
        dict.fromkeys(("host", "objects", "reason", "tls_done", "first_request", "last_byte", "closed"))
        | {name: record[name] for name in same}
        | {
            "connection": number,
            "protocol": "pep",
            "encrypted": False,
            "opened": begun,
            "connected": begun,
            "bytes_received": record["bytes_sent"],
            "bytes_sent": record["bytes_received"],
            "retransmitted_segments": tcp.get("total_retrans"),
            "min_rtt": _min_rtt(tcp),
            "mss": tcp.get("snd_mss"),
        }
    )


def _min_rtt(tcp: Mapping[str, Any]) -> int | None:
    """The smallest round trip in ns; the kernel's "no sample yet" is the largest 32-bit number."""
    found = tcp.get("min_rtt_us")
    return None if found in (None, 0xFFFF_FFFF) else found * 1000


def sent_ahead(answers: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Bytes that a PEP sent ahead, and those that no browser asked for."""
    ahead = [answer for answer in answers if answer["from"] == "ahead"]
    return {
        "ahead_bytes": sum(answer["link_bytes"] for answer in ahead),
        "ahead_unused_bytes": sum(answer["link_bytes"] for answer in ahead if not answer["wanted"]),
    }
