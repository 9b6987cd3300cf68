"""A congestion control of the user's own where clang, which compiles it for the kernel, is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wirepaint.cli import invoke
from wirepaint.results import Results

pytestmark = pytest.mark.usefixtures("root")
EVALUATION = """
title = "Mine"
[scenarios]
network = ["lte"]
congestion = ["./mine.c"]
[[user_agents]]
pages = ["photos"]
visits = 2
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A new congestion control, on a machine whose PATH has everything but clang."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in folder.iterdir() if folder.is_dir() else ():
            link = programs / program.name
            if not program.name.startswith("clang") and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("CLANG", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert invoke(["cc", "new", "mine", "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    return tmp_path / "mine.c"


def test_its_test_in_the_kernel_ends_in_one_line(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["cc", "test", str(mine), "--arm", "kernel"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"{mine}: clang is missing" in line and "apt-get install clang" in line


def test_its_test_outside_the_kernel_needs_no_clang(mine: Path) -> None:
    assert invoke(["cc", "test", str(mine), "--arm", "native"]) == 0


@pytest.mark.slow
def test_an_evaluation_ends_in_one_line_at_the_first_run(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = mine.with_name("mine.toml")
    file.write_text(EVALUATION)
    asked = ["run", str(file), "--backend", "testbed", "-o", str(tmp_path / "results"), "--trust"]
    assert invoke(asked) == 2
    lines = capsys.readouterr().err.splitlines()
    assert ["clang is missing" in line for line in lines] == [False] * (len(lines) - 1) + [True]
    runs = Results.open(tmp_path / "results").runs()
    assert runs.height == 3 and set(runs["state"]) == {"planned"}
