"""A study leaves no files behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import holds_within

from wirepaint.studies import model, running


def simulators(folder: Path) -> list[Path]:
    """Simulators of a study whose temporary files are in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, environment = ((process / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if b"simulate" in words and f"TMPDIR={folder}".encode() in environment.split(b"\0"):
            found.append(process)
    return found


LONG = """
from wirepaint.studies import model, running
_, study = model.load("cwv-2010")
point = {"flows": 16, "mix": "std", "event": "idle", "period": "1.5 s"}
small = study.model_copy(update={"sweeps": {"s": model.Sweep(measure="restart", fixed=point)}})
jobs = [running.Job("s", point, seed) for seed in range(1, 401)]
running.carry_out(small, study.chosen({}), jobs, lambda done, total: None)
"""
"""A study that takes longer than the test."""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_study_leaves_no_folder_and_no_simulator(end: signal.Signals, tmp_path: Path) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    environment = os.environ | {"TMPDIR": str(scratch)}
    quiet = subprocess.DEVNULL
    with subprocess.Popen([sys.executable, "-c", LONG], env=environment, stdout=quiet, stderr=quiet) as study:
        assert holds_within(60, lambda: study.poll() is not None or bool(simulators(scratch)))
        assert study.poll() is None, "the study ended by itself"
        study.send_signal(end)
        study.wait()
    assert holds_within(20, lambda: not any(scratch.iterdir())), list(scratch.iterdir())
    assert not simulators(scratch)


def test_a_study_that_ends_removes_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _, study = model.load("cwv-2010")
    point = {"flows": 2, "mix": "std", "event": "idle", "period": "0.5 s"}
    small = study.model_copy(update={"sweeps": {"s": model.Sweep(measure="restart", fixed=point)}})
    planned = [running.Job("s", point, 1)]
    assert running.carry_out(small, study.chosen({}), planned, lambda done, total: None)["s"].height
    assert not any(tmp_path.iterdir())
