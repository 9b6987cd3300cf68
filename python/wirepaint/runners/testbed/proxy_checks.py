"""Checks of a proxy: that it was passed, how it sent on both sides, what its cache did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urldefrag

from wirepaint.runners.testbed.join import Joined
from wirepaint.runners.testbed.namespaces import SERVER_ADDRESS
from wirepaint.runners.testbed.reason import Reason
from wirepaint.runners.testbed.squid import READ_BACK_S
from wirepaint.runners.testbed.validity import sends_as_asked, some


def check(joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """All reasons against the proxy of a run; none for a run without one."""
    proxy = run.get("proxy")
    if not proxy:
        return
    yield from _passed(joined, proxy)
    yield from _behind(joined, run)
    yield from _served(joined)
    yield from _cache(joined, proxy)


def _passed(joined: Joined, proxy: Mapping[str, Any]) -> Iterator[Reason]:
    """Every connection of the browser is one with the proxy."""
    for row in joined.tables["connection"]:
        ends = row["server_address"], row["server_port"]
        if row["objects"] and ends != (SERVER_ADDRESS, proxy["port"]):
            found = f"a connection with {ends[0]}:{ends[1]} for {row['host']}"
            yield Reason("proxy", "invalid", found, "all requests through the proxy")


def _behind(joined: Joined, run: Mapping[str, Any]) -> Iterator[Reason]:
    """Both ends of the connections between proxy and servers send as asked, by the kernel's report."""
    server = next(host for host in run["hosts"] if host["role"] == "server")
    free = run["checks"].get("own_initial_window_behind", False)
    yield from sends_as_asked(joined.beyond, server, own_window=free, may_be_unread=True)
    yield from sends_as_asked(joined.uplinks, server, own_window=free, may_be_unread=True)
    read = {(r["server_address"], r["server_port"]) for r in joined.uplinks}
    for record in joined.beyond:
        # Shorter ones may have been missed; like all, they took the route, whose settings are compared.
        long = record["closed"] is None or record["closed"] - record["accepted"] > 2e9 * READ_BACK_S
        if long and (record["client_address"], record["client_port"]) not in read:
            found = f"never read back: the proxy's connection with {record['server_address']}"
            yield Reason("congestion", "invalid", found, server["congestion"])


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
