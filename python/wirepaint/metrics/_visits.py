"""The visits of a run, and whose they are."""

from __future__ import annotations

import polars as pl

from wirepaint.metrics._flow import group
from wirepaint.metrics._metric import Frame, Trace, group_of, rows


def visits(trace: Trace) -> list[tuple[int, str | None, str | None]]:
    """The visits of a run: number, user agent (without the number of an equal user) and page."""
    found = [
        (visit or 0, user and group(user), page)
        for visit, user, page in rows(trace("page"), "visit", "user_agent", "page")
    ]
    return sorted(found, key=lambda each: each[0])


def hosts(trace: Trace) -> Frame:
    """One row per visit of a run: ``visit``, ``user``, ``user_agent``, ``host`` (its client in the trace)."""
    known = trace("client")["host"].to_list()
    # A user alone in a run is its host "client".
    host = pl.when(pl.col("user_agent").is_in(known)).then("user_agent").otherwise(pl.lit("client"))
    page = trace("page")
    return page.select(
        pl.col("visit").fill_null(0), group_of("user_agent"), user=page["user_agent"], host=host
    )
