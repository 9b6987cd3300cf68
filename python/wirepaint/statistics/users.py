"""The users of an evaluation by their names: how their pages loaded, and what they took of the link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table

from wirepaint import metrics as measured
from wirepaint.results import Results, examined
from wirepaint.statistics import by_scenario
from wirepaint.statistics.by_scenario import cell
from wirepaint.statistics.intervals import Interval, median

OF_VISITS = ("page-load-time", "first-contentful-paint", "load-goodput", "bottleneck-share")
"""Metrics of a visit, with their heads on the terminal."""
OF_RUN = ("jain-index-of-users", "link-utilisation", "queueing-delay-p50", "drop-rate")
_TAKEN = (
    *("sent_packets", "sent_bytes", "received_packets", "received_bytes"),
    *("connections", "retransmitted_segments"),
)
HEADS = dict(zip(OF_VISITS, ("load time", "first paint", "goodput", "share"), strict=True))


@dataclass(frozen=True)
class UserRow:
    """The users of one user agent in one scenario.

    ``values`` are medians over the ``runs``, with 95 % intervals, by metric. The others are means of one user
    in one run; packets and bytes are those of IP at the bottleneck. Behind a PEP they are None: what crosses
    it there belongs to no user. Where no trace was kept, all of them are None.
    """

    backend: str
    scenario: str
    group: str
    """Whom it shares its runs with; its own name if it is alone."""
    user_agent: str
    users: int
    runs: int
    visits: int
    """Of all users and runs."""
    values: dict[str, Interval]
    sent_packets: float | None
    sent_bytes: float | None
    received_packets: float | None
    received_bytes: float | None
    connections: float | None
    retransmitted_segments: float | None
    overhead: float | None
    """Received IP bytes that are not the browser's, as a share of all."""

    @property
    def name(self) -> str:
        return self.user_agent

    @property
    def packets(self) -> float | None:
        """Both ways."""
        if self.received_packets is None or self.sent_packets is None:
            return None
        return self.received_packets + self.sent_packets


def rows(results: Results, verdicts: Sequence[str] = ("valid",)) -> list[UserRow]:
    """One row per scenario and user agent, in the order of the evaluation file; empty without users."""
    return of_table(results, measured.table(results, verdicts, (*OF_VISITS, *OF_RUN)))


def of_table(results: Results, table: pl.DataFrame) -> list[UserRow]:
    """The same from :func:`wirepaint.metrics.table`."""
    found = []
    agents = results.manifest["evaluation"]["user_agents"]
    asked = {agent["name"]: agent["count"] for agent in agents}
    groups = {agent["name"]: agent["group"] for agent in agents}
    counted = table.filter(~pl.col("warmup") & ~pl.col("of_flows") & (pl.col("state") == "done"))
    for (backend, scenario, user_agent), group in counted.group_by(
        "backend", "scenario", "user_agent", maintain_order=True
    ):
        known = {
            name: group[measured.get(name).column].drop_nulls().to_list() for name in (*OF_VISITS, *OF_RUN)
        }
        keys = group["run_key"].unique(maintain_order=True).to_list()
        taken = [_taken(results, key, str(user_agent)) for key in keys if results.has_trace(key)]
        numbers: dict[str, Any] = dict.fromkeys((*_TAKEN, "payload_bytes"))
        users, visits = asked.get(user_agent, 1), len(group) * asked.get(user_agent, 1)
        if taken:
            found_users = pl.concat(taken)
            numbers = found_users.select(pl.exclude("user", "visits")).mean().row(0, named=True)
            users, visits = found_users["user"].n_unique(), int(found_users["visits"].sum())
        payload, received = numbers.pop("payload_bytes"), numbers["received_bytes"]
        found.append(
            UserRow(
                backend=str(backend),
                scenario=str(scenario),
                group=groups.get(user_agent) or str(user_agent),
                user_agent=str(user_agent),
                users=users,
                runs=len(keys),
                visits=visits,
                values={name: median(numbers) for name, numbers in known.items() if numbers},
                overhead=1 - payload / received if received else None,
                **numbers,
            )
        )
    return found


def _taken(results: Results, key: str, user_agent: str) -> pl.DataFrame:
    """What each user of a user agent took of the link in a run."""
    visits = measured.hosts(partial(results.trace, key)).filter(pl.col("user_agent") == user_agent)
    every = results.trace(key, "connection")
    connections = every.filter(pl.col("objects").is_not_null())
    of_visits = (
        connections.group_by(pl.col("visit").fill_null(0))
        .agg(
            connections=pl.len(),
            payload_bytes=pl.col("bytes_received").sum(),
            retransmitted_segments=pl.col("retransmitted_segments").sum(),
        )
        .join(visits, on="visit", how="right")
        .group_by("user", "host", maintain_order=True)
        .agg(pl.col("connections", "payload_bytes", "retransmitted_segments").sum(), visits=pl.len())
    )
    counted = ("sent_packets", "sent_bytes", "received_packets", "received_bytes")
    clients = results.trace(key, "client").select(*counted, "host")
    if (every["protocol"] == "pep").any():
        clients = clients.clear()
    return of_visits.join(clients, on="host", how="left").drop("host")


def command(results_dir: Path, json: bool = False, *, suspect: bool = False) -> None:
    """``wirepaint users``: prints a table per scenario, or with ``json`` one JSON document, to stdout."""
    results = examined(results_dir)
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    by_scenario.show(results, "users", rows(results, verdicts), OF_RUN, _table, verdicts, json=json)


def _table(of_scenario: Sequence[UserRow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("user", no_wrap=True)
    for head in (*HEADS.values(), "received", "packets", "conns", "resent", "extra"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in of_scenario:
        name = row.user_agent if row.users == 1 else f"{row.user_agent} x {row.users}"
        table.add_row(
            name,
            *(cell(row.values.get(metric), metric) for metric in HEADS),
            _said(row.received_bytes, lambda bytes_: f"{bytes_ / 1e6:,.2f} MB"),
            _said(row.packets, lambda packets: f"{packets:,.0f}"),
            _said(row.connections, lambda number: f"{number:.1f}"),
            _said(row.retransmitted_segments, lambda number: f"{number:.1f}"),
            _said(row.overhead, lambda share: f"{100 * share:.1f} %"),
        )
    return table


def _said(number: float | None, text: Callable[[float], str]) -> str:
    return "-" if number is None else text(number)
