"""Decides whether a run counts: every check compares an observation with what was asked.

A mismatch between what was asked and what ran makes a run ``invalid``. A disturbance of the
machine makes it ``suspect``. A ``note`` informs the reader and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol
from urllib.parse import urldefrag

from wirepaint.evaluation.axes import HTTP_VERSIONS
from wirepaint.runners.testbed.browser.contract import UNFINISHED, PageLoad
from wirepaint.runners.testbed.host import Counters
from wirepaint.runners.testbed.join import Joined
from wirepaint.runners.testbed.reason import Reason, disturbance
from wirepaint.runners.testbed.route import Route, emulators, hosts_of
from wirepaint.runners.testbed.trace_rows import BROWSER_CACHE

LATENESS_P99_NS = 1_000_000
"""1/26 of the round trip of the shortest shipped network (lte): beyond it the emulated path is no longer
the one asked for. A calm machine has 0.03 ms, a busy one 0.1 ms."""
LATENESS_P99_SHARE = 0.01
"""Of the path's round trip, where this is more: 1 ms is nothing on a satellite's 600 ms."""
LATENESS_MAX_NS = 5_000_000
"""Of any single packet. A calm machine stays below 0.5 ms, the real-time thread below 1 ms under load."""
LATENESS_MAX_SHARE = 0.05
"""Of the path's round trip, where this is more."""
STOLEN_SHARE = 0.03
"""Of the load's time, over all CPUs together, where browsers always keep a CPU busy. There a stolen second
lengthens a page load by up to 0.65 s (benches/stolen.py): this is 2 %, the margin of compare."""
LEAST_BUSY = 0.3
"""A page that waits for the network bears more. Browsers are taken to compute for at least this share of the
load's time, as no more than a tenth of it was seen stolen; where there are none, for all of it."""
FOREIGN_SHARE = 0.25
"""Of the machine's CPU time. A load with both cores busy elsewhere took seconds longer; a quarter
leaves the browser, which seldom uses more than one and a half cores, unhindered on two."""
FEW_TICKS_S = 0.025
"""The kernel counts CPU time in ticks of 10 ms: for a short load, fewer than three say nothing."""
VIEWPORT_APART_NS = 200_000_000
"""On still pages the walk of the view port and the screencast agree within two frames; animations and
pictures that a script swaps make them differ."""
ARRIVAL_SHIFT_NS = 1_000_000
"""Largest allowed shift of an arrival: the packet met the queue in its state that much later. It happens
if the emulator reads a packet later than the path's delay."""
CALIBRATION_MOST = {"bit/s": 0.01, "B": 0.01, "ms": 1.0, "packets": float("inf")}
"""By unit of the quantity: a path may be off by 1 % in rate and by 1 ms in round-trip time.
The depth of the queue only makes a note. Loss that was not asked for has no allowance."""
OUTSIDE_THE_MODEL = frozenset({"ring drops", "backlog drops", "send failures", "frames without memory"})
"""Faults of the emulator that lose single packets; the others mean that the path was not what was asked."""
UNSEEN_SHARE = 0.02
"""Of a connection's retransmissions: a long flow has thousands, some from timers that ran on top of a task
without BPF programs. Fewer without a row make a note."""
UNREPAIRED = 2
"""Segments that reach a sender whose congestion control was not asked for ssthresh, before its next hook
repairs that (cc_kernel.h). More, and it may have sent without a limit."""
HANDSHAKE_NS = 10_000_000_000
"""A handshake of a flow: with two lost segments (1 and 2 s), and a full queue."""
LATE_START_NS = 50_000_000
"""Of a navigation. A browser takes up to a second to start, which a user's think time must leave it."""
LATE_LIGHT_NS = 50_000_000
"""Of an effect of computing in a light browser, as of a pause of the server."""
HEADERS_FRAMING = 256
"""Bytes that HTTP/2 may add to the headers as text (HPACK's literals are shorter), with frames."""
FRAMING_SHARE = 0.02
"""Framing grows with the body: 9 bytes per HTTP/2 frame, 22 bytes per TLS record."""


