"""Simulated runs are stored in batches: all of a batch, or none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wirepaint.results import Results
from wirepaint.results.verify import verify
from wirepaint.runners import pool
from wirepaint.runners.progress import Lines

sys.path.insert(0, str(Path(__file__).parents[1]))
from runners.plans import KEYS, Fake, planned

TESTS = str(Path(__file__).parents[1])
COMMAND = """
import os, sys
from pathlib import Path
sys.path.insert(0, os.environ["TESTS"])
from runners.plans import Fake, planned
from wirepaint.results import store
from wirepaint.results.journal import Journal
from wirepaint.runners import pool
from wirepaint.runners.progress import Lines

batch_s, moment = float(sys.argv[2]), sys.argv[3]
store._BATCH_S = batch_s
folder, calls, original = Path(sys.argv[1]), 0, Journal.commit

def deadly(book):
    global calls
    calls += 1
    if calls == 5 and moment == "before":
        os.kill(os.getpid(), 9)
    original(book)
    if calls == 5 and moment == "after":
        os.kill(os.getpid(), 9)

class Deadly(Fake):
    def outcome(self, run):
        if moment == "while it runs" and len(self.asked) == 9:
            os.kill(os.getpid(), 9)
        return super().outcome(run)

Journal.commit = deadly
pool.carry_out(planned(folder), folder / "r", [Deadly().backend(many=True)], Lines())
"""


@pytest.mark.parametrize(
    ("batch_s", "moment", "stored"),
    [(0.0, "before", 4), (0.0, "after", 5), (0.0, "while it runs", 8), (60.0, "while it runs", 0)],
)
def test_killed_a_command_loses_its_last_batch_at_most(
    tmp_path: Path, batch_s: float, moment: str, stored: int
):
    killed = subprocess.run(
        [sys.executable, "-c", COMMAND, str(tmp_path), str(batch_s), moment],
        env=os.environ | {"TESTS": TESTS},
    )
    assert killed.returncode == -9
    assert Results.open(tmp_path / "r").runs("done").height == stored
    again = Fake()
    tally = pool.carry_out(planned(tmp_path), tmp_path / "r", [again.backend(many=True)], Lines())
    assert tally.counts == {"valid": KEYS}
    assert len(again.asked) == KEYS - stored
    assert verify(tmp_path / "r").faults == []
