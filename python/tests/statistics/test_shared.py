"""Who gains and who pays is told of those who share a path, and of nobody else."""

from __future__ import annotations

import polars as pl
import pytest

from wirepaint.statistics import compare, shared


@pytest.fixture
def frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "congestion": congestion,
            "network": "lte",
            "user_agent": user,
            "page": "photos",
            "visit": visit,
            "page_load_time": 1000.0 + visit + (100 if (congestion, user) == ("fld", "bob") else 0),
        }
        for congestion in ("cubic", "fld")
        for user in ("ann", "bob")
        for visit in range(8)
    )


def test_users_of_one_path_are_told_together(frame: pl.DataFrame) -> None:
    rows = compare(frame, "congestion", ["page-load-time"])
    [told] = shared.sentences(rows, {"ann": "home", "bob": "home"})
    assert told == (
        "fld in place of cubic on lte: ann load time +0.0 % (same); bob load time +10.0 % (slower)."
    )


def test_users_with_a_path_each_pay_for_nobody(frame: pl.DataFrame) -> None:
    assert shared.sentences(compare(frame, "congestion", ["page-load-time"]), {}) == []


def test_users_of_two_groups_share_no_path(frame: pl.DataFrame) -> None:
    rows = compare(frame, "congestion", ["page-load-time"])
    assert shared.sentences(rows, {"ann": "home", "bob": "office"}) == []
