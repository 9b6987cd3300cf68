from __future__ import annotations

import polars as pl

from wirepaint.metrics import Missing, Trace, metric


@metric(
    title="Jain's index of the users",
    unit="1",
    better="higher",
    source="RFC 5166 section 2.3; HTTP-AE IV-B",
    needs=("page", "chunk"),
    over="run",
)
def jain_index_of_users(trace: Trace) -> float:
    """Fairness among the users' goodputs while they load: 1 if they are equal, 1/n if one of n has all.

    Of a user with several visits, the bytes and the times of all.
    """
    page = trace("page")
    if page["user_agent"].n_unique() < 2:
        raise Missing("the run has a single user")
    visits = page.select("visit", "user_agent", begin="navigation_start", end="load_event")
    if visits["end"].null_count():
        raise Missing("a page did not load")
    received = (
        trace("chunk")
        .join(visits, on="visit")
        .filter(pl.col("time").is_between(pl.col("begin"), pl.col("end")))
        .group_by("visit")
        .agg(pl.col("bytes").sum())
    )
    rates = (
        visits.join(received, on="visit", how="left")
        .group_by("user_agent")
        .agg(rate=pl.col("bytes").fill_null(0).sum() / (pl.col("end") - pl.col("begin")).sum())["rate"]
    )
    squares = float((rates * rates).sum())
    if not squares:
        raise Missing("no user received a byte")
    return float(rates.sum()) ** 2 / (len(rates) * squares)
