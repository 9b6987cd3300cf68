"""Squid ends with the run, and with the command that asked for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from proc import alive, descendants
from proxied import recorded
from test_squid import EVALUATION

from wirepaint.runners.testbed import squid

pytestmark = [
    pytest.mark.usefixtures("root"),
    pytest.mark.skipif(not Path(squid.PROGRAM).exists(), reason="needs squid"),
]


def squids() -> list[int]:
    """Those that serve, not `squid -v`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"squid.conf" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("who", ["command", "squid"])
def test_kill_9_leaves_nothing(who: str, tmp_path: Path) -> None:
    before = {*squids()}
    file = tmp_path / "evaluation.toml"
    file.write_text(EVALUATION.format(http="h1", proxy="ends", page=recorded(tmp_path, "http")))
    program = "import sys; from wirepaint.cli import main; sys.exit(main())"
    command = subprocess.Popen(
        [sys.executable, "-c", program, "run", file, "--no-rehearse", "-o", tmp_path / "results"]
    )
    deadline = time.monotonic() + 120
    while not (running := {*squids()} - before):
        assert time.monotonic() < deadline and command.poll() is None
        time.sleep(0.02)
    below = descendants(command.pid)
    if who == "squid":
        os.kill(running.pop(), signal.SIGKILL)
        command.wait(120)
    else:
        command.kill()
        command.wait()
        time.sleep(1)
        assert [pid for pid in below if alive(pid)] == []
    assert {*squids()} == before
