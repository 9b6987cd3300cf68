"""What README and guides show is what the program accepts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from wirepaint.evaluation.model import EvaluationFile

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
TOML = re.compile(r"```toml\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_every_link_of_a_document_leads_to_a_file(document: Path) -> None:
    targets = [target for target in LINK.findall(document.read_text()) if "://" not in target]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert not missing


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
