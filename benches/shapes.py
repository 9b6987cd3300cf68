"""A page beside its shape: page load times in the browser, with the same delays of the same answers.

``python benches/shapes.py PAGE...`` takes rehearsed page folders with bodies. For each it prints the load
time of the shape over that of the page, with every answer at once and with drawn delays, as medians; then
median and 90th percentile of the distance from 1 over the pages. ``--requests`` shows when each request
began in both.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from pathlib import Path

from wirepaint.errors import RunFailed
from wirepaint.pages import cache, model, prepare
from wirepaint.pages.shape import shaped
from wirepaint.rehearsal import work
from wirepaint.rehearsal.cast import Cast
from wirepaint.rehearsal.prediction import key
from wirepaint.rehearsal.stage import Stage
from wirepaint.rehearsal.takes import Take, observe

CLOCK_MS = 1_600_000_000_000


class Theatre:
    """One page, loaded as its rehearsals load it."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.page = model.load(folder)
        prepared = prepare(folder, cache.cache_dir())
        self.cast = Cast(self.page, prepared.responses)
        self._scratch = scratch

    def load(self, late: dict[str, float], trace: bool = False) -> Take:
        """One load; ``late`` says by method and address how late an answer is, in ms."""
        resources = self.cast.resources
        delays = {n: late.get(key(r.method, r.url), 0.0) for n, r in enumerate(resources)}
        responses, answering = self.cast.answers(delays)
        load, records, _ = Stage(self.cast.origins, self.page.url, self._scratch).load(
            responses,
            clock_ms=self.page.clock_ms or CLOCK_MS,
            seed=self.page.seed,
            viewport=self.page.usual_viewport,
            mobile=self.page.mobile,
            quiet_s=0.25,
            trace=work.CATEGORIES if trace else (),
        )
        return observe(load, records, answering, self.cast.known, delays)

    def starts(self, take: Take) -> dict[str, tuple[float, float]]:
        """When each request began and ended, by method and address."""
        resources = self.cast.resources
        return {
            key(resources[n].method, resources[n].url): (r.start, r.end or 0.0) for n, r in take.first.items()
        }


def compare(
    folder: Path, draws: int, scratch: Path, most: float, requests: bool
) -> tuple[float, list[float]]:
    """Ratios of page load times: undelayed, and for each draw."""
    page = model.load(folder)
    made = scratch / "shape"
    made.mkdir()
    model.save_index(shaped(page, prepare(folder, cache.cache_dir()), page.usual_viewport), made)
    stages = Theatre(folder, scratch), Theatre(made, scratch)
    drawn = random.Random(7)
    quiet = [[stage.load({}).load for _ in range(3)] for stage in stages]
    ratios: list[float] = []
    for _ in range(draws):
        late = {key(r.method, r.url): drawn.uniform(0, most) for r in page.resources}
        takes = [stage.load(late) for stage in stages]
        ratios.append(takes[1].load / takes[0].load)
        if requests:
            a, b = (stage.starts(take) for stage, take in zip(stages, takes, strict=True))
            print(f"  load {takes[0].load:.0f} {takes[1].load:.0f}")
            for name in sorted(a | b, key=lambda name: a.get(name, b.get(name, (0, 0)))):
                one, other = a.get(name, (-1, -1)), b.get(name, (-1, -1))
                times = f"{one[0]:7.0f}{one[1]:7.0f} {other[0]:7.0f}{other[1]:7.0f} {other[0] - one[0]:7.0f}"
                print(f"  {times} {name[-90:]}")
    print(f"{page.name:30}", [f"{statistics.median(q):.0f}" for q in quiet], end=" ")
    return statistics.median(quiet[1]) / statistics.median(quiet[0]), ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--late", type=float, default=250.0, help="longest delay of an answer, in ms")
    parser.add_argument("--requests", action="store_true")
    asked = parser.parse_args()
    found: list[tuple[float, list[float]]] = []
    for folder in asked.pages:
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch).chmod(0o755)
            try:
                found.append(compare(folder, asked.draws, Path(scratch), asked.late, asked.requests))
            except RunFailed as failure:
                print(f"{folder}: {failure}")
                continue
            at_once, drawn = found[-1]
            words = " ".join(f"{ratio:.2f}" for ratio in drawn)
            print(f"at once {at_once:5.2f}  late {statistics.median(drawn):5.2f}  ({words})", flush=True)
    for name, ratios in (
        ("at once", [at_once for at_once, _ in found]),
        ("late, median of a page", [statistics.median(drawn) for _, drawn in found]),
        ("late, each load", [ratio for _, drawn in found for ratio in drawn]),
    ):
        apart = sorted(abs(ratio - 1) for ratio in ratios)
        most = apart[min(len(apart) - 1, int(0.9 * len(apart)))]
        print(f"{name}: median {statistics.median(apart):.1%}, 90th percentile {most:.1%}")


if __name__ == "__main__":
    main()
