"""A page whose computing is known, in Chromium over the emulator and in the simulator.

Images alone: what a browser does for a request and a byte is in the page model's ``Compute``, and no
script or style rule has a say. The queue drops nothing, so that chance does not either.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.pages.synthesis.binary import image
from wirepaint.results import Results
from wirepaint.statistics import agreement

pytestmark = pytest.mark.usefixtures("root_of_module")
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


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    folder = tmp_path_factory.mktemp("pages")
    make_site(folder / "site")
    (folder / "images.toml").write_text(EVALUATION)
    main = "import sys; from wirepaint.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, "run", "images.toml", "-o", "results"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    frame = metrics.table(Results.open(folder / "results"))
    counted = frame.filter(~pl.col("warmup")).group_by("backend", "http").len()
    if counted.filter(pl.col("len") >= FEWEST).height < 4:
        pytest.skip(f"fewer than {FEWEST} visits were valid: the machine is too busy to say")
    return agreement.pairs(frame, metrics.get("page-load-time"))


@pytest.mark.parametrize("http", ["h2", "h1"])
def test_images_load_in_the_time_that_chromium_takes(points: pl.DataFrame, http: str) -> None:
    point = points.filter(http=http).row(0, named=True)
    assert abs(point["error"]) <= TOLERANCE, point
