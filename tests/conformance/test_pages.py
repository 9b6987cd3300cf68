"""A page whose computing is known, in Chromium over the emulator and in the simulator.

It has only images: the page model's ``Compute`` has the browser's cost of a request and a byte, and scripts
and style rules play no part. The queue drops nothing, so that chance plays no part either.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from disturbed import Disturbed

from wirepaint import metrics
from wirepaint.pages.synthesis.binary import image
from wirepaint.results import Results
from wirepaint.statistics import agreement

pytestmark = [pytest.mark.usefixtures("root_of_module"), pytest.mark.slow]
VISITS, FEWEST = 9, 5
TOLERANCE = 0.05
"""Of the median page load time."""
EVALUATION = f"""
title = "Images alone"
backend = "both"
[scenarios]
http = ["h2", "h1"]
[[scenarios.network]]
title = "deep"
down = {{rate = "10 Mbit/s", delay = "25 ms", queue = {{kind = "droptail", packets = 4000}}}}
up = {{rate = "5 Mbit/s", delay = "25 ms"}}
[[user_agents]]
pages = ["site"]
visits = {VISITS}
"""


def make_site(folder: Path) -> None:
    """36 images of 2 to 72 kB, 1.3 MB together, in a document that holds nothing else."""
    folder.mkdir()
    for number in range(36):
        (folder / f"{number}.png").write_bytes(image("image/png", 2_000 * (1 + number), f"page {number}")[0])
    images = "\n".join(f'<img src="{number}.png" width="40" height="30">' for number in range(36))
    text = f"<!DOCTYPE html><html><head><title>Images</title></head><body>{images}</body></html>"
    (folder / "index.html").write_text(text)


@dataclass(frozen=True)
class Seen:
    """The visits of both back ends, and the metrics of the valid ones."""

    visits: pl.DataFrame
    metrics: pl.DataFrame


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("pages")
    make_site(folder / "site")
    (folder / "images.toml").write_text(EVALUATION)
    main = "import sys; from wirepaint.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, "run", "images.toml", "-o", "results"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    results = Results.open(folder / "results")
    counted, table = (frame.filter(~pl.col("warmup")) for frame in (results.runs(), metrics.table(results)))
    return Seen(counted, table)


@pytest.mark.timed
@pytest.mark.parametrize("http", ["h2", "h1"])
def test_images_load_in_the_time_that_chromium_takes(seen: Seen, http: str) -> None:
    visits = seen.visits.filter(http=http)
    wrong = visits.filter(~pl.col("verdict").is_in(["valid", "suspect"]).fill_null(False))
    assert wrong.is_empty(), wrong.select("run_key", "state", "verdict", "reasons", "cause").rows()
    for backend in ("testbed", "simulator"):
        if (valid := seen.metrics.filter(backend=backend, http=http).height) < FEWEST:
            raise Disturbed(f"{backend}: {valid} of {VISITS} visits are valid, the others suspect")
    points = agreement.pairs(seen.metrics, metrics.get("page-load-time"))
    point = points.filter(http=http).row(0, named=True)
    assert abs(point["error"]) <= TOLERANCE, point
