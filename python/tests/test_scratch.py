"""The folder that is gone when its maker is, however that ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from waiting import holds_within

from wirepaint.scratch import PREFIX, scratch

HOLD = """
import time
from wirepaint.scratch import scratch
with scratch() as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def made_an_hour_ago(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    os.utime(folder, (0, 0))
    return folder


def test_a_folder_is_gone_after_its_block() -> None:
    with scratch() as folder:
        (folder / "file").touch()
    assert not folder.exists()


def test_what_both_a_killed_maker_and_its_killed_guard_left_the_next_one_removes(temporary: Path) -> None:
    left = made_an_hour_ago(temporary / f"{PREFIX}left")
    new, others = temporary / f"{PREFIX}new", made_an_hour_ago(temporary / "wirepaint-mine")
    new.mkdir()
    with scratch():
        assert not left.exists()
        assert new.exists() and others.exists()


def test_a_folder_in_use_and_what_a_link_names_stay(temporary: Path) -> None:
    elsewhere = made_an_hour_ago(temporary / "elsewhere")
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    with scratch() as old:
        made_an_hour_ago(old)
        with scratch():
            assert old.exists() and elsewhere.exists()


def test_a_killed_maker_leaves_nothing(temporary: Path) -> None:
    maker = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    folder = Path(maker.stdout.readline().strip())
    assert folder.parent == temporary and folder.exists()
    guards = subprocess.run(
        ["pgrep", "-f", str(folder)], capture_output=True, text=True, check=True
    ).stdout.split()
    maker.send_signal(signal.SIGKILL)
    maker.wait()
    assert holds_within(
        10, lambda: not folder.exists() and not any(Path("/proc", pid).exists() for pid in guards)
    )
