"""Groups the hosts of a page into servers, and gives them addresses.

Congestion controls that share state among connections identify a server by the network of its address
(``congestion/include/cc_group.h``). A host is a server of its own, unless the recording saw several at
one address. In both back ends each server has a network /24, and each host an address in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wirepaint.errors import PageFailed

if TYPE_CHECKING:
    from wirepaint.pages.prepare import PreparedPage

MOST_HOSTS = 254
"""Host addresses in a network /24."""
_FIRST = IPv4Address("10.65.0.0")


def numbered(addresses: Iterable[str]) -> list[int | None]:
    """A number for each address of a recording, equal for equal addresses; it hides the address.

    None if it does not identify a server: no address, or one that is not public, such as a proxy's.
    """
    known: dict[str, int] = {}
    numbers: list[int | None] = []
    for text in addresses:
        try:
            address = ip_address(text.strip("[]"))
        except ValueError:
            numbers.append(None)
            continue
        address = getattr(address, "ipv4_mapped", None) or address
        numbers.append(known.setdefault(str(address), len(known)) if address.is_global else None)
    return numbers


def servers(page: PreparedPage) -> list[list[str]]:
    """The hosts of each server, in the order in which the page first names them."""
    found = {host: [host] for _, host, _ in page.origins}
    first: dict[int, str] = {}
    for resource in page.resources:
        number, host = resource.get("recorded", {}).get("server"), urlsplit(resource["url"]).hostname or ""
        if number is None:
            continue
        ours, theirs = found[first.setdefault(number, host)], found[host]
        if ours is not theirs:
            ours += theirs
            found |= dict.fromkeys(theirs, ours)
    return list({id(hosts): hosts for hosts in found.values()}.values())


def addresses(page: PreparedPage, *, together: bool = False, first: int = 0) -> dict[str, str]:
    """One address per host; ``together`` makes all hosts one server. Raises ``PageFailed``.

    ``first`` is the number of the page's first server: that of servers of other pages of the run.
    """
    groups = servers(page)
    if together:
        groups = [[host for hosts in groups for host in hosts]]
    if (most := max(map(len, groups))) > MOST_HOSTS:
        raise PageFailed(f"{most} hosts are one server, of which at most {MOST_HOSTS} can have an address")
    return {
        host: str(_FIRST + (server << 8) + place)
        for server, hosts in enumerate(groups, first)
        for place, host in enumerate(hosts, 1)
    }
