"""Who gains and who pays: what a change of transport does to each who shares a path."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from wirepaint.results import Results
from wirepaint.statistics.comparison import Comparison
from wirepaint.statistics.wording import percent

OF_USERS, OF_FLOWS = "page-load-time", "goodput"
"""What a change is told of: of users, and of the flows beside them."""


def together(results: Results) -> frozenset[str]:
    """Names of the users that share runs, and so a path."""
    agents = results.manifest["evaluation"]["user_agents"]
    return frozenset(agent["name"] for agent in agents if agent["group"] is not None)


def sentences(rows: Sequence[Comparison], together: Collection[str]) -> list[str]:
    """One sentence for each candidate and condition in which several users, or users and flows, share a path.

    ``together`` are the users that do; others have their runs to themselves and the flows in them.
    Such as "fld in place of cubic on lte: ann load time -3.1 % (faster); bob load time +0.4 % (same)."
    """
    shared: dict[tuple[str, ...], list[Comparison]] = {}
    for row in rows:
        if row.metric in (OF_USERS, OF_FLOWS) and row.conditions:
            others = [value for axis, value in row.conditions.items() if axis != "user_agent"]
            shared.setdefault((row.candidate.level, row.baseline.level, " / ".join(others)), []).append(row)
    said = []
    for (candidate, baseline, where), group in shared.items():
        parts = [*_users(group, together), *_flows(group)]
        if len(parts) > 1:
            place = f" on {where}" if where else ""
            said.append(f"{candidate} in place of {baseline}{place}: {'; '.join(parts)}.")
    return said


def _users(rows: Sequence[Comparison], together: Collection[str]) -> Iterator[str]:
    beside_flows = any(row.metric == OF_FLOWS for row in rows)
    for row in rows:
        name = row.conditions.get("user_agent", "the user")
        if row.metric == OF_USERS and row.page is None and (beside_flows or name in together):
            yield _part(name, "load time", row)


def _flows(rows: Sequence[Comparison]) -> Iterator[str]:
    of_flows = [row for row in rows if row.metric == OF_FLOWS]
    by_name = [row for row in of_flows if row.page is not None] or of_flows
    for row in by_name:
        yield _part(f"flow {row.page or row.pages[0]}", "goodput", row)


def _part(who: str, what: str, row: Comparison) -> str:
    change = "?" if row.shift_rel is None else f"{percent(row.shift_rel.value)} %"
    return f"{who} {what} {change} ({row.verdict})"
