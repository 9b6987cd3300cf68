from __future__ import annotations

import math

from wirepaint.metrics import Missing, Trace, metric, of_visit
from wirepaint.metrics._metric import rows
from wirepaint.metrics._receiving import received_bytes


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
    page = list(rows(trace("page"), "visit", "user_agent", "navigation_start", "load_event"))
    if len({user for _, user, _, _ in page}) < 2:
        raise Missing("the run has a single user")
    if any(end is None for *_, end in page):
        raise Missing("a page did not load")
    received: dict[str, int] = {}
    lasted: dict[str, int] = {}
    for visit, user, begin, end in page:
        received[user] = received.get(user, 0) + received_bytes(of_visit(trace, visit), begin, end)
        lasted[user] = lasted.get(user, 0) + end - begin
    if not all(lasted.values()):
        raise Missing("a visit ended as it began")
    rates = [received[user] / lasted[user] for user in lasted]
    squares = math.fsum(rate * rate for rate in rates)
    if not squares:
        raise Missing("no user received a byte")
    return math.fsum(rates) ** 2 / (len(rates) * squares)
