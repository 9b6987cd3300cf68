"""The guide "Your page in ten minutes": its commands do what it says, with the output that it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide/first-page.md").read_text()
WIREPAINT = [sys.executable, "-c", "import sys; from wirepaint.cli import main; sys.exit(main())"]
BLOCKS = re.findall(r"```(text)?\n(.*?)```", GUIDE, re.DOTALL)
OF_THE_MACHINE = ("page record", "--backend testbed", "mine.c")
"""Commands of the guide that need a network, root or a file of the reader's own."""


def commands(having: str) -> list[str]:
    lines = [line for kind, text in BLOCKS if not kind for line in text.splitlines()]
    return [line for line in lines if having in line and not any(word in line for word in OF_THE_MACHINE)]


def carried_out(command: str, *more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    arguments = [*shlex.split(command)[1:], *more]
    done = subprocess.run([*WIREPAINT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


SIMULATED = ("--backend", "simulator", "--no-rehearse")


def test_the_first_line_gives_the_answer_that_the_guide_shows_and_the_commands_after_it_work() -> None:
    [question] = commands("wirepaint run photos --network lte,cable")
    answer = next(text for kind, text in BLOCKS if kind and text.startswith("simulator"))
    assert carried_out(question, *SIMULATED).stdout == answer
    quoted = re.findall(r"^(simulator: .*); \.\.\.$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(quoted) == 2 and all(line in answer for line in quoted), quoted
    for command in commands("results/photos-http-simulator"):
        carried_out(command)
    assert Path("results/photos-http-simulator/report.html").is_file()
    assert carried_out("wirepaint run results/photos-http-simulator").stdout == answer


def test_the_dry_run_is_as_shown() -> None:
    [command] = commands("--dry-run")
    shown = next(text for kind, text in BLOCKS if kind and text.startswith("photos and"))
    assert carried_out(command, *SIMULATED).stdout.startswith(shown)


@pytest.mark.parametrize("command", [line for line in commands("wirepaint run photos ") if "dry" not in line])
def test_every_question_of_the_guide_can_be_asked(command: str) -> None:
    carried_out(command, *SIMULATED, "--dry-run")


def test_the_mistyped_line_is_refused_with_what_was_meant() -> None:
    [command] = commands("photoz")
    said = carried_out(command, code=2).stderr
    assert said.count("\n") == 3
    assert {'did you mean "photos"?', 'did you mean "cable"?'} <= set(re.findall(r"did you mean [^)]*", said))


def test_the_file_of_init_is_carried_out() -> None:
    first, then = commands("evaluation.toml")
    carried_out(first, "--backend", "simulator")
    assert "32 runs that count" in carried_out(then, "--dry-run").stdout
