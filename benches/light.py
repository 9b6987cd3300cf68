"""Light users beside Chromium, page by page: prints the page load times and how well they agree.

    .venv/bin/wirepaint run benches/light_judged.toml
    .venv/bin/python benches/light.py results/light_judged

`light.toml` does the same with the shipped pages, on which the page model was made.

The evaluation has two users on the testbed, ``chromium`` and ``light``, with the same pages and networks. A
point is one page in one set of conditions, with the median over its visits by each. Asked for: a median error
of the page load time of at most 5 % and a Spearman of at least 0.97; the exit code says whether they hold.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from wirepaint import metrics
from wirepaint.errors import UsageError, WirepaintError
from wirepaint.results import Results
from wirepaint.statistics.agreement import REAL, SIMULATED, agree, pairs, read

METRICS = ("page-load-time", "first-contentful-paint")
MOST_ERROR, LEAST_RHO = 0.05, 0.97
USERS = {"chromium": REAL, "light": SIMULATED}


def sides(frame: pl.DataFrame) -> pl.DataFrame:
    """The table of metrics with the two users as the two sides of an agreement."""
    if missing := sorted(USERS.keys() - set(frame["user_agent"])):
        raise UsageError("results", f"no visit of {missing[0]} that counts", "visits of chromium and light")
    known = frame.filter(pl.col("user_agent").is_in(list(USERS)))
    return known.with_columns(backend=pl.col("user_agent").replace(USERS), user_agent=pl.lit("user"))


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if "--help" in sys.argv else 2
    try:
        frame = sides(read(Results.open(Path(sys.argv[1]))))
        found = agree(frame, METRICS)
    except WirepaintError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{'network':16} {'http':5} {'page':16} {'Chromium':>9} {'light':>9} {'error':>8}")
    for row in pairs(frame, metrics.get(METRICS[0])).sort("network", "http", "page").to_dicts():
        values = [row[REAL], row[SIMULATED], row["error"]]
        cells = "{:9.0f} {:9.0f} {:+8.1%}".format(*values) if None not in values else "not by both"
        print(f"{row['network']:16} {row['http']:5} {row['page']:16} {cells}")
    for row in found:
        points, rho, median, p90, bias, _ = row.cells
        errors = f"median error {median}, 90th percentile {p90}, bias {bias}"
        print(f"{row.title}: {points} points, Spearman {rho}, {errors}")
    load = found[0]
    holds = load.median_error is not None and load.median_error <= MOST_ERROR
    return 0 if holds and load.rho is not None and load.rho >= LEAST_RHO else 1


if __name__ == "__main__":
    sys.exit(main())
