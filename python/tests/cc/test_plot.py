"""The plots of ``cc show --plot``: senders on 10 Mbit/s and 100 ms, a product of 83 packets."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import polars as pl

from wirepaint.cc import plot


def windows(shown: pl.DataFrame, begin: float, end: float) -> list[int]:
    return shown.filter(pl.col("time").is_between(begin, end))["cwnd"].to_list()


def test_bbr_settles_at_twice_the_path_and_drains_it_after_ten_seconds() -> None:
    shown = plot.samples("bbr1")
    assert 160 <= median(windows(shown, 4, 9)) <= 190
    assert min(windows(shown, 10, 11)) == 4


def test_vegas_sees_the_queue_by_its_delay() -> None:
    shown = plot.samples("vegas")
    assert 83 <= median(windows(shown, 22, 23.9)) <= 83 + 8
    falling = windows(shown, 2, 11)
    assert min(after - before for before, after in pairwise(falling)) == -1, "never by a loss"


def test_standard_tcp_meets_a_full_queue_a_loss_a_pause_and_a_timeout() -> None:
    shown = plot.samples("std")
    assert max(windows(shown, 0, 2)) > 2 * plot.BDP
    assert max(windows(shown, 12.8, 13.2)) < 0.6 * min(windows(shown, 11.5, 12))
    silences = [after - before for before, after in pairwise(shown["time"].to_list())]
    assert max(silences) >= plot.PAUSE / plot.SECOND
    assert min(windows(shown, 24, 25)) == 1
