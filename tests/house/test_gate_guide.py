"""The guide of the gate shows what the program says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from wirepaint.cli import invoke

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide/gate.md").read_text()


def test_the_output_in_the_guide_is_what_the_program_prints(tmp_path, monkeypatch, capsys) -> None:
    for file in (ROOT / "examples/gate").glob("*.toml"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "later.toml").write_text("seed = 2\n" + (tmp_path / "gate.toml").read_text())
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        shown = re.sub(r"^\$ .*\n", "", block, flags=re.MULTILINE)
        for line in re.findall(r"^\$ wirepaint (.*)$", block, re.MULTILINE):
            runs = line.startswith("run")
            assert invoke([*shlex.split(line), *(["--no-rehearse"] if runs else [])]) == 0
            if runs:
                capsys.readouterr()  # its answer is that of another guide
        assert capsys.readouterr().out == shown


@pytest.mark.parametrize("name", ["gate.toml", "budget.toml"])
def test_the_files_in_the_guide_are_those_of_the_examples(name: str) -> None:
    def told(text: str) -> str:
        return re.sub(r"\s*#.*", "", text).strip()

    shown = [told(block) for block in re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)]
    assert told((ROOT / "examples/gate" / name).read_text()) in shown
