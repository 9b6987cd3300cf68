"""How often intervals hold the truth, and how often `--until decided` is wrong, on synthetic visits.

    python benches/coverage.py [--sets 2000] [--json]

Visits of a page are its size times noise of one of three shapes:

``calm``    lognormal, spread 3 %
``skewed``  a fixed time and an exponential one of 3 %
``tail``    calm, and 1 visit in 20 is slower, by 20 % in the mean

Each interval is one of 95 %. A share of 2,000 sets has a standard error of 0.5 points.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

from wirepaint.evaluation.visits import Until
from wirepaint.statistics import Interval, compare, mean, median, ranks
from wirepaint.statistics.comparison import TOO_FEW

SIZES = (900.0, 2400.0, 6100.0)
VISITS = (5, 6, 7, 8, 11, 16, 25)
MOST = 64
Noise = Callable[[np.random.Generator, int], np.ndarray]


def calm(random: np.random.Generator, n: int) -> np.ndarray:
    return random.lognormal(0, 0.03, n)


def skewed(random: np.random.Generator, n: int) -> np.ndarray:
    return 1 + random.exponential(0.03, n)


def tail(random: np.random.Generator, n: int) -> np.ndarray:
    return calm(random, n) * (1 + (random.random(n) < 0.05) * random.exponential(0.2, n))


SHAPES: dict[str, Noise] = {"calm": calm, "skewed": skewed, "tail": tail}


def holds(interval: Interval, truth: float) -> bool:
    return interval.low is not None and interval.high is not None and interval.low <= truth <= interval.high


def coverage(sets: int) -> Iterator[dict[str, Any]]:
    """Share of sets whose interval holds the truth, by kind, shape, pages and visits."""
    for shape, noise in SHAPES.items():
        many = noise(np.random.default_rng(0), 4_000_000)
        of_mean, of_median = float(many.mean()), float(np.median(many))
        for pages in (1, 3):
            for visits in VISITS:
                random = np.random.default_rng(visits)
                held = {"mean": 0, "median": 0, "difference": 0}
                for _ in range(sets):
                    first, second = (
                        [size * noise(random, visits) for size in SIZES[:pages]] for _ in range(2)
                    )
                    size = float(np.mean(SIZES[:pages]))
                    held["mean"] += holds(mean(*(values.tolist() for values in first)), of_mean * size)
                    held["median"] += holds(median(*(values.tolist() for values in first)), of_median * size)
                    logs = [(np.log(a), np.log(b)) for a, b in zip(first, second, strict=True)]
                    held["difference"] += holds(ranks.shift(logs), 0.0)
                for kind, number in held.items():
                    yield {"kind": kind, "shape": shape, "pages": pages, "visits": visits,
                           "held": number / sets}  # fmt: skip


def evaluation(random: np.random.Generator, effect: float, noise: Noise) -> pl.DataFrame:
    """Load times of ``MOST`` visits: two levels of three pages on two networks."""
    rows = [
        pl.DataFrame({"visit": np.arange(1, MOST + 1), "page_load_time": size * level * noise(random, MOST)})
        .with_columns(network=pl.lit(network), congestion=pl.lit(name), page=pl.lit(f"p{size:.0f}"))
        for network in ("lte", "cable")
        for name, level in (("a", 1.0), ("b", 1 + effect))
        for size in SIZES
    ]  # fmt: skip
    return pl.concat(rows).with_columns(warmup=False)


def until_decided(sets: int, effect: float, noise: Noise) -> dict[str, Any]:
    """Shares of evaluations by their end; ``bias`` in points of the overall difference."""
    looks = Until(most=MOST).looks(8)
    random = np.random.default_rng(7)
    wrong = decided = 0
    visits, found = [], []
    for _ in range(sets):
        frame = evaluation(random, effect, noise)
        rows, look = [], 0
        for look in looks:
            rows = compare(
                frame.filter(pl.col("visit") <= look), "congestion", ["page-load-time"],
                by_page=False, looks=len(looks),
            )  # fmt: skip
            if all(row.verdict != TOO_FEW for row in rows):
                break
        direction = "slower" if effect > 0 else None
        wrong += any(row.verdict in ("faster", "slower") and row.verdict != direction for row in rows)
        decided += all(row.verdict != TOO_FEW for row in rows)
        visits.append(look)
        found += [row.interval.value - effect for row in rows if not row.conditions]
    return {
        "effect": effect, "wrong": wrong / sets, "decided": decided / sets,
        "visits": float(np.mean(visits)), "bias_points": 100 * float(np.mean(found)),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = list(coverage(options.sets))
    ends = [
        {"shape": shape} | until_decided(max(1, options.sets // 5), effect, SHAPES[shape])
        for shape in ("calm", "tail")
        for effect in (0.0, 0.01, 0.02, 0.04)
    ]
    if options.json:
        print(json.dumps({"coverage": rows, "until_decided": ends}, indent=1))
        return
    print("interval    shape   pages  " + "  ".join(f"{visits:>5}" for visits in VISITS) + "  visits")
    for start in range(0, len(rows), 3 * len(VISITS)):
        block = rows[start : start + 3 * len(VISITS)]
        for kind in ("mean", "median", "difference"):
            of_kind = [row for row in block if row["kind"] == kind]
            shares = "  ".join(f"{100 * row['held']:5.1f}" for row in of_kind)
            print(f"{kind:11} {of_kind[0]['shape']:7} {of_kind[0]['pages']:>5}  {shares}")
    print("\nuntil decided   effect  wrong  decided  visits  bias")
    for end in ends:
        print(
            f"{end['shape']:14} {end['effect']:7.0%} {end['wrong']:6.1%} {end['decided']:8.1%} "
            f"{end['visits']:7.1f} {end['bias_points']:+5.2f} points"
        )


if __name__ == "__main__":
    main()
