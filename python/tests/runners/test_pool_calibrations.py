"""The pool measures each network before its first run, and what becomes of it when that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.errors import RunFailed, UsageError
from wirepaint.results import Results

from . import plans
from .plans import EVALUATION, KEYS, Fake

HERE = {"host": "here"}
GOOD = {"verdict": "ok", "quantities": [{"name": "rate down", "verdict": "ok"}], "machine": HERE}


def test_each_network_is_measured_before_its_first_run_and_what_stays_off_is_said(tmp_path: Path, capsys):
    measured: list[str] = []

    def calibrate(network):
        measured.append(network.name)
        rate = {"name": "rate down", "verdict": "off"}
        quantities = [rate, {"name": "round trip", "verdict": "ok"}]
        return {"verdict": "off", "quantities": quantities, "machine": HERE}

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


def test_of_calibrations_that_are_all_off_the_least_off_counts(tmp_path: Path):
    def off(**errors: float | None):
        quantities = [
            {"name": name, "verdict": "off", "error": error, "tolerance": 0.001}
            for name, error in errors.items()
        ]
        return {"verdict": "off", "quantities": quantities, "machine": HERE}

    slight = off(down=-0.002, up=0.0015)
    ends = [off(down=-0.02), slight, off(up=None)]
    fake, _ = calibrated(tmp_path, lambda network: ends.pop(0))
    assert fake.calibration == slight and ends == []


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
