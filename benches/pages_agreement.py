"""The simulator beside the testbed, page by page: prints the tables and writes docs/guide/agreement.md.

    .venv/bin/python benches/pages_agreement.py JUDGED FITTED [--simulated JUDGED FITTED] [--guide FILE]
    .venv/bin/python benches/pages_agreement.py --kept SIMULATED
    .venv/bin/python benches/pages_agreement.py --check [--guide FILE] [--readme FILE]

JUDGED and FITTED are the results folders of examples/judged.toml and examples/agreement.toml; `make
agreement` carries both out first. ``--simulated`` takes the simulator's visits from two other folders: the
same pages and conditions, simulated again with a newer version. The visits of the judged pages on the testbed
are kept in benches/data/judged-testbed.csv. ``--kept`` compares the simulator with these and prints the
table: what a change of the simulator does to the agreement shows in a minute, without root. SIMULATED is the
folder of

    .venv/bin/wirepaint run examples/judged.toml --backend simulator --no-rehearse -o SIMULATED

``--check`` says whether the README quotes the guide's numbers.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from wirepaint.errors import UsageError, WirepaintError
from wirepaint.metrics import AXES, get
from wirepaint.pages.model import load
from wirepaint.results import Results
from wirepaint.statistics.agreement import REAL, SIMULATED, Agreement, agree, read
from wirepaint.statistics.losses import LIMIT

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs/guide/agreement.md"
README = ROOT / "README.md"
KEPT = ROOT / "benches/data/judged-testbed.csv"
METRICS = ("page-load-time", "first-contentful-paint", "largest-contentful-paint")
HEAD = (
    "| | points | Spearman | median error | 90th pct | bias | same sign | same sign, 2 % or more |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)
WORDS = """\
A point is one page in one set of conditions, with the median over its visits on each back end. Errors are
shares of the testbed's value. The bias is their median with its sign, simulator minus testbed. *Same sign*:
of the differences between two congestion controls that the testbed decided, those with the same sign in the
simulator. [The simulator's guide](simulator.md#agreement) explains more."""


def of_content(frame: pl.DataFrame, folder: Path) -> dict[str, pl.DataFrame]:
    """The rows of pages with recorded bodies and those of shapes, by the pages in ``folder``."""
    bodies = {
        page.name: any(resource.body for resource in page.resources)
        for page in (load(path.parent) for path in sorted(folder.glob("*/page.json")))
    }
    if unknown := sorted(set(frame["page"].drop_nulls()) - set(bodies)):
        raise UsageError("judged results", ", ".join(unknown[:3]), f"pages of {folder}")
    return {
        name: frame.filter(pl.col("page").is_in([page for page, has in bodies.items() if has == wanted]))
        for name, wanted in (("bodies", True), ("shapes", False))
    }


def rows(found: Sequence[Agreement], of: str = "") -> list[str]:
    """A line of the table for each metric."""
    return [
        "| "
        + " | ".join(
            (
                row.title.lower() + (f", {of}" if of else ""),
                *row.cells,
                f"{row.large_same_sign} of {row.large}" if row.large else "\N{EN DASH}",
            )
        )
        + " |"
        for row in found
    ]


def keep(frame: pl.DataFrame, path: Path) -> None:
    """Writes the testbed's visits that count."""
    columns = [*AXES, "visit", *(get(name).column for name in METRICS)]
    counted = frame.filter((pl.col("backend") == REAL) & ~pl.col("warmup") & pl.col(LIMIT).is_null())
    counted.select(columns).sort(columns).write_csv(path, float_precision=1)


def beside_kept(simulated: Results, path: Path) -> pl.DataFrame:
    """The simulator's visits with those of the testbed that :func:`keep` wrote."""
    frame = read(simulated, metrics=METRICS).filter(pl.col("backend") == SIMULATED)
    types = {name: frame.schema[name] for name in pl.scan_csv(path).collect_schema()}
    kept = pl.read_csv(path, schema_overrides=types).with_columns(warmup=pl.lit(False))
    return pl.concat([kept, frame], how="diagonal_relaxed")


def visits(frame: pl.DataFrame) -> str:
    """How many visits count on each back end, and of how many pages."""
    counted = frame.filter(~pl.col("warmup") & pl.col(LIMIT).is_null())
    real, simulated = (counted.filter(pl.col("backend") == side).height for side in (REAL, SIMULATED))
    pages = counted["page"].n_unique()
    return f"{pages} pages; {real} visits on the testbed and {simulated} in the simulator count"


def left_out(results: Results, frame: pl.DataFrame) -> str:
    """Which pages lack a visit that counts on the testbed; empty where none does."""
    asked = set(results.runs().filter(~pl.col("warmup"))["page"])
    counted = ~pl.col("warmup") & pl.col(LIMIT).is_null()
    real = set(frame.filter((pl.col("backend") == REAL) & counted)["page"])
    names = ", ".join(f"`{name}`" for name in sorted(asked - real))
    return f" No visit on the testbed counts of: {names}." if names else ""


def quote(judged: Sequence[Agreement], frame: pl.DataFrame) -> str:
    """The sentence with every number that the README quotes."""
    row = judged[0]
    points, rho, median, p90, _, _ = row.cells
    pages = frame.filter(~pl.col("warmup") & pl.col(LIMIT).is_null())["page"].n_unique()
    signs = f"; it has the sign of {row.large_same_sign} of {row.large} differences of 2 % or more"
    return (
        f"On {pages} pages that no constant was found on ({points} points), the simulator's page load time "
        f"has a 90th percentile error of {p90}, a median of {median} and a rank correlation of {rho}"
        f"{signs if row.large else ''}."
    )


def text(
    judged: Results, fitted: Results, folder: Path, again: Sequence[Results | None] = (None, None)
) -> str:
    """The guide."""
    parts = []
    quoted = ""
    judged_about = "No constant of the simulator was found on these ([judged](../../judged/README.md))."
    fitted_about = "The shipped pages, on which constants were found."
    for title, about, results, simulated, pages in (
        ("Judged pages", judged_about, judged, again[0], folder),
        ("Fitted pages", fitted_about, fitted, again[1], None),
    ):
        frame = read(results, simulated)
        found = agree(frame, METRICS)
        lines = rows(found)
        if pages is not None:
            quoted = quote(found, frame)
            for name, some in of_content(frame, pages).items():
                if {REAL, SIMULATED} <= set(some["backend"]):
                    lines += rows(agree(some, METRICS), name)
        versions = ", ".join(f"{name} {version}" for name, version in results.manifest["versions"].items())
        missing = max(row.one_sided for row in found)
        lacking = f" {missing} points lack visits that count on one back end." if missing else ""
        parts.append(
            f"## {title}\n\n{about} {visits(frame)}.{lacking}{left_out(results, frame)}\n\n{HEAD}\n"
            + "\n".join(lines)
            + f"\n\nBegun {results.manifest['created'][:10]}, with {versions}.\n"
        )
    return (
        "# Agreement\n\n<!-- `make agreement` writes this file. -->\n\n"
        f"How near does the simulator come to the testbed?\n\n> {quoted}\n\n{WORDS}\n\n" + "\n".join(parts)
    )


def check(guide: Path, readme: Path) -> str:
    """Why the README does not quote the guide; empty if it does."""
    if not guide.is_file():
        return f"{guide}: no such file; `make agreement` writes it"
    quoted = re.findall(r"^> (.+)$", guide.read_text(), re.M)
    if not quoted:
        return f"{guide}: no quotation; `make agreement` writes it"
    said = " ".join(readme.read_text().split())
    missing = [one for one in quoted if " ".join(one.split()) not in said]
    return f"{readme}: does not say: {missing[0]}" if missing else ""


def main() -> int:
    """Writes, or checks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("results", nargs="*", type=Path, metavar="JUDGED FITTED", help="results folders")
    parser.add_argument("--kept", type=Path, metavar="SIMULATED", help="compare with the kept visits")
    parser.add_argument("--simulated", nargs=2, type=Path, metavar=("JUDGED", "FITTED"))
    parser.add_argument("--guide", type=Path, default=GUIDE, help="the file to write or check")
    parser.add_argument("--readme", type=Path, default=README, help="the file that quotes it")
    parser.add_argument("--check", action="store_true", help="only say whether the README quotes the guide")
    asked = parser.parse_args()
    if len(asked.results) != (0 if asked.check or asked.kept else 2):
        parser.error("accepted: JUDGED FITTED, or --kept SIMULATED, or --check alone")
    try:
        if asked.kept:
            print("\n".join([HEAD, *rows(agree(beside_kept(Results.open(asked.kept), KEPT), METRICS))]))
            return 0
        if not asked.check:
            judged, fitted = (Results.open(folder) for folder in asked.results)
            again = [Results.open(folder) for folder in asked.simulated or ()] or (None, None)
            written = text(judged, fitted, ROOT / "judged", again)
            asked.guide.write_text(written)
            if asked.guide == GUIDE:
                keep(read(judged, metrics=METRICS), KEPT)
            print(written)
    except WirepaintError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if wrong := check(asked.guide, asked.readme):
        print(wrong, file=sys.stderr)
        return 1 if asked.check else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
