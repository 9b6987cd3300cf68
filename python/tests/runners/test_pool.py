"""The pool: which runs it carries out, in which order, how often, and what it says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint.errors import PageTimeout, RunFailed
from wirepaint.results import Results
from wirepaint.results.outcome import Outcome
from wirepaint.runners import disturbances

from . import plans
from .plans import EVALUATION, KEYS, Fake, Flaky, assert_complete, carry_out


def test_every_run_is_carried_out_once_in_the_planned_order(tmp_path: Path):
    fake = Fake()
    tally = carry_out(tmp_path, tmp_path / "r", fake)
    assert tally.counts == {"valid": KEYS}
    assert [key for key, _ in fake.asked] == Results.open(tmp_path / "r").runs()["run_key"].to_list()
    assert_complete(tmp_path / "r")


def test_the_same_command_again_does_nothing(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    again = Fake()
    assert carry_out(tmp_path, tmp_path / "r", again).counts == {"valid": KEYS}
    assert again.asked == []


def test_a_run_that_fails_is_tried_three_times_and_its_cause_is_kept(tmp_path: Path):
    results = tmp_path / "r"
    with pytest.raises(RunFailed, match=r"3 runs in a row failed.*the browser crashed"):
        carry_out(tmp_path, results, Flaky(failures=9))
    failed = Results.open(results).runs("failed")
    assert failed["attempts"].to_list() == [3, 3, 3]
    assert failed["cause"].unique().to_list() == ["the browser crashed"]
    assert failed["verdict"].null_count() == 3
    assert len(list((results / "set-aside").iterdir())) == 9
    assert carry_out(tmp_path, results, Fake()).counts == {"valid": KEYS}


def test_a_run_that_fails_twice_counts_when_the_third_attempt_succeeds(tmp_path: Path):
    assert carry_out(tmp_path, tmp_path / "r", Flaky(failures=2)).counts == {"valid": KEYS}
    attempts = Results.open(tmp_path / "r").attempts()
    assert attempts["outcome"].value_counts().sort("outcome").rows() == [
        ("failed", 2 * KEYS),
        ("valid", KEYS),
    ]


def _suspect(check: str) -> Outcome:
    reason = {"check": check, "severity": "suspect", "found": "1.4 ms", "expected": "at most 1 ms"}
    return Outcome("suspect", [reason], 1000)


class Disturbed(Fake):
    """The machine disturbs the runs of some conditions, or all."""

    def __init__(self, congestion: str = "", page: str = "") -> None:
        super().__init__()
        self.congestion, self.page = congestion, page

    def outcome(self, run):
        of_it = self.congestion in ("", run.congestion.label) and self.page in ("", run.page_name)
        return _suspect("lateness") if of_it else super().outcome(run)


def test_a_run_that_the_machine_disturbed_is_repeated_and_kept_as_it_is_in_the_end(tmp_path: Path):
    fake = Disturbed("reno", "two")
    assert carry_out(tmp_path, tmp_path / "r", fake).counts["suspect"] >= 3
    runs = Results.open(tmp_path / "r").runs()
    counted, warm = runs.filter(~runs["warmup"]), runs.filter(runs["warmup"])
    assert dict(counted.select("verdict", "attempts").unique().rows()) == {"valid": 1, "suspect": 3}
    assert warm["attempts"].unique().to_list() == [1]
    keys = [key for key, _ in fake.asked]
    again = [key for key in keys[warm.height : KEYS] if key.startswith("fast-reno-h2.user.two")]
    assert keys == keys[:KEYS] + 2 * again, "again after all others"
    assert json.loads(runs.filter(runs["verdict"] == "suspect")["reasons"][0])[0]["check"] == "lateness"


def test_runs_are_not_repeated_while_the_machine_stays_disturbed(tmp_path: Path, capsys):
    fake = Disturbed()
    tally = carry_out(tmp_path, tmp_path / "r", fake)
    assert tally.counts == {"suspect": KEYS}
    first = disturbances.STAYS - 1
    assert tally.repeats == first - 2, "those before it was known to stay, without the two warm-ups"
    assert len(fake.asked) == KEYS + first - 2
    err = capsys.readouterr().err
    assert err.count("The machine stays disturbed, so runs are not repeated: lateness: 1.4 ms") == 1


def test_a_calm_run_shows_that_a_disturbance_has_passed():
    seen = disturbances.Disturbances()
    for _ in range(disturbances.STAYS):
        assert seen.stays is None
        seen.learn(_suspect("foreign_cpu"))
    assert seen.stays == "foreign_cpu: 1.4 ms (expected at most 1 ms)"
    seen.learn(Outcome("valid", [], 1000))
    assert seen.stays is None


def test_a_run_that_is_wrong_by_itself_is_not_repeated_and_says_nothing_of_its_page(tmp_path: Path):
    class Wrong(Fake):
        def outcome(self, run):
            return Outcome("invalid", [_suspect("congestion").reasons[0] | {"severity": "invalid"}])

    assert carry_out(tmp_path, tmp_path / "r", Wrong()).counts == {"invalid": KEYS}
    assert Results.open(tmp_path / "r").runs()["attempts"].unique().to_list() == [1]


def test_visits_end_when_the_interval_is_narrow_enough(tmp_path: Path):
    text = EVALUATION.replace("visits = 3", "visits = 8").replace(
        "[scenarios]", '[stop]\nvisits = 3\ninterval = "5 %"\n[scenarios]'
    )
    plan = plans.planned(tmp_path, text)
    lines = plans.Lines()
    enough = plans.pool.carry_out(
        plan, tmp_path / "r", [Fake().backend()], lines, lambda times, width: width == 0.05
    )
    assert enough.counts == {"valid": KEYS, "skipped": 2 * 2 * 5}
    skipped = Results.open(tmp_path / "r").runs("skipped")
    assert skipped["visit"].min() == 4
    assert skipped["cause"].unique().to_list() == ["not needed: interval narrower than 0.05 of the mean"]


def test_a_visit_that_timed_out_has_ended_and_is_not_tried_until_one_is_quick(tmp_path: Path):
    class Slow(Fake):
        def outcome(self, run):
            if run.visit == 2 and run.page_name == "one":
                raise PageTimeout("no load event within 60 s")
            return super().outcome(run)

    slow = Slow()
    first = carry_out(tmp_path, tmp_path / "r", slow)
    assert first.counts == {"valid": KEYS - 2, "timed out": 2}
    assert set(first.timeouts.values()) == {"no load event within 60 s"} and not first.failures
    assert len(slow.asked) == KEYS
    again = Fake()
    assert carry_out(tmp_path, tmp_path / "r", again) == first
    assert again.asked == []


def test_a_page_that_timed_out_twice_stays_skipped(tmp_path: Path):
    class Slow(Fake):
        def outcome(self, run):
            if run.page_name == "one":
                raise PageTimeout("no load event within 60 s")
            return super().outcome(run)

    first = carry_out(tmp_path, tmp_path / "r", Slow())
    assert first.counts == {"valid": KEYS // 2, "timed out": 4, "cannot count": 3}
    again = Fake()
    assert carry_out(tmp_path, tmp_path / "r", again) == first and again.asked == []


def test_progress_goes_to_stderr_in_plain_lines_without_a_terminal(tmp_path: Path):
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "from runners import plans\n"
        "folder = pathlib.Path(sys.argv[2])\n"
        "plans.carry_out(folder, folder / 'r', plans.Fake())"
    )
    tests = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code, tests, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == f"Two controls: {KEYS} runs"
    assert lines[1] == f"[2/{KEYS}] 2 valid"  # some seconds are left: no time
    assert lines[-1] == f"[{KEYS}/{KEYS}] {KEYS} valid"
    assert "\x1b" not in done.stderr


def until(tmp_path: Path, answers: list[bool], fake: Fake | None = None):
    """Carries out visits 1 to 8 with looks after 2, 4 and 8; ``answers`` are those of the looks."""
    text = EVALUATION.replace("visits = 3", "visits = 2").replace(
        "[scenarios]", "[until]\nmost = 8\n[scenarios]"
    )
    plan = plans.planned(tmp_path, text)
    fake = fake or Fake()
    asked = []

    def decided(folder: Path, backend: str) -> bool:
        asked.append(Results.open(folder).runs("done").filter(~pl.col("warmup"))["visit"].max())
        return answers[len(asked) - 1]

    folder = tmp_path / "r"
    tally = plans.pool.carry_out(plan, folder, [fake.backend()], plans.Lines(), decided=decided)
    return tally, asked, Results.open(folder)


def test_visits_go_on_until_all_is_decided(tmp_path: Path):
    tally, asked, results = until(tmp_path, [False, True])
    assert asked == [2, 4], "the looks are those of the plan"
    assert tally.counts["skipped"] == 2 * 2 * 4, "two scenarios and two pages"
    skipped = results.runs("skipped")
    assert (skipped["visit"].min(), skipped["visit"].max()) == (5, 8)
    assert skipped["cause"].unique().to_list() == ["not needed: decided after 4 visits"]


def test_all_visits_are_made_if_nothing_is_decided(tmp_path: Path):
    tally, asked, _ = until(tmp_path, [False, False])
    assert asked == [2, 4] and set(tally.counts) == {"valid"}


def test_disturbed_visits_are_repeated_before_the_look(tmp_path: Path):
    """A look must not see fewer visits because the machine was busy."""

    class Disturbed(Fake):
        def outcome(self, run):
            disturbed = run.visit == 2 and run.attempt == 1
            return _suspect("steal") if disturbed else super().outcome(run)

    _, asked, results = until(tmp_path, [True], Disturbed())
    assert asked == [2]
    assert results.runs("done").filter(pl.col("visit") == 2)["verdict"].unique().to_list() == ["valid"]
