"""Joins the records of browsers, server and kernel of one run into the tables of the trace.

Requests and connections come from the browser of each visit. The server adds the kernel's record of its
sockets, by 4-tuple. A port may be used twice, so the join is by 4-tuple and time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

import polars as pl

from wirepaint.results import trace
from wirepaint.runners.testbed import proxying, sockets, squid
from wirepaint.runners.testbed.browser.contract import Connection, PageLoad, Request
from wirepaint.runners.testbed.iperf3_reports import Told
from wirepaint.runners.testbed.route import Route, squid_of

BROWSER_CACHE, REVALIDATED = "browser cache", "revalidated"
"""Values of ``served_by``: no request, and a request that was answered with 304."""
_OF_PEP = {"ahead": "ahead", "asked": "pep"}
"""Where a response came from, by the records of a PEP."""
FLOW_RECORDS = "flow-connections.jsonl"
"""The data plane's records of the connections of flows."""


@dataclass
class Joined:
    """The tables of the browser's side, and the records left over in the joins."""

    tables: dict[str, list[dict[str, Any]]]
    """Rows of page, object, chunk and connection."""
    observed: dict[str, Any]
    """Columns of the table ``run``, from the kernel's report on the server's sockets."""
    served: dict[int, dict[str, Any]]
    """The record of each connection at its other end: the server's, or the first proxy's."""
    strangers: list[dict[str, Any]]
    """Server records of connections that the browser did not open."""
    requests: list[dict[str, Any]]
    """The server's records of requests."""
    span: tuple[int, int]
    """The time that counts: from the first navigation to the last load event, or that of the flows alone."""
    visits: list[Joined] = field(default_factory=list)
    """The same of each visit by itself."""

    @property
    def crossing(self) -> list[dict[str, Any]]:
        """Rows of the connections that cross the main hop: with a PEP its own, not those of browsers."""
        rows = self.tables["connection"]
        return [row for row in rows if row.get("visit") is None] if self.hops else rows

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The time that counts of each visit, or of the flows alone."""
        return [visit.span for visit in self.visits] or [self.span]

    beyond: list[dict[str, Any]] = field(default_factory=list)
    """With proxies: the servers' records of the last one's connections."""
    proxies: Mapping[str, proxying.Ends] = field(default_factory=dict)
    """The records of each proxy's host."""
    log: list[squid.Served] = field(default_factory=list)
    """What squid served."""
    lost: list[str] = field(default_factory=list)
    """Why connections between the sides of a PEP ended before the run did."""
    hops: list[dict[str, Any]] = field(default_factory=list)
    """Rows of connections of a PEP over the main hop; the browsers' end before it."""
    unsampled: list[int] = field(default_factory=list)
    """Connections without any sample of their sender."""
    of_flows: list[dict[str, Any]] = field(default_factory=list)
    """The records of the flows' connections."""
    control: tuple[int, int] = (0, 0)
    """Fewest and most connections beside those that the tools of flows accepted for themselves."""
    flows_end: int = 0
    """When the flows ended, or were cut off."""
    ended_flows: list[str] = field(default_factory=list)
    """Names of the flows that reached their end."""


