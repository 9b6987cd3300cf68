"""What stolen CPU time does to a page load. It settles the limit of the check ``steal``.

    .venv/bin/python benches/stolen.py RESULTS...

RESULTS are folders of visits on the testbed, at least two of each page in the same conditions, on a machine
whose hypervisor takes CPU time: benches/stolen.toml, and benches/stolen_judged.toml to judge the limit.
Among the visits of a page in the same conditions it compares those with much and with little stolen time.
The first table says by how many seconds a stolen second lengthens the page load, by the share of the load's
time in which the browser computes: 1 if nothing goes on without that CPU, 0 if the page waits for the network
anyway. Visits that another check faults are left out.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from wirepaint.metrics import table
from wirepaint.results import Results

POINT = ("folder", "network", "congestion", "http", "initial_window", "background", "proxy", "page")
COUNTED = ("valid", "suspect")
DRAWS = 2_000
STOLEN = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 9.0)
BUSY = (0.0, 0.4, 1.0, 9.0)
FEWEST = 10
"""Visits of a row of the first table."""


def visits(folder: Path) -> pl.DataFrame:
    """Visits of one user alone: page load time (``load``), stolen CPU time, and the browser's, all in s."""
    results = Results.open(folder)
    runs = results.runs("done").filter(~pl.col("warmup") & (pl.col("backend") == "testbed"))
    hosts = results.all("host", COUNTED).select("run_key", "steal", "cpu_browser")
    loads = table(results, COUNTED, ["page-load-time"]).select(
        "run_key", load=pl.col("page_load_time") / 1000
    )
    content = pl.Series([_others_are_content(reasons) for reasons in runs["reasons"]], dtype=pl.Boolean)
    return (
        runs.filter(content)
        .join(hosts, on="run_key")
        .join(loads.unique("run_key", keep="none").drop_nulls(), on="run_key")
        .with_columns(folder=pl.lit(str(folder)))
    )


def _others_are_content(reasons: str) -> bool:
    return all(r["check"] == "steal" or r["severity"] == "note" for r in json.loads(reasons))


def apart(frame: pl.DataFrame) -> pl.DataFrame:
    """Stolen time (``x``) and page load time (``y``) of each visit less the means of its point.

    Both are shares of the point's mean page load time. ``stolen`` is the share of the visit's own, ``off``
    the distance from the point's median, ``busy`` the browser's share in the point.
    """
    load, steal = pl.col("load"), pl.col("steal")
    return frame.filter(pl.len().over(POINT) >= 2).with_columns(
        x=(steal - steal.mean().over(POINT)) / load.mean().over(POINT),
        y=load / load.mean().over(POINT) - 1,
        stolen=steal / load,
        busy=(pl.col("cpu_browser") / load).median().over(POINT),
        off=load / load.median().over(POINT) - 1,
    )


def slope(frame: pl.DataFrame) -> tuple[float, float, float]:
    """Least squares through the means of the points, with a 95 % interval over drawn points."""
    groups = [(group["x"].to_numpy(), group["y"].to_numpy()) for group in frame.partition_by(*POINT)]
    sums = np.array([(x @ x, x @ y) for x, y in groups])
    drawn = np.random.default_rng(7).integers(len(sums), size=(DRAWS, len(sums)))
    xx, xy = sums[drawn].sum(axis=1).T
    low, high = np.quantile(xy[xx > 0] / xx[xx > 0], (0.025, 0.975))
    return sums[:, 1].sum() / sums[:, 0].sum(), low, high


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path)
    asked = parser.parse_args()
    frame = apart(pl.concat([visits(folder) for folder in asked.results], how="diagonal_relaxed"))
    print("| browser computes | visits | stolen of the load's time, median | a stolen second adds |")
    print("|---|--:|--:|--:|")
    for least, most in pairwise(BUSY):
        rows = within(frame, "busy", least, most)
        if rows.height >= FEWEST:
            found, low, high = slope(rows)
            added = f"{found:.2f} s ({low:.2f} to {high:.2f})"
            print(f"| {words(least, most)} | {rows.height} | {rows['stolen'].median():.1%} | {added} |")
    print("\n| stolen of the load's time | visits | off the median of its page, mean | 90th pct |")
    print("|---|--:|--:|--:|")
    for least, most in pairwise(STOLEN):
        off = within(frame, "stolen", least, most)["off"]
        if off.len():
            p90 = off.abs().quantile(0.9, "linear")
            print(f"| {words(least, most)} | {off.len()} | {off.mean():+.1%} | {p90:.1%} |")


def within(frame: pl.DataFrame, column: str, least: float, most: float) -> pl.DataFrame:
    return frame.filter(pl.col(column).is_between(least, most, closed="left"))


def words(least: float, most: float) -> str:
    return f"{least:.0%} or more" if most > 1 else f"{least:.0%} to {most:.0%}"


if __name__ == "__main__":
    main()
