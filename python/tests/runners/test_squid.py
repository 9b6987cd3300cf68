"""What squid is told, what its log tells, and what is checked of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from wirepaint.runners.testbed import proxy_checks, proxying, sockets, squid
from wirepaint.runners.testbed.join import Joined

LOG = """\
1795707739145 57 CONNECT a.test:443 TCP_TUNNEL 200 39 0 10.64.0.2 49618
1795707739235 27 GET http://a.test/s.css?v=2 TCP_MEM_HIT 200 48979 452 10.64.0.2 49620
1795707739240 9 GET http://a.test/b.js TCP_MISS_ABORTED 200 100 40 10.64.0.2 49620
1795707739250 9 GET http://a.test/c.js TCP_REFRESH_UNMODIFIED_ABORTED 200 100 40 10.64.0.2 49620
"""


def options(**other: Any) -> squid.Options:
    values = {"address": "10.64.0.1", "port": 3128, "hosts": {"a.test": "10.65.0.1"}}
    return squid.Options(**(values | {"cache": "memory", "cache_bytes": 2**20} | other))


def lines(**other: Any) -> list[str]:
    return squid.configuration(options(**other), Path("/w")).splitlines()


def test_squid_asks_nobody_but_the_pages_servers() -> None:
    told = lines()
    assert told[0] == "http_port 10.64.0.1:3128"
    assert {"acl served dstdomain -n a.test", "http_access deny all", "icp_port 0", "pinger_enable off"} <= {
        *told
    }


def test_each_kind_of_cache_holds_objects_as_large_as_itself() -> None:
    assert {"cache deny all", "cache_mem 0"} <= {*lines(cache="none")}
    memory, disk = lines(cache="memory"), lines(cache="disk")
    assert "maximum_object_size_in_memory 1048576 bytes" in memory
    assert {"cache_mem 0", "cache_dir ufs /w/cache 1 16 64", "maximum_object_size 1048576 bytes"} <= {*disk}
    assert not any(line.startswith("cache_dir") for line in memory)


def test_tls_is_ended_only_if_asked_for_and_with_the_asked_version() -> None:
    assert not any("ssl" in line for line in lines())
    told = lines(authority=Path("/w/authority.pem"))
    assert told[0].startswith("http_port 10.64.0.1:3128 ssl-bump tls-cert=/w/authority.pem ")
    assert "ssl_bump bump all" in told and "NO_TLSv1_3" not in told[0]
    assert "options=NO_TLSv1_3" in lines(authority=Path("/a"), tls="1.2")[0]


def test_a_log_tells_hits_from_misses_and_tunnels(tmp_path: Path) -> None:
    (tmp_path / "access.log").write_text(LOG)
    served = squid.read_log(tmp_path / "access.log")
    assert [(one.url, one.is_hit) for one in served] == [
        ("a.test:443", False),
        ("http://a.test/s.css?v=2", True),
        ("http://a.test/b.js", False),
        ("http://a.test/c.js", True),
    ]
    assert (served[1].bytes, served[1].head_bytes, served[1].client_port) == (48979, 452, 49620)


def test_only_squids_own_header_counts_not_a_recorded_one() -> None:
    assert squid.told("HIT from cdn\nMISS from wirepaint") == "cache miss"
    assert squid.told("MISS from cdn, HIT from wirepaint") == "cache hit"
    assert squid.told("HIT from cdn") == "proxy"


CLIENT = sockets.Ends("10.64.0.1", 3128, "10.64.0.2", 4000)
UPLINK = sockets.Ends("10.61.128.1", 5000, "10.65.0.1", 80)
FLOW = sockets.Ends("10.63.0.1", 5001, "10.64.0.2", 4001)


class Observed:
    """A run through a proxy that is as asked; each test changes one thing."""

    behind: ClassVar = {"congestion": "reno", "initial_window": 10}

    def __init__(self) -> None:
        self.run: dict[str, Any] = {
            "epoch_ns": 10**9,
            "proxies": [{"kind": "squid", "port": 3128, "warm": False, "tls": "tunnel"}],
            "segments": [{"name": "access"}],
            "path": ["access", "squid"],
            "hosts": [
                {"name": "squid", "congestion": "cubic", "initial_window": 20, "upstream": self.behind},
                {"name": "server", **self.behind},
            ],
            "checks": {"own_initial_window": False},
        }
        self.connections = [self.seen(CLIENT, "cubic"), self.seen(UPLINK, "reno"), self.seen(FLOW, "bbr")]
        self.windows = {CLIENT: 20, UPLINK: 10, FLOW: 10}
        self.server = {
            "client_address": "10.61.128.1",
            "client_port": 5000,
            "server_address": "10.65.0.1",
            "server_port": 80,
            "congestion": "reno",
            "congestion_end": "reno",
            "initial_window": 10,
            "accepted": 0,
            "closed": None,
        }
        self.rows = [self.row("http://a.test/", "cache miss"), self.row("http://a.test/b", "cache hit")]
        self.requests = [{"url": "http://a.test/"}, {"url": "http://a.test/b"}]
        self.log = [self.line("http://a.test/", "TCP_MISS"), self.line("http://a.test/b", "TCP_MEM_HIT")]
        proxy = {"server_address": "10.64.0.1", "server_port": 3128}
        self.connection = proxy | {"connection": 1, "host": "a.test", "objects": 2}

    @staticmethod
    def seen(ends: sockets.Ends, *names: str | None) -> squid.Seen:
        return squid.Seen(
            2 * 10**9, sockets.Report(ends, sockets.ESTABLISHED, names[-1], 0, 26_000, 1448), [*names]
        )

    @staticmethod
    def row(url: str, served_by: str) -> dict[str, Any]:
        return {"method": "GET", "url": url, "served_by": served_by}

    @staticmethod
    def line(url: str, result: str) -> squid.Served:
        return squid.Served(0, 0, "GET", url, result, 200, 100, 50, "10.64.0.2", 4000)

    def check(self) -> list[tuple[str, str, str]]:
        ends = proxying.of_squid(self.connections, self.windows, self.run, "10.61.128.1")
        assert [record["server_port"] for record in ends.accepted] == [3128]  # the flow is nobody's
        tables = {"connection": [self.connection], "object": self.rows}
        joined = Joined(tables, {}, {}, [], self.requests, (0, 1), beyond=[self.server])
        joined.proxies, joined.log = {"squid": ends}, self.log
        return [(r.check, r.severity, r.found) for r in proxy_checks.check(joined, self.run)]


def test_a_run_through_a_proxy_that_is_as_asked_has_no_reason_against_it() -> None:
    assert Observed().check() == []


def _another_way(o: Observed) -> None:
    o.connection["server_address"] = "10.65.0.1"


def _uplink_cubic(o: Observed) -> None:
    o.connections[1] = o.seen(UPLINK, "cubic")


def _uplink_changes(o: Observed) -> None:
    o.connections[1] = o.seen(UPLINK, "reno", "bbr")


def _uplink_window(o: Observed) -> None:
    o.windows[UPLINK] = 3


def _server_cubic(o: Observed) -> None:
    o.server |= {"congestion": "cubic"}


def _never_read(o: Observed) -> None:
    del o.connections[1]


def _log_says_hit(o: Observed) -> None:
    o.log[0] = o.line("http://a.test/", "TCP_HIT")


def _not_logged(o: Observed) -> None:
    del o.log[1]


def _not_cold(o: Observed) -> None:
    del o.requests[1]


@pytest.mark.parametrize(
    ("disturb", "check", "found"),
    [
        (_another_way, "proxy", "a connection with 10.65.0.1:3128 for a.test"),
        (_uplink_cubic, "congestion", "cubic when accepted, squid's connection with 10.65.0.1"),
        (_uplink_changes, "congestion", "bbr at its end, squid's connection with 10.65.0.1"),
        (_uplink_window, "initial_window", "3, squid's connection with 10.65.0.1"),
        (_server_cubic, "congestion", "cubic when accepted, connection to 10.65.0.1 from port 5000"),
        (_never_read, "congestion", "never read back: squid's connection with 10.65.0.1"),
        (_log_says_hit, "served_by", "the proxy's log has a hit for http://a.test/"),
        (_not_logged, "served_by", "the proxy's log has no miss for http://a.test/b"),
        (_not_cold, "cold_cache", "the proxy had http://a.test/b"),
    ],
)
def test_a_difference_makes_the_run_invalid(
    disturb: Callable[[Observed], None], check: str, found: str
) -> None:
    observed = Observed()
    disturb(observed)
    assert observed.check() == [(check, "invalid", found)]


def test_a_warm_cache_may_have_what_no_server_sent_in_this_visit_and_is_noted_when_it_was_of_no_use() -> None:
    observed = Observed()
    observed.run["proxies"][0]["warm"] = True
    observed.requests = []
    assert observed.check() == []
    observed.rows = [observed.row("http://a.test/", "cache miss")]
    assert observed.check() == [("proxy", "note", "its cache had nothing of the page")]


def test_a_short_connection_with_a_server_need_not_be_read_back() -> None:
    observed = Observed()
    del observed.connections[1]
    observed.server["closed"] = 10**8
    assert observed.check() == []
