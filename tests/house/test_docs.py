"""The program accepts the commands and files in README and guides."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from cyclopts import CycloptsError
from pydantic import ValidationError

from wirepaint.cli import app
from wirepaint.evaluation.model import EvaluationFile

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
BLOCK = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
TOML = re.compile(r"```toml\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_every_link_of_a_document_leads_to_a_file(document: Path) -> None:
    targets = [target for target in LINK.findall(document.read_text()) if "://" not in target]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert not missing


def command_lines() -> list[tuple[str, str]]:
    """Every command of a document's blocks that begins with the program; a line that goes on is joined."""
    found = []
    for path in [*DOCUMENTS, ROOT / "CONTRIBUTING.md"]:
        for block in BLOCK.findall(path.read_text()):
            lines = block.replace("\\\n", " ").splitlines()
            commands = [part.strip() for line in lines for part in line.partition(" #")[0].split("&&")]
            found += [(path.name, one) for one in commands if one.startswith("wirepaint ")]
    return found


@pytest.mark.parametrize(("name", "command"), command_lines())
def test_a_command_in_a_document_is_one_that_the_program_knows(name: str, command: str) -> None:
    shown = re.split(r"\s{2,}", command)[0]  # what follows is what it does
    try:
        app.parse_args(shlex.split(shown)[1:], print_error=False, exit_on_error=False)
    except CycloptsError as error:
        pytest.fail(f"{name}: {shown}: {error}")


def evaluations() -> list[tuple[str, str]]:
    found = [(path.name, text) for path in DOCUMENTS for text in TOML.findall(path.read_text())]
    return [(name, text) for name, text in found if "[scenarios]" in text]


def test_the_readme_shows_an_evaluation_file() -> None:
    assert "README.md" in {name for name, _ in evaluations()}


@pytest.mark.parametrize(("name", "text"), evaluations())
def test_an_evaluation_file_in_a_document_is_accepted(name: str, text: str) -> None:
    try:
        EvaluationFile.model_validate(tomllib.loads(text))
    except ValidationError as error:
        pytest.fail(f"{name}: {error}")


def test_every_verb_that_the_readme_names_exists() -> None:
    from wirepaint.cli import app

    shown = re.findall(r"^wirepaint ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert shown
    assert set(shown) <= set(app)
