"""Which hosts of a page are one server."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from wirepaint.errors import PageFailed
from wirepaint.pages.prepare import PreparedPage
from wirepaint.pages.servers import MOST_HOSTS, addresses, numbered, servers


def page(*seen: tuple[str, int | None]) -> PreparedPage:
    """A page that asks these hosts, answered by servers of these numbers in the recording."""
    origins = dict.fromkeys(("https", host, 443) for host, _ in seen)
    resources = [{"url": f"https://{host}/", "recorded": {"server": number}} for host, number in seen]
    return PreparedPage("p", "https://a.test/", list(origins), [], resources)


def test_each_host_is_a_server_of_its_own_where_the_recording_says_nothing() -> None:
    found = addresses(page(("a.test", None), ("b.test", None), ("a.test", None)))
    assert found == {"a.test": "10.65.0.1", "b.test": "10.65.1.1"}


def test_hosts_on_one_recorded_address_share_a_server() -> None:
    seen = page(("a.test", 0), ("b.test", 1), ("c.test", 0), ("d.test", None))
    assert servers(seen) == [["a.test", "c.test"], ["b.test"], ["d.test"]]
    assert addresses(seen) == {
        "a.test": "10.65.0.1",
        "c.test": "10.65.0.2",
        "b.test": "10.65.1.1",
        "d.test": "10.65.2.1",
    }


def test_a_host_on_two_addresses_joins_their_servers() -> None:
    seen = page(("a.test", 0), ("b.test", 1), ("c.test", 2), ("c.test", 1), ("b.test", 0), ("d.test", 3))
    assert servers(seen) == [["a.test", "b.test", "c.test"], ["d.test"]]


def test_together_all_hosts_are_one_server() -> None:
    found = addresses(page(("a.test", 0), ("b.test", 1), ("c.test", None)), together=True)
    assert found == {"a.test": "10.65.0.1", "b.test": "10.65.0.2", "c.test": "10.65.0.3"}


def test_many_servers_have_networks_of_their_own_and_many_hosts_of_one_server_are_refused() -> None:
    many = page(*((f"h{number}.test", None) for number in range(5_000)))
    found = addresses(many)
    assert len({ip_network(f"{address}/24", strict=False) for address in found.values()}) == 5_000
    assert found["h256.test"] == "10.66.0.1"
    most = page(*((f"h{number}.test", None) for number in range(MOST_HOSTS)))
    assert addresses(most, together=True)["h253.test"] == "10.65.0.254"
    with pytest.raises(PageFailed, match="5000 hosts are one server, of which at most 254"):
        addresses(many, together=True)


def test_addresses_of_a_recording_become_numbers_that_do_not_tell_them() -> None:
    seen = ["1.1.1.1", "[2606:4700::1111]", "1.1.1.1", "::ffff:1.1.1.1", "8.8.8.8"]
    assert numbered(seen) == [0, 1, 0, 0, 2]


def test_proxies_local_servers_and_what_is_no_address_say_nothing_of_a_server() -> None:
    assert numbered(["127.0.0.1", "10.0.0.1", "::1", "", "a.test", "192.168.1.1"]) == [None] * 6
