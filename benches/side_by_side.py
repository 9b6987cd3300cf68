"""Runs of light users side by side, beside the same runs one after the other.

    sudo .venv/bin/python benches/side_by_side.py [--json FILE]

Carries `side_by_side.toml` out both ways on the testbed. Prints how many times as fast it is side by side,
how many tries were repeated, and by how much the load times of one visit differ. Two runs of one visit differ
anyway; `--twice` says by how much: it carries them out one after the other both times.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from wirepaint import metrics
from wirepaint.results import Results

FILE = Path(__file__).with_suffix(".toml")
ALONE = """
from wirepaint.runners.testbed import side_by_side
side_by_side.MOST = 1
from wirepaint.cli import main
main()
"""
_OF_A_VISIT = ["congestion", "visit"]


def carried_out(folder: Path, *, alone: bool) -> tuple[float, pl.DataFrame, int]:
    """Seconds, load times of the runs that count, and the number of repeats."""
    command = [sys.executable, "-c", ALONE] if alone else [Path(sys.executable).with_name("wirepaint")]
    began = time.monotonic()
    ended = subprocess.run([*command, "run", FILE, "-o", folder, "--quiet"], stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    results = Results.open(folder)
    if results.runs("done").height < results.runs().height:
        sys.exit(ended.returncode or "not all runs are done")
    attempts = int(results.runs("done")["attempts"].sum())
    frame = metrics.table(results).filter(~pl.col("warmup"), pl.col("verdict") == "valid")
    return seconds, frame.select(*_OF_A_VISIT, "page_load_time"), attempts - results.runs("done").height


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--twice", action="store_true", help="one after the other both times")
    parser.add_argument("--json", type=Path, help="file for the numbers as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        alone_s, alone, _ = carried_out(Path(scratch) / "alone", alone=True)
        other_s, other, repeats = carried_out(Path(scratch) / "other", alone=options.twice)
    pairs = alone.join(other, on=_OF_A_VISIT)
    apart = (pairs["page_load_time_right"] / pairs["page_load_time"] - 1) * 100
    found = {
        "alone_s": alone_s,
        "other_s": other_s,
        "faster": alone_s / other_s,
        "valid": [alone.height, other.height],
        "repeats": repeats,
        "apart_percent": {
            "mean": apart.mean(),
            "median": apart.abs().median(),
            "p90": apart.abs().quantile(0.9),
        },
    }
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    how = "one after the other again" if options.twice else "side by side"
    print(f"one after the other: {alone_s:.0f} s, {alone.height} runs count")
    print(f"{how}: {other_s:.0f} s, {other.height} runs count, {repeats} repeated")
    print(f"{alone_s / other_s:.1f} times as fast")
    if pairs.is_empty():
        sys.exit("no visit counts both times")
    print(
        f"load times of one visit: {apart.mean():+.2f} % in the mean; apart by {apart.abs().median():.2f} % "
        f"in the median, by {apart.abs().quantile(0.9):.2f} % in the 90th percentile of {pairs.height}"
    )


if __name__ == "__main__":
    main()