class Begun(Protocol):
    """What was seen of the visits of a run from outside the browsers, by number."""

    spoken: dict[int, list[str]]
    """Congestion controls of the client's sockets."""
    late: dict[int, int]
    """How much later than asked it began, in ns."""
    behind: dict[int, int]
    """Longest time in ns by which a light one computed late."""


def check(
    loads: Sequence[PageLoad],
    joined: Joined,
    run: Mapping[str, Any],
    summaries: Mapping[str, Mapping[str, Any]],
    counters: Counters,
    proofs: Iterable[Reason] = (),
    begun: Begun | None = None,
) -> list[dict[str, str]]:
    """All reasons against a run, worst first; empty when there is none.

    ``proofs`` are the reasons found by ``proofs.prove``; ``begun`` is what was seen of the visits from
    outside the browsers.
    """
    order = {"invalid": 0, "suspect": 1, "note": 2}
    reasons = [
        *_visits(loads, joined, run),
        *(_begun(begun, run) if begun is not None else ()),
        *_flows(joined, run),
        *(
            reason
            for name in emulators(summaries)
            for reason in _emulator(summaries.get(name, {}), joined.spans, _round_trip_ns(run))
        ),
        *_calibration(run["checks"]["calibration"]),
        *_probe(summaries.get("probe", {}), joined),
        *_groups(summaries.get("congestion", {})),
        *_machine(counters),
        *proofs,
    ]
    return [asdict(reason) for reason in sorted(reasons, key=lambda reason: order[reason.severity])]


def verdict(reasons: Sequence[Mapping[str, str]]) -> str:
    """``invalid``, ``suspect`` or ``valid``: the worst severity decides."""
    severities = {reason["severity"] for reason in reasons}
    return next((name for name in ("invalid", "suspect") if name in severities), "valid")


