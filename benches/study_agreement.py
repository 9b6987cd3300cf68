"""A study in the simulator beside the same study on the testbed, sweep by sweep.

    wirepaint study run http-ae-2011 --backend simulator --seeds 3 -o SIMULATED
    python benches/study_agreement.py SIMULATED/data [--split COLUMN ...] [--testbed TESTBED/data]

A point is one set of conditions, with the mean of its load times in each folder. Prints, for each sweep that
both have, how far the simulator's points are from the testbed's, and how many claims have one verdict.
``--split`` gives each value of a column a line of its own: ``--split queue``. The measurements of
``wirepaint study run http-ae-2011 --backend testbed --seeds 3`` are kept in benches/data/http-ae-2011;
``--testbed`` takes those of another folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from wirepaint.studies import model, verdicts

STUDY = "http-ae-2011"
KEPT = Path(__file__).parent / "data" / STUDY
LOAD = "load_s"


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    """The measurements of each sweep of which a folder has some."""
    files = sorted(folder.glob("*.csv"))
    return {
        file.stem: pl.read_csv(file, infer_schema_length=None, schema_overrides={"series": pl.String})
        for file in files
    }


def beside(simulated: Path, testbed: Path = KEPT) -> dict[str, pl.DataFrame]:
    """Points of each sweep that both have; ``off`` is how much longer the simulator's loads take."""
    found, (ours, real) = {}, (tables(simulated), tables(testbed))
    for name, sweep in model.load(STUDY)[1].sweeps.items():
        if name not in ours or name not in real or LOAD not in real[name].columns:
            continue
        conditions = [key for key in (*sweep.fixed, *sweep.over, "series") if key in real[name].columns]
        of_testbed, of_simulator = (
            rows.drop_nulls(LOAD).group_by(conditions).agg(pl.mean(LOAD)) for rows in (real[name], ours[name])
        )
        both = of_testbed.join(of_simulator, on=conditions, suffix="_simulated", nulls_equal=True)
        found[name] = both.with_columns(off=pl.col(f"{LOAD}_simulated") / pl.col(LOAD) - 1)
    return found


def words(folder: Path, sweeps: list[str]) -> dict[str, str]:
    """The verdict of each claim about these sweeps."""
    study, measured = model.load(STUDY)[1].part(sweeps, None), tables(folder)
    judged = [*verdicts.judge(study, measured), *verdicts.judge_today(study, measured)]
    return {verdict.id: verdict.word for verdict in judged}


def line(name: str, points: pl.DataFrame) -> str:
    apart = points["off"].abs() * 100
    found = [apart.median(), apart.quantile(0.9, "linear"), apart.max()]
    return f"{name:36} {points.height:7}" + "".join(f" {percent:14.2f} %" for percent in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("simulated", type=Path)
    parser.add_argument("--testbed", type=Path, default=KEPT)
    parser.add_argument("--split", nargs="*", default=[], metavar="COLUMN")
    options = parser.parse_args()
    found = beside(options.simulated, options.testbed)
    if not any(points.height for points in found.values()):
        parser.exit(1, f"{options.testbed} and {options.simulated} have no point in common\n")
    print(f"{'sweep':36} {'points':>7} {'median':>16} {'90th percentile':>16} {'largest':>16}")
    for name, points in found.items():
        split = [column for column in options.split if column in points.columns]
        groups = points.partition_by(split, as_dict=True) if split else {(): points}
        for values, part in sorted(groups.items(), key=lambda group: [str(value) for value in group[0]]):
            pairs = zip(split, values, strict=True)
            print(line(" ".join([name, *(f"{key}={value}" for key, value in pairs)]), part))
    print(line("all", pl.concat(points.select("off") for points in found.values())))
    real, ours = (words(folder, list(found)) for folder in (options.testbed, options.simulated))
    differing = [claim for claim in real if real[claim] != ours[claim]]
    print(f"claims with one verdict: {len(real) - len(differing)} of {len(real)}")
    for claim in differing:
        print(f"    {claim}: {real[claim]} on the testbed, {ours[claim]} in the simulator")


if __name__ == "__main__":
    main()
