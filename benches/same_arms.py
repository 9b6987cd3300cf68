"""One congestion control under two names: how often an evaluation finds a difference that is none.

    wirepaint run benches/same_arms.toml                          60 visits of each of three pages (testbed)
    python benches/same_arms.py --keep results/same_arms          writes their load times to benches/data
    python benches/same_arms.py [--synthetic] [--json]            resamples 2,000 evaluations

An evaluation of 5, 8 or 11 visits draws so many of the 60 rounds, without replacement, and takes each round
whole: both names and all pages of it. So whatever visits of a round have in common stays in. At most 5 in 100
evaluations may give a direction; else the exit code is 1. ``--synthetic`` takes noise in place of measured
load times, with a disturbance that visits of a round share.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl

from wirepaint import metrics
from wirepaint.results import Results
from wirepaint.statistics import compare
from wirepaint.statistics.comparison import MIXED, TOO_FEW

KEPT = Path(__file__).parent / "data/same_arms.csv"
VISITS = (5, 8, 11)
RESAMPLES = 2000
MOST_FALSE = 0.05
COLUMNS = ("network", "congestion", "page", "visit", "page_load_time")


def keep(results: Path) -> None:
    """Writes the load times of the valid visits to the repository."""
    frame = metrics.table(Results.open(results)).filter(~pl.col("warmup"))
    KEPT.parent.mkdir(exist_ok=True)
    frame.select(COLUMNS).write_csv(KEPT, float_precision=3)


def synthetic(random: np.random.Generator, rounds: int = 60) -> pl.DataFrame:
    """Three pages under two names: a spread of 3 % and a round's own level of 2 %."""
    levels = random.lognormal(0, 0.02, rounds)
    return pl.concat(
        pl.DataFrame(
            {
                "visit": range(1, rounds + 1),
                "page_load_time": size * levels * random.lognormal(0, 0.03, rounds),
            }
        ).with_columns(network=pl.lit("lte"), congestion=pl.lit(name), page=pl.lit(f"p{size:.0f}"))
        for name in ("one", "two")
        for size in (900.0, 2400.0, 6100.0)
    ).select(COLUMNS)


def words(frame: pl.DataFrame, visits: int, random: np.random.Generator) -> list[str]:
    """The primary verdicts of an evaluation of some of the rounds."""
    rounds = random.choice(frame["visit"].unique().to_numpy(), visits, replace=False)
    drawn = frame.filter(pl.col("visit").is_in(rounds.tolist()))
    rows = compare(drawn, "congestion", ["page-load-time"], "one", by_page=False)
    return [row.verdict for row in rows if row.is_primary]


def shares(frame: pl.DataFrame) -> list[dict[str, float]]:
    """Share of evaluations with a direction, that are mixed, and that are the same throughout, by visits."""
    found = []
    for visits in VISITS:
        random = np.random.default_rng(visits)
        drawn = [words(frame, visits, random) for _ in range(RESAMPLES)]
        false = sum(bool(set(each) - {"same", MIXED, TOO_FEW}) for each in drawn)
        found.append(
            {
                "visits": visits,
                "false": false / RESAMPLES,
                "mixed": sum(MIXED in each for each in drawn) / RESAMPLES,
                "same": sum(set(each) == {"same"} for each in drawn) / RESAMPLES,
            }
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="RESULTS")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.keep:
        keep(options.keep)
    if not options.synthetic and not KEPT.exists():
        parser.error(f"{KEPT} is not measured yet: wirepaint run benches/same_arms.toml, then --keep")
    frame = synthetic(np.random.default_rng(1)) if options.synthetic else pl.read_csv(KEPT)
    found = shares(frame)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print("visits  a direction  mixed   same")
        for row in found:
            print(f"{row['visits']:6} {row['false']:12.1%} {row['mixed']:6.1%} {row['same']:6.1%}")
    return int(any(row["false"] > MOST_FALSE for row in found))


if __name__ == "__main__":
    sys.exit(main())