def _visits(loads: Sequence[PageLoad], joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    for load, visit, of_visit in zip(loads, run["visits"], joined.visits, strict=True):
        checks = run["checks"] | run["checks"]["pages"][visit["site"]]
        # The first page of a user has nothing to share.
        cache = "cold" if visit["cache"] == "shared" and visit.get("after") is None else visit["cache"]
        site = {**run, "checks": checks, "site": run["sites"][visit["site"]], "cache": cache}
        for reason in _page(load, of_visit, site):
            yield replace(reason, found=f"{reason.found}{_whose(run, visit)}")
    if joined.strangers:
        ports = ", ".join(str(record["client_port"]) for record in joined.strangers)
        yield Reason(
            "connections", "invalid", f"connections that the browser did not open, from port {ports}", "none"
        )


def _whose(run: Mapping[str, Any], visit: Mapping[str, Any]) -> str:
    """User and page in brackets, where a run has several visits."""
    return f" ({visit['user_agent']}, {visit['name']})" if len(run["visits"]) > 1 else ""


def _begun(begun: Begun, run: Mapping[str, Any]) -> Iterator[Reason]:
    """Clients have the congestion control that was asked for, and visits began in time."""
    hosts = {host["name"]: host for host in run["hosts"]}
    for number, visit in enumerate(run["visits"]):
        wanted, whose = hosts[visit["client"]]["congestion"], _whose(run, visit)
        if others := [name for name in begun.spoken.get(number, ()) if name != wanted]:
            yield Reason("congestion", "invalid", f"{', '.join(others)} at the client{whose}", wanted)
        if "navigation" not in visit and not begun.spoken.get(number):
            yield Reason("congestion", "invalid", f"not read back at the client{whose}", wanted)
        if (late := begun.late[number]) > LATE_START_NS:
            limit = f"at most {LATE_START_NS / 1e6:g} ms"
            yield Reason("start", "suspect", f"{late / 1e6:.0f} ms later than asked{whose}", limit)
        if (late := begun.behind.get(number, 0)) > LATE_LIGHT_NS:
            limit = f"at most {LATE_LIGHT_NS / 1e6:g} ms"
            yield Reason("light", "suspect", f"computed {late / 1e6:.0f} ms late{whose}", limit)


def _page(load: PageLoad, joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """Reasons against one visit; ``run`` has the site and the checks of its page."""
    yield from _congestion(joined, run)
    yield from _versions(load, joined, run)
    yield from _connections(joined)
    yield from _cold(load, joined, run["cache"])
    yield from _objects(load, joined, run)
    yield from _only_the_page(load, joined, run)
    yield from _browser(load)


def _flows(joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """The kernel reports what was asked for both ends of each flow's connection; all flows began."""
    hosts = hosts_of(run)
    hosts["server"] = hosts[Route.of(run).sender]
    asked = {flow["name"]: flow for flow in run["flows"]}
    own_window = run["checks"].get("flows_with_own_window", ())
    for record in joined.of_flows:
        flow = asked[record["flow"]]
        for side in ("client", "server"):
            end, where = record[side], f"{side} of flow {record['flow']}"
            if end["congestion"] is None:
                if record["opened"] + HANDSHAKE_NS > joined.flows_end:
                    continue  # cut off while it connected
                yield Reason("flows", "invalid", f"the {where} was never connected", "both ends connected")
                continue
            # iperf3 gives both ends the congestion control of the sender.
            of_tool = record.get("tool") == "iperf3"
            own = flow.get("congestion") if of_tool or flow["sender"] == side else None
            wanted = own or hosts[flow["sender"] if of_tool else side]["congestion"]
            for when, key in (("when connected", "congestion"), ("at its end", "congestion_end")):
                if end[key] != wanted:
                    yield Reason("congestion", "invalid", f"{end[key]} {when}, {where}", wanted)
                    break
            window, free = hosts[side]["initial_window"], run["checks"]["own_initial_window"] and not own
            checked = side == "server" and not free and record["flow"] not in own_window
            found = end["initial_window"]
            if checked and found != window and not (of_tool and found is None):
                lost = found == 1 and end.get("handshake_retrans")
                severity, why = ("note", " after a lost SYN-ACK") if lost else ("invalid", "")
                yield Reason("initial_window", severity, f"{found}{why}, {where}", str(window))
    waiting = set(asked) - {record["flow"] for record in joined.of_flows}
    if first := [name for name in waiting if not (asked[name].get("after") or asked[name]["background"])]:
        yield Reason("flows", "invalid", f"never began: {some(first)}", "every flow begins")
    # A flow that ended has shut its sender's direction down, and its reader has all bytes.
    if not run["visits"]:
        ended = set(joined.ended_flows)
        late = [name for name in asked if name not in ended and name not in run["checks"].get("endless", ())]
        if late:
            found = f"not ended after {run['until_ns'] / 1e9:g} s: {some(late)}"
            yield Reason("flows", "note", found, "all flows with an end reach it")


def _congestion(joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """The kernel reports what was asked for each socket that answers the browser."""
    host, own = hosts_of(run)[Route.of(run).first], run["checks"]["own_initial_window"]
    unread = host["name"] == "squid"
    yield from sends_as_asked(joined.served.values(), host, own_window=own, may_be_unread=unread)
    if not joined.served and any(row["served_by"] != BROWSER_CACHE for row in joined.tables["object"]):
        yield Reason("congestion", "invalid", "no record of any server connection", host["congestion"])


def sends_as_asked(
    records: Iterable[Mapping[str, Any]], host: Mapping[str, Any], *, own_window: bool, may_be_unread: bool
) -> Iterator[Reason]:
    """Reasons against sockets with another congestion control or initial window than their host's.

    ``own_window``: the congestion control chooses the window itself. ``may_be_unread``: the window is that of
    the first sample, which a short connection may not have.
    """
    wanted, window = host["congestion"], host["initial_window"]
    for record in records:
        where = record.get("where") or (
            f"connection to {record['server_address']} from port {record['client_port']}"
        )
        for key in ("congestion", "congestion_end"):
            if record.get(key) != wanted:
                when = "when accepted" if key == "congestion" else "at its end"
                yield Reason("congestion", "invalid", f"{record.get(key)} {when}, {where}", wanted)
                break
        found = record.get("initial_window")
        if found == 1 and record.get("handshake_retrans"):
            # RFC 5681 section 3.1: after the loss of a SYN-ACK the initial window is one segment.
            yield Reason("initial_window", "note", f"1 after a lost SYN-ACK, {where}", str(window))
        elif found != window and not own_window and not (found is None and may_be_unread):
            yield Reason("initial_window", "invalid", f"{found}, {where}", str(window))


def _versions(load: PageLoad, joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """Encrypted origins negotiate the versions of HTTP and TLS; a plain origin always speaks HTTP/1.1."""
    wanted = HTTP_VERSIONS[run["transport"]["http"]]
    tls = f"TLS {run['transport']['tls']}"
    for connection in load.connections:
        if connection.tls not in (None, tls):
            yield Reason("tls_version", "invalid", f"{connection.tls} with {connection.host}", tls)
    for row in joined.tables["connection"]:
        expected = wanted if row["encrypted"] else "http/1.1"
        if row["objects"] and row["protocol"] != expected:
            yield Reason("http_version", "invalid", f"{row['protocol']} with {row['host']}", expected)


def _connections(joined: Joined) -> Iterator[Reason]:
    """Browser and server have the same connections."""
    for row in joined.tables["connection"]:
        if row["objects"] and row["connection"] not in joined.served:
            found = f"no server record of the connection from port {row['client_port']} to {row['host']}"
            yield Reason("connections", "invalid", found, "one record each")


def _cold(load: PageLoad, joined: Joined, cache: str) -> Iterator[Reason]:
    """Nothing came from an earlier visit, but from a cache that is not ``cold``."""
    fetched: set[str] = set()
    for request in load.requests:
        # A page may use an address twice within the visit.
        if cache == "cold" and request.url not in fetched and (request.from_cache or request.revalidated):
            yield Reason("cold_cache", "invalid", f"{request.url} came from a cache", "a cold cache")
        fetched.add(request.url)
    if cache == "warm" and not any(request.from_cache or request.revalidated for request in load.requests):
        yield Reason("warm_cache", "note", "it had nothing of the page", "answers of the first visit")
    yield from _without_request(joined)
    hosts: set[str | None] = set()
    done = [(c.tls_done, c.number, c) for c in load.connections if c.tls_done is not None]
    for _, _, connection in sorted(done, key=lambda each: each[:2]):
        # Parallel connections of one visit resume the TLS session of the first.
        if connection.resumed and connection.host not in hosts:
            found = f"the first connection to {connection.host} resumed a TLS session"
            yield Reason("cold_connections", "invalid", found, "no session of an earlier visit")
        hosts.add(connection.host)


def _without_request(joined: Joined) -> Iterator[Reason]:
    """The server was asked for nothing that the browser's cache gave.

    Behind proxies its records do not say whose request it was, nor whether a PEP fetched ahead.
    """
    if joined.proxies:
        return
    rows = joined.tables["object"]
    asked = Counter(_key(record["method"], record["url"]) for record in joined.requests)
    fetched = Counter(_key(r["method"], r["url"]) for r in rows if r["served_by"] != BROWSER_CACHE)
    cached = {_key(r["method"], r["url"]) for r in rows if r["served_by"] == BROWSER_CACHE}
    if urls := [url for method, url in cached if asked[method, url] > fetched[method, url]]:
        found = f"the server was asked for {some(urls)}"
        yield Reason("warm_cache", "invalid", found, "no request for what came from the cache")


def _objects(load: PageLoad, joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """The objects are those of the recording, complete and with their recorded status."""
    resources = run["checks"]["resources"]
    every = f"{sum(resource.get('expected', True) for resource in resources)} objects"
    answered = _answered(joined, run)
    loaded: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
        (row, answered.get(_key(row["method"], row["url"]))) for row in joined.tables["object"]
    ]
    for row, resource in loaded:
        if row["failed"]:
            # Some pages abort a request; their rehearsals show it.
            known = resource is not None and (resource.get("rehearsed") or {}).get("aborted")
            # Scripts may send requests without end, but the visit ends.
            late = row["failed"] == UNFINISHED and row["discovered"] > load.load_event
            severity = "note" if known or late else "invalid"
            yield Reason("objects", severity, f"{row['url']} failed: {row['failed']}", "loaded")
        elif resource is not None and _key(row["method"], row["url"])[1] != resource["url"]:
            yield Reason("objects", "note", row["url"], f"{resource['url']} (another address of it)")
    seen = {resource["id"] for _, resource in loaded if resource is not None}
    missing = [resource for resource in resources if resource["id"] not in seen]
    # Objects that no rehearsal asked for are left out of the page; those that some asked for are optional.
    sometimes = [r["url"] for r in missing if not r.get("expected", True) and _is_asked(r, run)]
    if sometimes:
        yield Reason("objects", "note", f"not requested: {some(sometimes)}", every)
    if certain := [resource["url"] for resource in missing if resource.get("expected", True)]:
        yield Reason("objects", "invalid", f"not requested: {some(certain)}", every)
    extra = [row["url"] for row, resource in loaded if resource is None and row["method"] != "OPTIONS"]
    if extra:
        yield Reason("objects", "invalid", f"not in the recording: {some(extra)}", every)
    surprises = [row for row, r in loaded if r is not None and not _is_asked(r, run)]
    for severity, late in (("invalid", False), ("note", True)):
        # A request after the load event cannot have delayed it.
        if urls := [row["url"] for row in surprises if (row["discovered"] > load.load_event) is late]:
            found = f"asked for in no rehearsal{' (after the load event)' if late else ''}: {some(urls)}"
            yield Reason("objects", severity, found, "what the rehearsals asked for")
    stored = {_key(r.method, r.url) for r in load.requests if r.revalidated}
    broken = {_key(r.method, r.url) for r in load.requests if r.broken_image}
    heads = {_key(r["method"], r["url"]): r.get("head_bytes", 0) for r in joined.requests}
    heads |= {_key(one.method, one.url): one.head_bytes for one in joined.log}
    for row, resource in loaded:
        if resource is None or row["failed"]:
            continue
        is_stored = _key(row["method"], row["url"]) in stored
        body = 0 if is_stored else resource["wire_bytes"]
        if (row["status"], resource["status"]) == (206, 200):
            continue  # the browser asks for media in parts
        if row["status"] != resource["status"]:
            found = f"status {row['status']} of {row['url']}"
            yield Reason("status", "invalid", found, str(resource["status"]))
        elif row["served_by"] == BROWSER_CACHE:
            continue
        elif (body or is_stored) and not 300 <= row["status"] < 400 and row["method"] != "HEAD":
            head = heads.get(_key(row["method"], row["url"]), 0)
            most = body + head + HEADERS_FRAMING + round(FRAMING_SHARE * body)
            if not body <= row["encoded_bytes"] <= most:
                found = f"{row['encoded_bytes']} bytes of {row['url']}"
                severity = "invalid"
                if row["encoded_bytes"] < body and _key(row["method"], row["url"]) in broken:
                    found, severity = f"{found}, then the browser stopped: a broken image", "note"
                yield Reason("bytes", severity, found, f"{body} bytes and {head} of headers")
    unanswered = {record["url"] for record in joined.requests if record["matched"] == "none"}
    if unanswered:
        found = f"the server has no recording of {some(unanswered)}"
        yield Reason("server", "invalid", found, "an answer for each request")


def _key(method: str, url: str) -> tuple[str, str]:
    return method, urldefrag(url).url


def _answered(joined: Joined, run: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The resource for each method and address: the recorded one, else the one that was served."""
    resources = run["checks"]["resources"]
    answering = run["checks"]["answering"]
    found = {
        _key(record["method"], record["url"]): resources[answering[record["response"]]]
        for record in joined.requests
        if record["response"] is not None
    }
    return found | {_key(resource["method"], resource["url"]): resource for resource in resources}


def _is_asked(resource: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    """False for a resource that no rehearsal asked for."""
    return not run["checks"]["rehearsed"] or resource.get("rehearsed") is not None


def some(addresses: Iterable[str]) -> str:
    """The first few addresses, and how many more there are."""
    urls = sorted(set(addresses))
    more = f" and {len(urls) - 3} more" if len(urls) > 3 else ""
    return ", ".join(urls[:3]) + more


def _only_the_page(load: PageLoad, joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """Nothing but the page caused traffic."""
    for url in load.unseen:
        # Websockets are not replayed; a page that opens one sees it fail.
        severity = "note" if url.startswith(("ws:", "wss:")) else "invalid"
        found = f"{url}, not caused by the page" if severity == "invalid" else url
        yield Reason("requests", severity, found, "only the page's requests")
    outside = sorted(
        {row["host"] for row in joined.tables["object"]}
        - {origin["host"] for origin in run["site"]["origins"]}
    )
    if outside:
        yield Reason(
            "requests", "invalid", f"requests to {', '.join(outside)}", "only hosts of the recording"
        )


def _browser(load: PageLoad) -> Iterator[Reason]:
    if load.unconfined:
        yield Reason("sandbox", "invalid", load.unconfined, "the browser's sandbox in force")
    if load.cut_off:
        yield Reason(
            "netlog", "suspect", f"{load.cut_off} is cut off", f"{load.cut_off} to the end of the visit"
        )
    if load.viewport_complete is not None and load.viewport_last_frame is not None:
        apart = load.viewport_last_frame - load.viewport_complete
        if abs(apart) > VIEWPORT_APART_NS:
            found = f"the screencast ends {apart / 1e6:.0f} ms after the last visible object"
            yield Reason("viewport", "note", found, f"within {VIEWPORT_APART_NS / 1e6:g} ms")
    for note in load.notes:
        yield Reason("browser", "note", note, "an undisturbed visit")


def _round_trip_ns(run: Mapping[str, Any]) -> int:
    """Delays of the path that a run asks for, all its hops together."""
    return sum(hop[side]["delay_ns"] for hop in run.get("segments", ()) for side in ("down", "up"))


def _emulator(
    summary: Mapping[str, Any], spans: Sequence[tuple[int, int]], round_trip_ns: int
) -> Iterator[Reason]:
    if not summary:
        yield Reason("emulator", "invalid", "no summary", "a summary")
        return
    for fault in summary["faults"]:
        severity = "suspect" if fault["check"] in OUTSIDE_THE_MODEL else "invalid"
        found = f"{fault['packets']} packets {fault['direction']}"
        yield Reason(fault["check"].replace(" ", "_"), severity, found, "none")
    if steps := summary.get("clock_steps"):
        yield Reason("clock", "suspect", f"the wall clock was set {steps} times", "never during a run")
    shift = max(summary[side]["largest_shift"] for side in ("down", "up"))
    if shift > ARRIVAL_SHIFT_NS:
        limit = f"at most {ARRIVAL_SHIFT_NS / 1e6:g} ms"
        yield Reason("late_arrivals", "suspect", f"one taken {shift / 1e6:.2f} ms after it came", limit)
    lateness = summary["lateness"]
    most = max(LATENESS_P99_NS, LATENESS_P99_SHARE * round_trip_ns)
    if (late := lateness["p99"]) is not None and late > most:
        limit = f"at most {most / 1e6:g} ms"
        yield Reason("lateness", "suspect", f"p99 {late / 1e6:.2f} ms", limit)
    most = max(LATENESS_MAX_NS, LATENESS_MAX_SHARE * round_trip_ns)
    if (late := lateness["max"]) is not None and late > most:
        limit = f"at most {most / 1e6:g} ms"
        yield Reason(
            "lateness_max", disturbance([late], spans), f"one packet {late / 1e6:.1f} ms late", limit
        )


def _calibration(calibration: Mapping[str, Any] | None) -> Iterator[Reason]:
    """The calibration of the run's network found the asked path."""
    if calibration is None:
        yield Reason("calibration", "suspect", "the network could not be measured", "a calibration")
        return
    for fault in calibration.get("faults", ()):
        found = f"{fault['check']}: {fault['packets']} packets {fault['direction']}"
        yield Reason("calibration", "suspect", found, "none")
    for quantity in calibration["quantities"]:
        if quantity["verdict"] == "off":
            error, unit = quantity["error"], quantity["unit"]
            slight = error is not None and abs(error) <= CALIBRATION_MOST.get(unit, 0)
            found = f"{quantity['name']} {'nothing' if error is None else format(quantity['measured'], 'g')}"
            yield Reason(
                "calibration",
                "note" if slight else "suspect",
                f"{found} {unit}".strip(),
                f"{quantity['asked']:g} {unit}".strip(),
            )


def _groups(summary: Mapping[str, Any]) -> Iterator[Reason]:
    if lost := summary.get("group_events_lost"):
        yield Reason("groups", "note", f"{lost} events of groups of connections lost", "none")


def _probe(summary: Mapping[str, Any], joined: Joined) -> Iterator[Reason]:
    if lost := summary.get("lost"):
        yield Reason("probe", "suspect", f"{lost} samples of the sender lost", "none")
    if skipped := summary.get("skipped"):
        # Counted on the whole host: an upper bound of what this run missed.
        yield Reason("probe", "note", f"up to {skipped} samples of the sender skipped by the kernel", "none")
    # If the probe's program did not run, a congestion control's program did not either
    # (docs/guide/congestion.md, "Unseen ACKs"). A built-in one still runs, but all compared runs must pass
    # the same filter.
    few: list[int] = []
    # What a proxy sends to servers does not cross the link.
    uplinks = {record["client_address"] for ends in joined.proxies.values() for record in ends.opened}
    for row in summary.get("unseen", ()):
        if row["server_address"] in uplinks:
            continue
        if row["without_ssthresh"] > UNREPAIRED:
            found = f"no ssthresh for {row['without_ssthresh']} segments from port {row['client_port']}"
            yield Reason("unseen_acks", "suspect", found, f"at most {UNREPAIRED}")
        if not row["segments"] and row["retransmissions"] <= UNSEEN_SHARE * row["retransmitted"]:
            few.append(row["retransmissions"])
            continue
        what = f"{row['segments']} segments and {row['retransmissions']} retransmissions"
        found = f"BPF missed {what} of {row['server_address']} to port {row['client_port']}"
        yield Reason("unseen_acks", "suspect", found, "none")
    if few:
        found = f"BPF missed {sum(few)} retransmissions, at most {100 * UNSEEN_SHARE:.0f} % of a connection's"
        yield Reason("unseen_acks", "note", found, "none")
    if joined.unsampled:
        ids = ", ".join(map(str, joined.unsampled))
        yield Reason("unseen_acks", "suspect", f"no sample of the sender of connection {ids}", "samples")


def _machine(counters: Counters) -> Iterator[Reason]:
    if counters.browser_stopped:
        found = f"a process of the browser was stopped for {counters.browser_stopped * 1000:.0f} ms"
        yield Reason("browser_pause", "suspect", found, "never")
    stolen, foreign = counters.steal / counters.duration, counters.foreign / counters.total
    busy = counters.browser / counters.duration
    borne = STOLEN_SHARE / (min(max(busy, LEAST_BUSY), 1) if busy else 1)
    if stolen > borne and counters.steal > FEW_TICKS_S:
        found = f"CPUs were stolen for {100 * stolen:.1f} % of the load"
        yield Reason("steal", "suspect", found, f"at most {100 * borne:.1f} %")
    if foreign > FOREIGN_SHARE and counters.foreign > FEW_TICKS_S:
        found = f"{100 * foreign:.0f} % of the CPU time used by others{_named(counters)}"
        yield Reason("foreign_cpu", "suspect", found, f"at most {100 * FOREIGN_SHARE:.0f} %")


def _named(counters: Counters) -> str:
    """The processes that used it, such as ": cargo 31 %, node 4 %"."""
    named = [f"{name} {100 * seconds / counters.total:.0f} %" for name, seconds in counters.others]
    return f": {', '.join(named)}" if named else ""
