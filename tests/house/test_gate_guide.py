"""The guide of the gate shows what the program says."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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


def site(folder: Path, image_bytes: int) -> None:
    """What the workflow's first job hands over."""
    (folder / "dist").mkdir(parents=True)
    (folder / "dist/index.html").write_text("<!doctype html><title>x</title><p>x</p><img src=x.bin>")
    (folder / "dist/x.bin").write_bytes(random.Random(1).randbytes(image_bytes))
    gate = (ROOT / "examples/gate/gate.toml").read_text()
    (folder / "gate.toml").write_text(gate.replace('"blog-small"', '"./dist"'))
    shutil.copy(ROOT / "examples/gate/budget.toml", folder)


@pytest.mark.parametrize(("image_bytes", "code"), [(60_000, 0), (120_000, 99)])
def test_the_workflow_passes_an_equal_site_and_fails_a_slower_one(
    tmp_path: Path, image_bytes: int, code: int
) -> None:
    site(tmp_path / "base", 60_000)
    site(tmp_path / "candidate", image_bytes)
    steps = yaml.safe_load((ROOT / "examples/gate/workflow.yml").read_text())["jobs"]["gate"]["steps"]
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    scripts = [step["run"] for step in steps if "run" in step]
    ends = [
        subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=env).returncode for script in scripts
    ]
    assert ends == [0, code]
    assert ("breach" in (tmp_path / "summary.md").read_text()) == (code == 99)
    assert (tmp_path / "results/junit.xml").exists()
