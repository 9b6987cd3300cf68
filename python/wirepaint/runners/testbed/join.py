"""Joins the records of browsers, server and kernel of one run into the tables of the trace.

Requests and connections come from the browser of each visit. The server adds the kernel's record of its
sockets, by 4-tuple. A port may be used twice, so the join is by 4-tuple and time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.results import trace
from wirepaint.runners.testbed import proxying, sockets, squid, trace_rows
from wirepaint.runners.testbed.browser.contract import Connection, PageLoad
from wirepaint.runners.testbed.iperf3_reports import Told
from wirepaint.runners.testbed.route import Route, squid_of

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
    joined.tables["connection"] += map(trace_rows.of_flow, joined.of_flows)
    if told is not None and route.near:
        number = first + len(joined.of_flows)
        begun = {record["client_port"]: record["accepted"] for record in told.ends[route.near[-1]].opened}
        joined.hops = [
            trace_rows.of_hop(record, number + place, begun.get(record["client_port"], record["accepted"]))
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
        **(trace_rows.sent_ahead(told.answers) if told is not None and told.answers else {}),
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
    asked = trace_rows.asked(load, visit["cache"])
    # A proxy passes on what a tunnel carries, unless it ends TLS.
    by_proxy = {
        c.number for c in load.connections if proxy and not (c.tunnelled and proxy["tls"] == "tunnel")
    }
    objects = trace_rows.objects_of(asked, visit["name"], by_proxy)
    trace_rows.of_pep(objects, load.connections, answers)
    chunks = [
        {"request": r.id, "connection": r.connection, "time": chunk.time, "bytes": chunk.bytes}
        for r in asked
        for chunk in r.chunks
    ]
    client = next(host for host in run["hosts"] if host["name"] == visit["client"])
    theirs = [record for record in left if record["client_address"] == client["address"]]
    served, strangers = _serve(load.connections, theirs)
    connections = trace_rows.connections_of(load, objects, served)
    resources = run["checks"]["pages"][visit["site"]]["resources"]
    return Joined(
        tables={
            "page": [trace_rows.page_of(load, visit, resources, objects, connections)],
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
