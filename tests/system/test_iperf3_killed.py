"""iperf3 ends with the command that asked for it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from proc import alive, descendants
from test_iperf3 import EVALUATION

from wirepaint.runners.testbed import iperf3

pytestmark = [
    pytest.mark.usefixtures("root"),
    pytest.mark.skipif(shutil.which(iperf3.PROGRAM) is None, reason="needs iperf3"),
]


def test_kill_9_of_the_command_leaves_none(tmp_path: Path) -> None:
    file = tmp_path / "evaluation.toml"
    file.write_text(EVALUATION)
    program = "import sys; from wirepaint.cli import main; sys.exit(main())"
    command = subprocess.Popen([sys.executable, "-c", program, "run", file, "-o", tmp_path / "results"])
    deadline = time.monotonic() + 120

    def clients() -> list[int]:
        return [pid for pid in descendants(command.pid) if b"--client" in cmdline(pid)]

    while not clients():
        assert time.monotonic() < deadline and command.poll() is None
        time.sleep(0.05)
    below = descendants(command.pid)
    os.kill(command.pid, signal.SIGKILL)
    command.wait()
    time.sleep(1)
    assert [pid for pid in below if alive(pid)] == []


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