def join(
    loads: Sequence[PageLoad],
    run: Mapping[str, Any],
    work: Path,
    folder: Path,
    flows: Mapping[str, Any] | None = None,
    told: proxying.Told | None = None,
    measured_from: int = 0,
    iperf3: Told | None = None,
) -> Joined:
    """Joins one run; ``work`` holds the records of servers and flows, ``folder`` the data plane's tables.

    ``flows`` is the summary of the part that carried out the flows, ``iperf3`` what that tells of its own.
    Fills the column ``connection`` of the tables ``tcp``, ``packet`` and ``group`` in place.
    """
    route = Route.of(run)
    joined = _visits(loads, run, work, told, measured_from)
    if told is not None:
        joined.proxies, joined.log, joined.lost = told.ends, told.log, told.lost
        for visit in joined.visits:
            visit.proxies, visit.log = told.ends, told.log
        if route.beyond:
            _leave_out_servers_side(folder, told.ends[route.sender].opened)
    records = _records(work / FLOW_RECORDS)
    spans = [] if flows is None else [(flows["begin"], flows["end"])]
    if iperf3 is not None:
        spans.append((iperf3.begin, iperf3.end))
        joined.control = iperf3.accepted
        records += _of_iperf3(iperf3, folder, len(run["flows"]))
    if not loads:
        joined.span = min(begin for begin, _ in spans), max(end for _, end in spans)
    joined.flows_end = max((end for _, end in spans), default=0)
    of_flows = trace.read_table(folder, "flow")
    joined.ended_flows = of_flows.filter(pl.col("ended").is_not_null())["flow"].unique().to_list()
    first = max((row["connection"] for row in joined.tables["connection"]), default=-1) + 1
    joined.of_flows = [record | {"connection": record["connection"] + first} for record in records]
    joined.tables["connection"] += map(_of_flow, joined.of_flows)
    if told is not None and route.near:
        number = first + len(joined.of_flows)
        begun = {record["client_port"]: record["accepted"] for record in told.ends[route.near[-1]].opened}
        joined.hops = [
            _of_hop(record, number + place, begun.get(record["client_port"], record["accepted"]))
            for place, record in enumerate(told.ends[route.sender].accepted)
        ]
        joined.tables["connection"] += joined.hops
    if first:
        for name in ("flow", "message"):
            frame = trace.read_table(folder, name)
            if not frame.is_empty():
                trace.write_frame(folder, name, frame.with_columns(pl.col("connection") + first))
    for name in ("tcp", "packet", "group"):
        _fill_connection(folder, name, joined.tables["connection"])
    joined.unsampled = _unsampled(folder, joined)
    of_visits = told.ends[route.sender].accepted if joined.hops and told else joined.served.values()
    servers = [*of_visits, *(record["server"] for record in joined.of_flows)]
    joined.observed = {
        "server_congestion": _one(record.get("congestion") for record in servers),
        "server_initial_window": _one(record.get("initial_window") for record in servers),
        **(_sent_ahead(told.answers) if told is not None and told.answers else {}),
    }
    return joined


def _of_iperf3(told: Told, folder: Path, first: int) -> list[dict[str, Any]]:
    """The records of the connections of iperf3's flows, numbered from ``first`` on.

    Adds their rows to the table ``flow``, and the initial windows that the probe saw to their servers.
    """
    rows = [row for n, exchange in enumerate(told.exchanges, first) for row in exchange.rows(n)]
    added = pl.DataFrame(rows, schema=trace.polars_schema("flow"))
    trace.write_frame(folder, "flow", pl.concat([trace.read_table(folder, "flow"), added]))
    windows = first_windows(folder)
    records = [exchange.record(n) for n, exchange in enumerate(told.exchanges, first)]
    for record in records:
        ends = (record[key] for key in ("server_address", "server_port", "client_address", "client_port"))
        record["server"]["initial_window"] = windows.get(sockets.Ends(*ends))
    return records


def _visits(
    loads: Sequence[PageLoad],
    run: Mapping[str, Any],
    work: Path,
    told: proxying.Told | None,
    measured_from: int,
) -> Joined:
    """All visits of a run, with ids that are unique in it; ``told`` is of its proxies.

    The first visits, which fill caches, were over at ``measured_from``.
    """
    served = _records(work / "server-connections.jsonl")
    left = [
        record | {"number": number}
        for number, record in enumerate(served)
        if record["accepted"] >= measured_from
    ]
    asked = [record for record in _records(work / "server-requests.jsonl") if record["time"] >= measured_from]
    beyond: list[dict[str, Any]] = []
    if told is not None:
        beyond, left = left, told.ends[Route.of(run).first].accepted
    several = len(loads) > 1
    visits: list[Joined] = []
    tables: dict[str, list[dict[str, Any]]] = {"connection": []}
    for number, load in enumerate(loads):
        first = max((row["connection"] for row in tables["connection"]), default=-1) + 1
        visit = _visit(load, run, number, left, first, told.answers if told else ())
        if told is None:
            mine = {record["number"] for record in visit.served.values()}
            visit.requests = [record for record in asked if record["connection"] in mine]
        else:
            site = {origin["address"] for origin in run["sites"][run["visits"][number]["site"]]["origins"]}
            visit.requests = [record for record in asked if record["server_address"] in site]
        left = visit.strangers
        visit.strangers = []
        visits.append(visit)
        for name, rows in visit.tables.items():
            for row in rows:
                row["visit"] = number
                if several and "request" in row:
                    row["request"] = f"{number}:{row['request']}"
            tables.setdefault(name, []).extend(rows)
    span = min((v.span[0] for v in visits), default=0), max((v.span[1] for v in visits), default=0)
    of_all = {number: record for visit in visits for number, record in visit.served.items()}
    return Joined(tables, {}, of_all, left, asked, span, visits=visits, beyond=beyond)


