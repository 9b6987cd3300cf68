"""Background traffic as an axis of scenarios, through the user's commands, on the simulator."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.evaluation import plan
from wirepaint.results import Results

WIREPAINT = Path(sys.executable).with_name("wirepaint")
GUIDE = Path(__file__).parents[2] / "docs/guide/evaluation.md"
ALONE = """
title = "A flow beside others"
backend = "simulator"
warmup = false
repeats = 1
[scenarios]
network = ["lte"]
background = ["none", "busy"]
[[flows]]
name = "measured"
bulk = "2 MB"
start = "5 s"
[[background]]
name = "busy"
effective = "8 Mbit/s"
flows = [{ name = "load", bulk = "endless", congestion = "reno" }]
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "evaluation.toml").write_text(text)
    return subprocess.run(
        [WIREPAINT, "run", folder / "evaluation.toml", "-o", folder / "results"],
        capture_output=True,
        text=True,
    )


def test_effective_finds_the_number_of_flows_says_it_and_keeps_it(tmp_path: Path) -> None:
    done = run(tmp_path, ALONE)
    assert done.returncode == 0, done.stderr
    said = re.search(r"Background busy on lte: (\d+) flows, .* gets ([\d.]+) Mbit/s", done.stderr)
    assert said is not None, done.stderr
    number, left = int(said[1]), float(said[2])
    # Equal shares of 23.9 Mbit/s of payload would be 2 flows and 7.97.
    assert number in (1, 2, 3) and left == pytest.approx(8, rel=0.3)
    results = Results.open(tmp_path / "results")
    beside = results.manifest["evaluation"]["scenarios"]["lte-cubic-busy"]["beside"]
    assert len(beside["flows"]) == number and beside["left_bit_per_s"] == pytest.approx(left * 1e6, rel=0.01)
    table = metrics.table(results)
    measured = {row["background"]: row for row in table.filter(pl.col("page") == "measured").to_dicts()}
    assert measured["busy"]["flow_completion_time"] > 1.5 * measured["none"]["flow_completion_time"]
    # The run ended with the flow that is measured; the background went on.
    load = table.filter(pl.col("page") == "load")
    assert load.height == 1 and load["flow_completion_time"].null_count() == 1
    told = json.loads(
        subprocess.run(
            [WIREPAINT, "compare", tmp_path / "results", "--factor", "background", "--json"],
            check=True, capture_output=True, text=True,
        ).stdout
    )  # fmt: skip
    assert {row["candidate"]["level"] for row in told["comparisons"]} == {"busy"}


def test_the_example_of_the_guide_is_carried_out(tmp_path: Path) -> None:
    examples = re.findall(r"^```toml\n(.*?)^```", GUIDE.read_text(), re.S | re.M)
    [text] = [example for example in examples if "[[background]]" in example]
    done = run(tmp_path, 'backend = "simulator"\nwarmup = false\n' + text + "visits = 1\n")
    assert done.returncode == 0, done.stderr
    runs = Results.open(tmp_path / "results").runs()
    assert set(runs["background"]) == {"none", "busy"} and set(runs["verdict"]) == {"valid"}


FAULTS = {
    'background = ["none", "bussy"]':
        'scenarios.background[1]: found "bussy"; accepted: one of none, busy (did you mean "busy"?)',
    'effective = "80 Mbit/s"':
        "background, busy.effective: found 80 Mbit/s; accepted: at most 23",
    'flows = [{ name = "measured", bulk = "endless" }]':
        'background, busy: flows: found "measured"; accepted: a name that no table of flows has',
    'flows = [{ name = "load", bulk = "5 MB" }]':
        "background[0].flows: found 1 with effective; accepted: a single table of endless flows down",
}  # fmt: skip


@pytest.mark.parametrize("line", FAULTS)
def test_each_fault_is_one_sentence(line: str, tmp_path: Path) -> None:
    key = line.partition(" = ")[0]
    text = re.sub(rf"^{key} = .*$", lambda _: line, ALONE, count=0 if key != "flows" else 1, flags=re.M)
    (tmp_path / "evaluation.toml").write_text(text)
    with pytest.raises(Exception, match=re.escape(FAULTS[line])):
        plan(tmp_path / "evaluation.toml")
