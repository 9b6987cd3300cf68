"""A planted slow-down against the gate: is it caught, and is nothing else, on the simulator.

    python benches/gate.py [--repetitions 20] [--json]

A page and the same page whose server takes 3 % of the load time longer. Base and candidate have seeds of
their own. The margin is 1.5 %. A pilot of 8 visits asks `check` how many visits it needs; the gate is then
asked with so many, in each repetition with other seeds: once with the slow page, once with the same one. Exit
code 0 if at least 19 in 20 of the slow ones breach and at most 1 in 20 of the others.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

from wirepaint import catalogue, metrics
from wirepaint.cli import invoke
from wirepaint.results import Results

PAGE, MARGIN, SLOWER, PILOT = "blog-small", "1.5%", 0.03, 8
BREACH = 99
EVALUATION = """\
title = "Gate"
backend = "simulator"
seed = {seed}
[scenarios]
network = ["lte"]
[[user_agents]]
pages = ["{page}"]
visits = {visits}
"""


def run(folder: Path, page: Path, seed: int, visits: int) -> Path:
    """Simulates visits of a page; returns the results folder."""
    results = folder / f"{page.name}-{seed}-{visits}"
    file = folder / f"{results.name}.toml"
    file.write_text(EVALUATION.format(seed=seed, page=page / "page", visits=visits))
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        code = invoke(["run", str(file), "-o", str(results), "--no-rehearse"])
    if code:
        sys.exit(f"{file}: exit code {code}")
    return results


def check(base: Path, candidate: Path) -> tuple[int, dict[str, object]]:
    """Exit code and JSON of the gate."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        code = invoke(["check", str(base), str(candidate), "--margin", MARGIN, "--json"])
    return code, json.loads(said.getvalue())


def page(folder: Path, name: str, extra_ms: float) -> Path:
    """The shipped page with a first answer that comes later, as a page folder of the same name."""
    made = folder / name / "page"
    made.mkdir(parents=True)
    content = json.loads((catalogue.ROOT / "pages" / PAGE / "page.json").read_text())
    content["resources"][0]["think_ms"] = content["resources"][0].get("think_ms", 0.0) + extra_ms
    (made / "page.json").write_text(json.dumps(content))
    return made.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        base = page(folder, "base", 0.0)
        pilot = run(folder, base, 1, PILOT)
        load_ms = float(metrics.table(Results.open(pilot))["page_load_time"].median())  # pyright: ignore
        slow = page(folder, "slow", SLOWER * load_ms)
        _, asked = check(pilot, run(folder, slow, 2, PILOT))
        visits = max(PILOT, int(asked["visits_needed"] or 0))  # pyright: ignore
        caught = false = 0
        for repetition in range(options.repetitions):
            seed = 10 + 3 * repetition
            of_base = run(folder, base, seed, visits)
            caught += check(of_base, run(folder, slow, seed + 1, visits))[0] == BREACH
            false += check(of_base, run(folder, base, seed + 2, visits))[0] == BREACH
    found = {"visits": visits, "repetitions": options.repetitions, "caught": caught, "false": false}
    print(json.dumps(found, indent=1) if options.json else found)
    return int(caught < 0.95 * options.repetitions or false > 0.05 * options.repetitions)


if __name__ == "__main__":
    sys.exit(main())