def _of_flow(record: Mapping[str, Any]) -> dict[str, Any]:
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


def _min_rtt(tcp: Mapping[str, Any]) -> int | None:
    """The smallest round trip in ns; the kernel's "no sample yet" is the largest 32-bit number."""
    found = tcp.get("min_rtt_us")
    return None if found in (None, 0xFFFF_FFFF) else found * 1000


def _of_hop(record: Mapping[str, Any], number: int, begun: int) -> dict[str, Any]:
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


def first_windows(folder: Path) -> dict[sockets.Ends, int]:
    """The congestion window of each sampled connection as its first segment arrived: the initial window."""
    tcp = trace.read_table(folder, "tcp").filter(pl.col("event") == "ack").sort("time")
    ends = ("server_address", "server_port", "client_address", "client_port")
    first = tcp.group_by(*ends, maintain_order=True).agg(pl.col("cwnd").first())
    return {sockets.Ends(*row[:4]): row[4] for row in first.iter_rows()}


def _leave_out_servers_side(folder: Path, opened: Iterable[Mapping[str, Any]]) -> None:
    """Removes what the probe saw of connections that the sender opened: the table is of the main hop."""
    tcp = trace.read_table(folder, "tcp")
    own = {record["client_address"] for record in opened}
    trace.write_frame(folder, "tcp", tcp.filter(~pl.col("server_address").is_in(own)))


def _visit(
    load: PageLoad,
    run: Mapping[str, Any],
    number: int,
    left: list[dict[str, Any]],
    first: int,
    answers: Sequence[Mapping[str, Any]],
) -> Joined:
    """One visit; ``left`` are the other end's records of connections that no visit before had.

    Its connections are numbered from ``first`` on. ``answers`` are those of a PEP.
    """
    visit, proxy = run["visits"][number], squid_of(run)
    for connection in load.connections:
        connection.number += first
    for request in load.requests:
        request.connection = None if request.connection is None else request.connection + first
    asked = _asked(load, visit["cache"])
    # A proxy passes on what a tunnel carries, unless it ends TLS.
    by_proxy = {
        c.number for c in load.connections if proxy and not (c.tunnelled and proxy["tls"] == "tunnel")
    }
    objects = _objects(asked, visit["name"], by_proxy)
    _of_pep(objects, load.connections, answers)
    chunks = [
        {"request": r.id, "connection": r.connection, "time": chunk.time, "bytes": chunk.bytes}
        for r in asked
        for chunk in r.chunks
    ]
    client = next(host for host in run["hosts"] if host["name"] == visit["client"])
    theirs = [record for record in left if record["client_address"] == client["address"]]
    served, strangers = _serve(load.connections, theirs)
    connections = _connections(load, objects, served)
    resources = run["checks"]["pages"][visit["site"]]["resources"]
    return Joined(
        tables={
            "page": [_page(load, visit, resources, objects, connections)],
            "object": objects,
            "chunk": chunks,
            "connection": connections,
        },
        observed={},
        served=served,
        strangers=[record for record in left if record not in theirs] + strangers,
        requests=[],
        span=(load.navigation_start, load.load_event),
    )


def _asked(load: PageLoad, cache: str) -> list[Request]:
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


