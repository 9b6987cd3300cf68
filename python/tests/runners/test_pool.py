"""The pool and its store: however the command is killed, no run is lost or done twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from wirepaint.errors import Incomplete, PageTimeout, RunFailed, UsageError
from wirepaint.results import Results
from wirepaint.results.journal import Journal, _seal
from wirepaint.results.outcome import Outcome
from wirepaint.runners import disturbances

from . import plans
from .plans import EVALUATION, KEYS, Fake, Flaky, carry_out

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["polars", "wirepaint.runners.pool", "wirepaint.runners.progress"])


def command(folder: Path, results: Path, seconds=0.0, size=100, kill_at=None, limit=None):
    arguments = (folder, results, seconds, size, kill_at, limit)
    process = _processes.Process(target=plans.command, args=arguments)
    process.start()
    return process


def finish(folder: Path, results: Path) -> None:
    """Gives the same command again, without any trouble; it must complete."""
    process = command(folder, results)
    process.join(60)
    assert process.exitcode == 0, (folder / "error").read_text()


def assert_complete(results: Path) -> None:
    runs = Results.open(results).runs()
    assert runs.height == runs["run_key"].n_unique() == KEYS
    assert runs["state"].unique().to_list() == ["done"]
    folders = sorted(entry.name for entry in (results / "runs").iterdir())
    assert folders == sorted(runs["run_key"].to_list())
    for key in folders:
        assert Results.open(results).trace(key, "page").height == 1


def identities(results: Path) -> dict[str, int]:
    """Inode of each finished run's folder: a run that were done again would have another."""
    folder = results / "runs"
    if not folder.is_dir():
        return {}
    return {entry.name: entry.stat().st_ino for entry in folder.iterdir() if not entry.name.startswith(".")}


def test_every_run_is_carried_out_once_in_the_planned_order(tmp_path: Path):
    fake = Fake()
    tally = carry_out(tmp_path, tmp_path / "r", fake)
    assert tally.counts == {"valid": KEYS}
    assert [key for key, _ in fake.asked] == json.loads((tmp_path / "r/manifest.json").read_text())["runs"]
    assert_complete(tmp_path / "r")


