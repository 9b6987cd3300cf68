"""Checks of a proxy: that it was passed, how it sent on both sides, what its cache did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urldefrag

from wirepaint.runners.testbed import chain
from wirepaint.runners.testbed.join import Joined
from wirepaint.runners.testbed.proxying import Ends
from wirepaint.runners.testbed.reason import Reason
from wirepaint.runners.testbed.route import Route, hosts_of, squid_of
from wirepaint.runners.testbed.squid import READ_BACK_S
from wirepaint.runners.testbed.validity import sends_as_asked, some


def check(joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """All reasons against the proxies of a run; none for a run without one."""
    if not joined.proxies:
        return
    yield from _sends(joined, run)
    for why in joined.lost:
        yield Reason("proxy", "invalid", f"a connection of the PEP ended: {why}", "none before the end")
    if proxy := squid_of(run):
        yield from _passed(joined, (chain.first_address(near=bool(Route.of(run).near)), proxy["port"]))
        yield from _read_back(joined, Route.of(run))
        yield from _served(joined)
        yield from _cache(joined, proxy)


def _sends(joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """Both sides of each proxy, and the servers, send as asked, by the kernel's report.

    What the first proxy accepted is checked with each visit.
    """
    hosts, free = hosts_of(run), run["checks"].get("own_initial_window_behind", False)
    own = run["checks"]["own_initial_window"]
    for number, (name, ends) in enumerate(_in_order(joined, run)):
        # Squid's initial windows are those of samples.
        unread = name == "squid"
        if number:
            yield from sends_as_asked(
                ends.accepted, hosts[name], own_window=free or own, may_be_unread=unread
            )
        upstream = hosts[name]["upstream"]
        yield from sends_as_asked(ends.opened, upstream, own_window=free or own, may_be_unread=unread)
    yield from sends_as_asked(joined.beyond, hosts["server"], own_window=free, may_be_unread=True)


def _in_order(joined: Joined, run: Mapping[str, Any]) -> list[tuple[str, Ends]]:
    return [(name, joined.proxies[name]) for name in Route.of(run).proxies]


def _passed(joined: Joined, squid: tuple[str, int]) -> Iterator[Reason]:
    """Every connection of the browser is one with squid, at its address and port."""
    for row in joined.tables["connection"]:
        ends = row["server_address"], row["server_port"]
        if row["objects"] and ends != squid:
            found = f"a connection with {ends[0]}:{ends[1]} for {row['host']}"
            yield Reason("proxy", "invalid", found, "all requests through the proxy")


def _read_back(joined: Joined, route: Route) -> Iterator[Reason]:
    """Squid's connections were read back, but for short ones, which took the same route."""
    _, *others = route.proxies
    theirs = joined.proxies[others[0]].accepted if others else joined.beyond
    read = {(r["server_address"], r["server_port"], r["client_port"]) for r in joined.proxies["squid"].opened}
    for record in theirs:
        # Shorter ones may have been missed; like all, they took the route, whose settings are compared.
        long = record["closed"] is None or record["closed"] - record["accepted"] > 2e9 * READ_BACK_S
        ends = record["server_address"], record["server_port"], record["client_port"]
        if long and ends not in read:
            found = f"never read back: squid's connection with {record['server_address']}"
            yield Reason("congestion", "invalid", found, "each long one read back")


def _served(joined: Joined) -> Iterator[Reason]:
    """The proxy's log and the headers that the browser saw tell the same of each response."""
    logged = Counter((one.method, one.url, one.is_hit) for one in joined.log)
    for row in joined.tables["object"]:
        if row["served_by"] not in ("cache hit", "cache miss"):
            continue
        url, is_hit = urldefrag(row["url"]).url, row["served_by"] == "cache hit"
        if not logged[row["method"], url, is_hit]:
            other = logged[row["method"], url, not is_hit]
            found = f"the proxy's log has {'a' if other else 'no'} {'miss' if is_hit else 'hit'} for {url}"
            yield Reason("served_by", "invalid", found, f"a {row['served_by']}, as its header says")
        else:
            logged[row["method"], url, is_hit] -= 1


def _cache(joined: Joined, proxy: Mapping[str, Any]) -> Iterator[Reason]:
    """A cold cache has nothing that this visit did not fetch; a warm one has something."""
    fetched = {record["url"] for record in joined.requests}
    rows = joined.tables["object"]
    hits = [urldefrag(row["url"]).url for row in rows if row["served_by"] == "cache hit"]
    if not proxy["warm"] and (early := [url for url in hits if url not in fetched]):
        yield Reason("cold_cache", "invalid", f"the proxy had {some(early)}", "a cold cache of the proxy")
    if proxy["warm"] and not hits:
        yield Reason("proxy", "note", "its cache had nothing of the page", "responses of the first visit")