def _records(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _one(values: Iterable[Any]) -> Any:
    """The common value; different texts joined by commas; None if there is none."""
    distinct = sorted({value for value in values if value is not None}, key=str)
    if len(distinct) > 1 and all(isinstance(value, str) for value in distinct):
        return ", ".join(distinct)
    return distinct[0] if len(distinct) == 1 else None


def _served_by(request: Request, by_proxy: Collection[int]) -> str | None:
    """Where a response came from; ``by_proxy`` are the connections on which a proxy answers."""
    if request.from_cache:
        return BROWSER_CACHE
    if request.connection is None:
        return None
    if request.connection in by_proxy:
        return squid.told(request.cache or "")
    return REVALIDATED if request.revalidated else "origin"


def _objects(requests: Iterable[Request], page: str, by_proxy: Collection[int]) -> list[dict[str, Any]]:
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


def _of_pep(
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


def _sent_ahead(answers: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Bytes that a PEP sent ahead, and those that no browser asked for."""
    ahead = [answer for answer in answers if answer["from"] == "ahead"]
    return {
        "ahead_bytes": sum(answer["link_bytes"] for answer in ahead),
        "ahead_unused_bytes": sum(answer["link_bytes"] for answer in ahead if not answer["wanted"]),
    }


def _serve(
    connections: Iterable[Connection], records: list[dict[str, Any]]
) -> tuple[dict[int, dict[str, Any]], list[dict[str, Any]]]:
    """The server's record of each connection of the browser, and the records of strangers."""
    left = list(records)
    served: dict[int, dict[str, Any]] = {}

    def take(connection: Connection, mine: list[dict[str, Any]], since: int) -> None:
        if mine:
            record = min(mine, key=lambda record: abs(record["accepted"] - since))
            served[connection.number] = record
            left.remove(record)

    aborted = [connection for connection in connections if connection.client_port is None]
    for connection in connections:
        if connection.connected is not None:
            mine = [record for record in left if _tuple(record) == _endpoints(connection)]
            take(connection, mine, connection.connected)
    # The browser gave up a connect and never knew its port, but the kernels completed it.
    for connection in aborted:
        server = connection.server_address, connection.server_port
        mine = [r for r in left if _tuple(r)[1:] == server and r["accepted"] >= connection.opened]
        take(connection, mine, connection.opened)
    return served, left


def _tuple(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return record["client_port"], record["server_address"], record["server_port"]


def _endpoints(connection: Connection) -> tuple[Any, ...]:
    return connection.client_port, connection.server_address, connection.server_port


def _connections(
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


def _page(
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


def _unsampled(folder: Path, joined: Joined) -> list[int]:
    seen = set(trace.read_table(folder, "tcp").filter(pl.col("event") == "ack")["connection"])
    used = [row["connection"] for row in joined.crossing if row.get("objects")]
    used += [row["connection"] for row in joined.hops if row["bytes_received"]]
    used += [record["connection"] for record in joined.of_flows if record["bytes_received"]]
    return sorted(set(used) - seen)


def _fill_connection(folder: Path, name: str, connections: list[dict[str, Any]]) -> None:
    """Fills the column ``connection`` of a data plane table with the newest connection of the 4-tuple."""
    frame = trace.read_table(folder, name)
    if frame.is_empty():
        return
    keys = ["client_address", "client_port", "server_address", "server_port"]
    opened = pl.DataFrame(
        [
            {"opened": row["opened"], "id": row["connection"], **{key: row[key] for key in keys}}
            for row in connections
            if row["client_port"] is not None
        ],
        schema={
            "opened": pl.Int64,
            "id": pl.Int64,
            "client_address": pl.String,
            "client_port": pl.Int64,
            "server_address": pl.String,
            "server_port": pl.Int64,
        },
    )
    frame = frame.with_row_index("order")
    if name == "packet":
        time = pl.col("time_in")
        down = pl.col("direction") == "down"
        frame = frame.with_columns(
            client_address=pl.when(down).then("destination_address").otherwise("source_address"),
            client_port=pl.when(down).then("destination_port").otherwise("source_port"),
            server_port=pl.when(down).then("source_port").otherwise("destination_port"),
            server_address=pl.when(down).then("source_address").otherwise("destination_address"),
        )
    else:
        time = pl.col("time")
    joined = (
        frame.with_columns(at=time)
        .sort("at")
        .join_asof(
            opened.sort("opened"),
            left_on="at",
            right_on="opened",
            by=keys,
            strategy="backward",
            check_sortedness=False,
        )
        .sort("order")
        .with_columns(connection=pl.col("id"))
    )
    trace.write_frame(folder, name, joined)
