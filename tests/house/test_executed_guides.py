"""The examples of these guides give what the guides show."""

from __future__ import annotations

from pathlib import Path

import executed
import pytest

GUIDE = Path(__file__).parents[2] / "docs/guide"


@pytest.mark.parametrize("name", ["own-metrics.md", "notebook.md", "why-invalid.md", "trust.md"])
def test_a_guide_shows_what_its_commands_print(name: str, tmp_path: Path) -> None:
    wrong = executed.carry_out(GUIDE / name, tmp_path)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.usefixtures("root")
@pytest.mark.testbed
def test_what_needs_root_shows_it_too(tmp_path: Path) -> None:
    wrong = executed.carry_out(GUIDE / "why-invalid.md", tmp_path, root=True)
    assert not wrong, "\n\n".join(wrong)


def test_an_output_is_compared_line_by_line() -> None:
    assert executed.matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not executed.matches("a\nd\n", "a\nb\nd\n")