def test_the_same_command_again_does_nothing(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    again = Fake()
    assert carry_out(tmp_path, tmp_path / "r", again).counts == {"valid": KEYS}
    assert again.asked == []


def test_killed_with_9_at_random_moments_each_key_is_done_once(tmp_path: Path):
    moments = random.Random(1)
    kills = 0
    for trial in range(40):
        folder = tmp_path / str(trial)
        folder.mkdir()
        results = folder / "r"
        done: dict[str, int] = {}
        for _ in range(3):
            process = command(folder, results, seconds=0.02)
            process.join(moments.uniform(0.01, 0.4))
            if process.is_alive():
                kills += 1
            process.kill()
            process.join()
            now = identities(results)
            assert done.items() <= now.items(), "a finished run was lost or done again"
            done = now
        finish(folder, results)
        assert done.items() <= identities(results).items()
        assert_complete(results)
        if kills >= 24:
            break
    assert kills >= 20


STAGES = [
    "durable:write:before",
    "durable:write:after",
    "Journal:plan:before",
    "Journal:plan:after",
    "manifest:create:before",
    "manifest:create:after",
    "Journal:begin:before",
    "Journal:begin:after",
    "durable:sync_tree:after",
    "Path:rename:before",
    "Path:rename:after",
    "Journal:done:before",
    "Journal:done:after",
]


@pytest.mark.parametrize("stage", STAGES)
def test_killed_with_9_in_each_stage_the_same_command_completes(tmp_path: Path, stage: str):
    results = tmp_path / "r"
    process = command(tmp_path, results, kill_at=stage)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    done = identities(results)
    finish(tmp_path, results)
    assert done.items() <= identities(results).items()
    assert_complete(results)


@pytest.mark.parametrize("limit", [8_000, 20_000, 60_000], ids="{} bytes".format)
def test_a_file_that_cannot_grow_stops_the_command_and_loses_nothing(tmp_path: Path, limit: int):
    results = tmp_path / "r"
    process = command(tmp_path, results, size=100_000, limit=limit)
    process.join(60)
    assert process.exitcode == Incomplete.exit_code
    assert "give the same command again" in (tmp_path / "error").read_text()
    finish(tmp_path, results)
    assert_complete(results)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small tmpfs")
def test_a_full_disk_stops_the_command_and_loses_nothing(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], check=True)
    try:
        process = command(tmp_path, disk / "r", size=100_000)
        process.join(60)
        assert process.exitcode == Incomplete.exit_code
        assert re.search("No space left on device|disk is full", (tmp_path / "error").read_text())
        before = identities(disk / "r")
        assert 0 < len(before) < KEYS
        subprocess.run(["mount", "-o", "remount,size=6m", disk], check=True)
        finish(tmp_path, disk / "r")
        assert before.items() <= identities(disk / "r").items()
        assert_complete(disk / "r")
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_under_way_and_says_how_to_resume(tmp_path: Path, number: signal.Signals):
    results = tmp_path / "r"
    process = command(tmp_path, results, seconds=0.2)
    deadline = time.monotonic() + 30
    while len(identities(results)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.join(10)
    assert process.exitcode == Incomplete.exit_code
    assert "The same command again resumes" in (tmp_path / "error").read_text()
    assert not list((results / "runs").glob(".partial-*"))
    finish(tmp_path, results)
    assert_complete(results)


def test_a_second_command_on_the_same_folder_is_refused_and_told_by_whom(tmp_path: Path):
    results = tmp_path / "r"
    process = command(tmp_path, results, seconds=0.3)
    try:
        deadline = time.monotonic() + 30
        while not identities(results) and time.monotonic() < deadline:
            time.sleep(0.02)
        with pytest.raises(UsageError, match=rf"in use by process {process.pid} \(.*\) since 20"):
            carry_out(tmp_path, results, Fake())
    finally:
        process.kill()
        process.join()
    finish(tmp_path, results)


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


def test_another_evaluation_in_the_folder_is_refused_with_what_differs(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    changed = EVALUATION.replace("25 Mbit/s", "2 Mbit/s").replace("visits = 3", "visits = 4")
    with pytest.raises(UsageError) as refused:
        carry_out(tmp_path, tmp_path / "r", Fake(), changed)
    assert "networks.fast.down.capacity.bit_per_s was 25000000 and is 2000000" in refused.value.found
    assert "visits" not in refused.value.found, "more visits are no difference"


def test_a_comment_in_the_evaluation_does_not_matter(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    assert carry_out(tmp_path, tmp_path / "r", Fake(), "# again\n" + EVALUATION).counts == {"valid": KEYS}


def test_another_browser_is_refused(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    newer = [Fake().backend(browser="Chromium 999")]
    with pytest.raises(UsageError, match="found browser Chromium 999; accepted: browser none"):
        plans.pool.carry_out(plans.planned(tmp_path), tmp_path / "r", newer, plans.Lines())


def test_a_folder_with_other_things_in_it_is_refused_and_left_alone(tmp_path: Path):
    results = tmp_path / "r"
    results.mkdir()
    (results / "thesis.tex").write_text("...")
    with pytest.raises(UsageError, match=r"found thesis.tex in it; accepted: a new or empty folder"):
        carry_out(tmp_path, results, Fake())
    assert [entry.name for entry in results.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda r: (r / "manifest.json").write_text("{"), "manifest.json: found a damaged file"),
        (lambda r: (r / "manifest.json").write_text('{"format": 9}'), "manifest.json: found format 9"),
        (
            lambda r: (r / "journal.sqlite").write_bytes(b"x" * 9000),
            "journal.sqlite: found a journal that cannot",
        ),
        (lambda r: (r / "journal.sqlite").unlink(), "journal.sqlite: found no such file"),
        (lambda r: (r / "journal.sqlite").write_bytes(b""), "journal.sqlite: found format 0"),
        (
            lambda r: shutil.rmtree(r / "runs"),
            f"runs: found no folder; accepted: the folder of the {KEYS} runs",
        ),
    ],
    ids=["manifest", "format", "journal", "no journal", "empty journal", "all runs"],
)
def test_a_damaged_store_stops_with_a_sentence(tmp_path: Path, damage, message: str):
    results = tmp_path / "r"
    carry_out(tmp_path, results, Fake())
    damage(results)
    with pytest.raises(UsageError) as refused:
        carry_out(tmp_path, results, Fake())
    assert message in str(refused.value)


def test_a_run_whose_folder_was_removed_is_carried_out_again_and_named(tmp_path: Path, capsys):
    results, key = tmp_path / "r", "fast-cubic-h2.user.one.v01"
    carry_out(tmp_path, results, Fake())
    before = identities(results)
    shutil.rmtree(results / "runs" / key)
    again = Fake()
    tally = carry_out(tmp_path, results, again)
    assert again.asked == [(key, 2)]
    assert (tally.counts, tally.repeats) == ({"valid": KEYS}, 0)
    assert f"{key}: its folder is gone, so it is carried out again\n" in capsys.readouterr().err
    before.pop(key)
    assert before.items() <= identities(results).items()
    assert_complete(results)


FOREIGN = [
    "../../x",
    "/etc/x",
    "..",
    ".hidden.v01",
    "a/b.v01",
    "a\nb.v01",
    "x" * 300 + ".v01",
    "",
    "no-visit",
]


def foreign_key(results: Path, key: str) -> None:
    """Gives a run of the journal another key, as somebody would who knows how it is sealed."""
    book = Journal(results)
    book._db.execute("PRAGMA foreign_keys = OFF")
    book._db.execute(
        "UPDATE run SET key = ?, state = 'planned', verdict = NULL, files = NULL WHERE position = 0", (key,)
    )
    _seal(book._db, key)
    book.close()


@pytest.mark.parametrize("key", FOREIGN)
def test_a_foreign_key_leads_to_nothing_outside_the_folder(tmp_path: Path, key: str):
    results = tmp_path / "a/r"
    results.parent.mkdir()
    carry_out(tmp_path, results, Fake())
    (tmp_path / "a/x").mkdir()
    (tmp_path / "x").mkdir()
    foreign_key(results, key)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if "journal" not in path.name}
    with pytest.raises(
        UsageError, match=r"journal.sqlite: found the run key .*accepted: a run key: at most 230"
    ):
        carry_out(tmp_path, results, Fake())
    now = {path: path.stat().st_mtime_ns for path in before}
    changed = {path.name for path in before if now[path] != before[path]}
    assert changed <= {".lock", "r", "manifest.json", "evaluation.toml"}


def test_another_run_than_those_of_the_evaluation_is_refused(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    foreign_key(tmp_path / "r", "fast-cubic-h2.user.other.v01")
    with pytest.raises(
        UsageError, match=r"found other runs than those of the evaluation, such as fast-cubic-h2\.user"
    ):
        carry_out(tmp_path, tmp_path / "r", Fake())


@pytest.mark.parametrize(
    "name", ["runs", "set-aside", "calibration", "metrics", ".lock", "journal.sqlite", "manifest.json"]
)
def test_a_link_in_the_folder_that_may_lead_elsewhere_is_refused(tmp_path: Path, name: str):
    results = tmp_path / "r"
    carry_out(tmp_path, results, Fake())
    if (results / name).exists():
        (results / name).rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").mkdir()
    (results / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"r/{name}: found a symbolic link"):
        carry_out(tmp_path, results, Fake())


def test_the_folder_of_a_run_may_be_no_link(tmp_path: Path):
    results, key = tmp_path / "r", "fast-cubic-h2.user.one.v01"
    carry_out(tmp_path, results, Fake())
    (results / "runs" / key).rename(tmp_path / "elsewhere")
    (results / "runs" / key).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"{key}: found a symbolic link"):
        carry_out(tmp_path, results, Fake())
    assert (tmp_path / "elsewhere/page.parquet").is_file()


def test_a_network_with_a_name_that_no_file_can_have_is_refused_before_anything_is_written(tmp_path: Path):
    plan = plans.planned(tmp_path)
    network = plan.runs[0].network.model_copy(update={"name": "../up"})
    plan.runs[0] = plan.runs[0].model_copy(update={"network": network})
    with pytest.raises(UsageError, match=r'found the network "\.\./up"; accepted: a name of at most'):
        plans.pool.carry_out(plan, tmp_path / "r", [Fake().backend()], plans.Lines())
    assert not (tmp_path / "r").exists()


def test_a_table_that_a_resumed_command_reads_is_checked(tmp_path: Path):
    text = EVALUATION.replace("[scenarios]", '[stop]\nvisits = 3\ninterval = "5 %"\n[scenarios]')
    carry_out(tmp_path, tmp_path / "r", Fake(), text)
    (tmp_path / "r/runs/fast-cubic-h2.user.one.v01/page.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match=r"one.v01/page.parquet: found a damaged file"):
        carry_out(tmp_path, tmp_path / "r", Fake(), text)


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


def test_results_that_are_removed_under_way_end_the_command_and_leave_nothing(tmp_path: Path):
    results = tmp_path / "r"

    class Removing(Fake):
        def outcome(self, run):
            if run.visit == 2:
                shutil.rmtree(results)
                Path(results, "runs").mkdir(parents=True)  # as the simulator does
            return super().outcome(run)

    with pytest.raises(
        Incomplete, match="the results folder was removed or replaced while the command was at work"
    ):
        carry_out(tmp_path, results, Removing())
    assert not results.exists()
    assert carry_out(tmp_path, results, Fake()).counts == {"valid": KEYS}


def simulated(fake: Fake, folder: Path) -> plans.contract.Tally:
    """The plan through a back end that carries runs out many at once."""
    plan = plans.planned(folder)
    plan.runs[:] = [run.model_copy(update={"backend": "simulator"}) for run in plan.runs]

    backend = [fake.backend("simulator", many=True)]
    return plans.pool.carry_out(plan, folder / "r", backend, plans.Lines())


def test_a_folder_removed_under_the_simulator_is_told(tmp_path: Path):
    class Removing(Fake):
        def outcome(self, run):
            if run.visit == 2:
                shutil.rmtree(tmp_path / "r", ignore_errors=True)
            return super().outcome(run)

    with pytest.raises(Incomplete, match="the results folder was removed or replaced"):
        simulated(Removing(), tmp_path)
    assert not (tmp_path / "r").exists()


def test_a_full_disk_under_the_simulator_is_told(tmp_path: Path):
    class Full(Fake):
        def outcome(self, run):
            (tmp_path / "r/runs/full").symlink_to("/dev/full")
            (tmp_path / "r/runs/full").write_text("no room")
            return super().outcome(run)

    with pytest.raises(
        Incomplete, match=r"No space left on device\. Mend that and give the same command again"
    ):
        simulated(Full(), tmp_path)


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
    assert lines[1].startswith(f"[1/{KEYS}] fast-cubic-h2.user.one.v00: valid, ")
    assert lines[1].endswith(" left")
    assert lines[-1].startswith(f"[{KEYS}/{KEYS}]")
    assert "\x1b" not in done.stderr


def test_each_network_is_measured_before_its_first_run_and_what_stays_off_is_said(tmp_path: Path, capsys):
    measured: list[str] = []

    def calibrate(network):
        measured.append(network.name)
        rate = {"name": "rate down", "verdict": "off"}
        quantities = [rate, {"name": "round trip", "verdict": "ok"}]
        return {"verdict": "off", "quantities": quantities, "machine": {"host": "here"}}

    fake = Fake()
    fake.calibrate = calibrate
    plans.pool.carry_out(plans.planned(tmp_path), tmp_path / "r", [fake.backend()], plans.Lines())
    assert measured == ["fast"] * 3
    assert fake.calibration is not None and fake.calibration["verdict"] == "off"
    assert Results.open(tmp_path / "r").calibrations()["fast", "here"]["verdict"] == "off"
    assert "network fast: not what was asked: rate down\n" in capsys.readouterr().err


def calibrated(folder: Path, calibrate, text: str = EVALUATION) -> tuple[Fake, plans.contract.Tally]:
    fake = Fake()
    fake.calibrate = calibrate
    return fake, plans.pool.carry_out(
        plans.planned(folder, text), folder / "r", [fake.backend()], plans.Lines()
    )


HERE = {"host": "here"}
GOOD = {"verdict": "ok", "quantities": [{"name": "rate down", "verdict": "ok"}], "machine": HERE}


def test_a_calibration_that_crashes_is_tried_again(tmp_path: Path, capsys):
    ends = [RunFailed("the cell died (SIGKILL)"), RunFailed("the cell died (SIGKILL)"), GOOD]

    def calibrate(network):
        end = ends.pop(0)
        if isinstance(end, RunFailed):
            raise end
        return end

    fake, tally = calibrated(tmp_path, calibrate)
    assert tally.counts == {"valid": KEYS}
    assert fake.calibration == GOOD and ends == []
    assert capsys.readouterr().err.count("network fast: calibration failed, the cell died (SIGKILL)\n") == 2


TWO = EVALUATION.replace("}}]", '}}, {title = "slow", down = {rate = "1 Mbit/s"}, up = {rate = "1 Mbit/s"}}]')


def test_runs_of_a_network_that_cannot_be_measured_fail_and_others_go_on(tmp_path: Path):
    assert TWO != EVALUATION
    asked: list[str] = []

    def calibrate(network):
        asked.append(network.name)
        if network.name == "slow":
            raise RunFailed("the cell died (SIGKILL)")
        return GOOD

    fake, tally = calibrated(tmp_path, calibrate, TWO)
    assert asked.count("slow") == 3 and asked.count("fast") == 1
    assert all(key.startswith("fast-") for key, _ in fake.asked)
    runs = Results.open(tmp_path / "r").runs()
    slow, fast = (runs.filter(runs["network"] == name) for name in ("slow", "fast"))
    assert set(fast["state"]) == {"done"} and set(slow["state"]) == {"failed"}
    assert set(slow["kind"]) == {"network"} and slow["attempts"].sum() == 0
    assert set(slow["cause"]) == {"the network slow could not be measured: the cell died (SIGKILL)"}
    assert tally.counts == {"valid": fast.height, "failed": slow.height} and not tally.cannot_count
    assert len(tally.failures) == slow.height
    _, tally = calibrated(tmp_path, lambda network: GOOD, TWO)
    assert tally.counts == {"valid": runs.height}


def test_a_calibration_that_was_off_counts_though_the_next_one_crashed(tmp_path: Path):
    off = {"verdict": "off", "quantities": [{"name": "rate down", "verdict": "off"}], "machine": HERE}
    ends = [off, RunFailed("died"), RunFailed("died")]

    def calibrate(network):
        end = ends.pop(0)
        if isinstance(end, RunFailed):
            raise end
        return end

    fake, _ = calibrated(tmp_path, calibrate)
    assert fake.calibration == off


def test_a_calibration_that_a_crash_kept_from_its_file_is_written_by_the_next_command(tmp_path: Path):
    calibrated(tmp_path, lambda network: GOOD)
    file = tmp_path / "r/calibration/here/fast.json"
    text = file.read_text()
    file.write_text("{}")
    with pytest.raises(UsageError, match=r"calibration/here/fast.json: found a damaged file"):
        Results.open(tmp_path / "r").calibrations()
    calibrated(tmp_path, None)
    assert file.read_text() == text
    assert Results.open(tmp_path / "r").calibrations() == {("fast", "here"): GOOD}


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
