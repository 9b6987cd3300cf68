"""Which faults of a run are found by its checks, and what those that are not do to the page load time.

    sudo .venv/bin/python benches/faults.py [--only TEXT] [--calm N] [--write]

Plants each fault of ``tests/system/planted.py`` in a visit of the page kit (lte, CUBIC, HTTP/2) and prints
the checks that found it. The effect of a fault that was found comes from one visit. A fault that none found
is visited in pairs with visits without it: its effect is the Hodges-Lehmann shift with its 95 % interval.
``--write`` puts the table into docs/guide/measurement.md. ``--calm`` counts false alarms instead: so many
visits of six pages on four networks without any fault.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/system"))

import numpy as np  # noqa: E402
from planted import FAULTS, Fault  # noqa: E402

from wirepaint.errors import WirepaintError, cut  # noqa: E402
from wirepaint.evaluation import ResolvedRun, plan  # noqa: E402
from wirepaint.results import trace  # noqa: E402
from wirepaint.runners.testbed import one_run  # noqa: E402
from wirepaint.runners.testbed.calibrate import calibrate  # noqa: E402
from wirepaint.runners.testbed.cells import Cells  # noqa: E402
from wirepaint.statistics.intervals import Interval  # noqa: E402
from wirepaint.statistics.ranks import shift  # noqa: E402

GUIDE = ROOT / "docs/guide/measurement.md"
BEGIN, END = "<!-- faults: written by benches/faults.py --write -->", "<!-- end of faults -->"
BASELINE, PAIRS = 7, 20
SLIGHT = 0.01
EVALUATION = """
title = "Faults"
backend = "testbed"
warmup = false
[scenarios]
network = {networks}
congestion = ["cubic"]
http = ["h2"]
[[user_agents]]
pages = {pages}
visits = {visits}
"""


@dataclass
class Visit:
    """How a visit ended."""

    verdict: str
    found: list[str] = field(default_factory=list)
    load_ms: float | None = None
    why: list[str] = field(default_factory=list)
    """The findings of each check."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="faults whose words contain this")
    parser.add_argument("--calm", type=int, metavar="N")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wirepaint-faults-") as name, Cells() as cells:
        lab = Lab(Path(name), cells)
        if options.calm:
            calm(lab, options.calm)
            return
        chosen = [fault for fault in FAULTS if options.only in f"{fault.where}: {fault.what}"]
        text = table(rows(lab, chosen))
    print(text)
    if options.write:
        before, _, rest = GUIDE.read_text().partition(BEGIN)
        GUIDE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


class Lab:
    """Where visits are carried out."""

    def __init__(self, folder: Path, cells: Cells) -> None:
        folder.chmod(0o755)
        self.folder, self.cells = folder, cells
        self._calibrations: dict[str, dict[str, Any]] = {}
        self._count = 0

    def runs(self, pages: Sequence[str], networks: Sequence[str], visits: int) -> list[ResolvedRun]:
        file = self.folder / "evaluation.toml"
        file.write_text(
            EVALUATION.format(pages=json.dumps(pages), networks=json.dumps(networks), visits=visits)
        )
        return list(plan(file).runs)

    def visit(self, run: ResolvedRun, planted: Sequence[dict[str, Any]] = ()) -> Visit:
        name = run.network.name
        if name not in self._calibrations:
            self._calibrations[name] = calibrate(run.network, short=True, cells=self.cells)
        self._count += 1
        folder = self.folder / f"visit-{self._count}"
        folder.mkdir()
        try:
            outcome = one_run.run_once(
                run, folder, session=self.cells, calibration=self._calibrations[name], planted=planted
            )
        except WirepaintError as error:
            cause = re.sub(r"(?<= )/\S*/", "", str(error).splitlines()[0])  # no folder of this machine
            return Visit("failed", [cut(cause, 100)])
        page = trace.read_table(folder, "page").row(0, named=True)
        severe = [reason for reason in outcome.reasons if reason["severity"] != "note"]
        checks = list(dict.fromkeys(reason["check"] for reason in severe))
        load = (page["load_event"] - page["navigation_start"]) / 1e6
        shutil.rmtree(folder)
        return Visit(outcome.verdict, checks, load, [f"{one['check']}: {one['found']}" for one in severe])


