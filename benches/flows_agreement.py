"""Flows that share a link: the simulator's goodput beside what the testbed measured.

    .venv/bin/python benches/flows_agreement.py [--runs N]
    .venv/bin/python benches/flows_agreement.py --keep FLOWS JUDGED

Simulates examples/flows.toml and examples/flows_judged.toml N times each (20) and prints, for each link and
congestion control, the mean goodput of a flow on both back ends and how far the simulator is off. Which flows
win differs from run to run, so few runs say anything; the standard deviations are those of runs. Neither root
nor a testbed is needed: the testbed's runs are kept in benches/data/flows-testbed.csv. ``--keep`` writes that
file from the results folders of both examples.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from wirepaint import metrics
from wirepaint.results import Results

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "benches/data/flows-testbed.csv"
EXAMPLES = ("flows", "flows_judged")
WIREPAINT = ROOT / ".venv/bin/wirepaint"
RUN = ["link", "name", "run"]


def goodputs(results: Results, backend: str) -> pl.DataFrame:
    """Mean goodput of the flows of a name, in Mbit/s, for each valid run."""
    found = metrics.table(results)
    counts = (pl.col("backend") == backend) & (pl.col("verdict") == "valid") & ~pl.col("warmup")
    return found.filter(counts).select(
        link="network", name="page", run=pl.col("visit").cast(pl.Int64), goodput="goodput"
    )


def simulated(example: str, runs: int, place: Path) -> pl.DataFrame:
    """An example's runs in the simulator."""
    file = ROOT / f"examples/{example}.toml"
    asked = ["--backend", "simulator", "--repeats", str(runs), "-o", str(place / example), "--quiet"]
    subprocess.run([WIREPAINT, "run", file, *asked], check=True, stdout=subprocess.DEVNULL)
    return goodputs(Results.open(place / example), "simulator")


def beside(real: pl.DataFrame, ours: pl.DataFrame) -> pl.DataFrame:
    """For each link and name: mean and deviation of both, and the simulator's error as a share."""

    def said(frame: pl.DataFrame, of: str) -> pl.DataFrame:
        value = pl.col("goodput")
        return frame.group_by("link", "name", maintain_order=True).agg(
            value.mean().alias(of), value.std().alias(f"{of}_std"), pl.len().alias(f"{of}_runs")
        )

    found = said(real, "testbed").join(said(ours, "simulator"), on=["link", "name"], maintain_order="left")
    return found.with_columns(error=pl.col("simulator") / pl.col("testbed") - 1)


def table(found: pl.DataFrame) -> list[str]:
    """The lines of a table for each link."""
    lines = []
    for (link,), some in found.group_by("link", maintain_order=True):
        off = some["error"].abs()
        lines.append(
            f"{link}: {some['testbed_runs'][0]} runs on the testbed, {some['simulator_runs'][0]} simulated; "
            f"median error {off.median():.1%}, largest {off.max():.1%}"
        )
        for row in some.iter_rows(named=True):
            lines.append(
                f"  {row['name']:10} testbed {row['testbed']:7.3f} ± {row['testbed_std']:.3f}   simulator "
                f"{row['simulator']:7.3f} ± {row['simulator_std']:.3f} Mbit/s   {row['error']:+.1%}"
            )
    return lines


def main(asked: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="simulated runs of each link")
    parser.add_argument("--keep", type=Path, nargs=2, metavar=("FLOWS", "JUDGED"), help="results folders")
    options = parser.parse_args(asked)
    if options.keep:
        found = pl.concat([goodputs(Results.open(folder), "testbed") for folder in options.keep])
        found.sort(RUN).write_csv(KEPT, float_precision=4)
        print(f"{KEPT}: {found.height} rows")
        return
    with tempfile.TemporaryDirectory() as place:
        ours = pl.concat([simulated(example, options.runs, Path(place)) for example in EXAMPLES])
    print("\n".join(table(beside(pl.read_csv(KEPT), ours))))


if __name__ == "__main__":
    sys.exit(main())
