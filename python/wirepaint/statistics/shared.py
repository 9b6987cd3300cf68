"""Who gains and who pays: what a change of transport does to each who shares a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirepaint.results import Results
from wirepaint.statistics.comparison import Comparison
from wirepaint.statistics.wording import percent

OF_USERS, OF_FLOWS = "page-load-time", "goodput"
"""What a change is told of: of users, and of the flows beside them."""


def together(results: Results) -> dict[str, str]:
    """The group of each user that shares runs, and so a path, by name."""
    agents = results.manifest["evaluation"]["user_agents"]
    return {agent["name"]: agent["group"] for agent in agents if agent["group"] is not None}


def sentences(rows: Sequence[Comparison], together: Mapping[str, str]) -> list[str]:
    """One sentence for each candidate and condition in which several users, or users and flows, share a path.

    ``together`` has the groups of the users that do; others have their runs to themselves and the flows in
    them.
    Such as "fld in place of cubic on lte: ann load time -3.1 % (faster); bob load time +0.4 % (same)."
    """
    shared: dict[tuple[str, ...], list[Comparison]] = {}
    for row in rows:
        if row.metric in (OF_USERS, OF_FLOWS) and row.conditions:
            others = [value for axis, value in row.conditions.items() if axis != "user_agent"]
            shared.setdefault((row.candidate.level, row.baseline.level, " / ".join(others)), []).append(row)
    said = []
    for (candidate, baseline, where), some in shared.items():
        flows = list(_flows(some))
        for users in _groups(some, together) or [[]]:
            if len(parts := [*users, *flows]) > 1:
                place = f" on {where}" if where else ""
                said.append(f"{candidate} in place of {baseline}{place}: {'; '.join(parts)}.")
    return said


def _groups(rows: Sequence[Comparison], together: Mapping[str, str]) -> list[list[str]]:
    """What is told of users, by those that share runs."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.metric == OF_USERS and row.page is None:
            name = row.conditions.get("user_agent", "the user")
            groups.setdefault(together.get(name, name), []).append(_part(name, "load time", row))
    return list(groups.values())


def _flows(rows: Sequence[Comparison]) -> Iterator[str]:
    of_flows = [row for row in rows if row.metric == OF_FLOWS]
    by_name = [row for row in of_flows if row.page is not None] or of_flows
    for row in by_name:
        yield _part(f"flow {row.page or row.pages[0]}", "goodput", row)


def _part(who: str, what: str, row: Comparison) -> str:
    change = "?" if row.shift_rel is None else f"{percent(row.shift_rel.value)} %"
    return f"{who} {what} {change} ({row.verdict})"
