"""TCP sockets of a namespace as the kernel reports them (sock_diag(7), INET_DIAG).

For programs that cannot ask about their own sockets, such as a proxy; our own parts can.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass

from pyroute2 import DiagSocket

ESTABLISHED, LISTEN = 1, 10
"""States (linux/tcp_states.h)."""
_INFO, _CONGESTION = 1 << 1, 1 << 3
"""The parts to report: INET_DIAG_INFO and INET_DIAG_CONG (linux/inet_diag.h)."""


@dataclass(frozen=True)
class Ends:
    """Addresses and ports of a connection."""

    local_address: str
    local_port: int
    remote_address: str
    remote_port: int


@dataclass(frozen=True)
class Report:
    """What the kernel says of a socket."""

    ends: Ends
    state: int
    congestion: str | None
    retransmitted: int
    """Segments."""
    min_rtt_us: int | None
    mss: int
    """Of segments that it sends, in bytes."""


class Sockets:
    """Asks about the TCP sockets of the namespace in which it was made, wherever it is called from."""

    def __init__(self) -> None:
        self._netlink = DiagSocket()
        self._netlink.bind()

    def close(self) -> None:
        """Closes the netlink socket."""
        self._netlink.close()

    def reports(self, *states: int) -> Iterator[Report]:
        """Every TCP socket over IPv4 in one of the states."""
        found = self._netlink.get_sock_stats(
            family=socket.AF_INET,
            states=sum(1 << state for state in states),
            extensions=_INFO | _CONGESTION,
        )
        for one in found:
            info = one.get_attr("INET_DIAG_INFO") or {}
            ends = Ends(one["idiag_src"], one["idiag_sport"], one["idiag_dst"], one["idiag_dport"])
            yield Report(
                ends=ends,
                state=one["idiag_state"],
                congestion=one.get_attr("INET_DIAG_CONG"),
                retransmitted=info.get("tcpi_total_retrans", 0),
                min_rtt_us=info.get("tcpi_min_rtt"),
                mss=info.get("tcpi_snd_mss", 0),
            )
