"""The commands that wirepaint prints for its user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wirepaint.printing import command_line


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin/wirepaint"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(path)])
    monkeypatch.delenv("SUDO_UID", raising=False)
    return path


def test_a_program_on_the_path_is_named_and_another_has_its_path(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert command_line("report", "my results") == "wirepaint report 'my results'"
    monkeypatch.setenv("PATH", "/nowhere")
    assert command_line("report", "r") == f"{program} report r"


def test_root_is_given_the_whole_path_since_sudo_has_one_of_its_own(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert command_line("run", "e.toml", root=True) == f"sudo -E {program} run e.toml"
    assert command_line("run", "e.toml") == "wirepaint run e.toml"