def rows(lab: Lab, faults: Sequence[Fault]) -> Iterator[tuple[Fault, Visit, Interval | None]]:
    """Each fault, how its visit ended and how it changed the page load time."""
    [run] = lab.runs(["kit"], ["lte"], 1)
    calm = [lab.visit(run) for _ in range(BASELINE)]
    usual = statistics.median(visit.load_ms for visit in calm if visit.load_ms is not None)
    print(f"{usual:.0f} ms without a fault; {Counter(v.verdict for v in calm)}", file=sys.stderr)
    for fault in faults:
        of_fault = run
        if fault.page:
            copied = lab.folder / "page"
            shutil.rmtree(copied, ignore_errors=True)
            [visit] = run.visits
            shutil.copytree(visit.page, copied)
            PAGES[fault.page](copied)
            of_fault = run.model_copy(update={"visits": (visit.model_copy(update={"page": copied}),)})
        visited = lab.visit(of_fault, fault.plant)
        effect = None if visited.load_ms is None else Interval(visited.load_ms / usual - 1)
        if visited.verdict == "valid":
            effect = in_pairs(lab, run, of_fault, fault)
        print(fault.where, fault.what, visited.verdict, visited.found, effect, file=sys.stderr)
        yield fault, visited, effect


def in_pairs(lab: Lab, run: ResolvedRun, of_fault: ResolvedRun, fault: Fault) -> Interval:
    """The effect of a fault from visits that alternate with visits without it."""
    pairs = []
    for _ in range(PAIRS):
        without, planted = lab.visit(run).load_ms, lab.visit(of_fault, fault.plant).load_ms
        if without is not None and planted is not None:
            pairs.append((np.log([without]), np.log([planted])))
    found = shift(pairs)
    assert found.low is not None and found.high is not None
    return Interval(math.expm1(found.value), math.expm1(found.low), math.expm1(found.high))


def is_slight(effect: Interval) -> bool:
    """True where the change is small, or where the pairs do not tell it from none."""
    return abs(effect.value) < SLIGHT or not effect.outside(0)


def words(effect: Interval) -> str:
    """The change, with its interval where it has one."""
    text = f"{effect.value:+.1%}"
    if effect.low is not None and effect.high is not None:
        text += f" ({effect.low:+.1%} … {effect.high:+.1%})"
    return text.replace("%", " %")


def table(found: Iterator[tuple[Fault, Visit, Interval | None]]) -> str:
    """The table as Markdown, and the sentence below it."""
    lines = ["| part | fault | page load time | verdict | by |", "|---|---|--:|---|---|"]
    silent, count = [], 0
    for fault, visit, effect in found:
        count += 1
        change = "" if effect is None else words(effect)
        by = ", ".join(visit.found) if visit.verdict != "failed" else visit.found[0]
        lines.append(f"| {fault.where} | {fault.what} | {change} | {visit.verdict} | {by} |")
        if visit.verdict == "valid" and effect is not None and not is_slight(effect):
            silent.append(f"{fault.where}: {fault.what}")
    missed = f"Missed although they change it by {SLIGHT:.0%} or more: {'; '.join(silent) or 'none'}."
    return "\n".join([*lines, "", f"{count} faults. {missed.replace('%', ' %')}"])


def calm(lab: Lab, visits: int) -> None:
    """Counts visits that are flagged although nothing was planted."""
    six = ["kit", "agency", "blog-small", "news-medium", "photos", "shop-large"]
    networks = ["lte", "3g", "wpt-cable", "geo-satellite"]
    runs = lab.runs(six, networks, -(-visits // (len(six) * len(networks))))[:visits]
    found: Counter[str] = Counter()
    for run in runs:
        visit = lab.visit(run)
        if visit.verdict != "valid":
            found["flagged"] += 1
            print(run.key, visit.verdict, visit.why, flush=True)
    print(f"{found['flagged']} of {len(runs)} visits were flagged")


def flip_body(page: Path) -> None:
    """Changes one bit of the largest body, and nothing else."""
    body = max((page / "bodies").iterdir(), key=lambda file: file.stat().st_size)
    data = bytearray(body.read_bytes())
    data[len(data) // 2] ^= 1
    body.write_bytes(data)


def leave_out(page: Path) -> None:
    """Leaves an image out of the page's index that every rehearsal asked for."""
    index = json.loads((page / "page.json").read_text())
    victim = next(r for r in reversed(index["resources"]) if r["type"] == "image")
    victim["url"] += "/gone"
    (page / "page.json").write_text(json.dumps(index))


PAGES = {function.__name__: function for function in (flip_body, leave_out)}

if __name__ == "__main__":
    main()
