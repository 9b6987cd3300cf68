"""Mutants of every kind of foreign file are accepted or refused in one line: benches/mutate.py with few."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[2] / "benches"
KINDS = ["har", "page", "evaluation", "archive", "devtools", "results", "trace"]
MUTANTS = 20


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    return importlib.import_module("mutate")


def test_every_kind_is_mutated(mutate) -> None:
    assert list(mutate.KINDS) == list(mutate.VERBS) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_is_accepted_or_refused_in_one_line(mutate, kind: str, tmp_path: Path) -> None:
    found = mutate.count(kind, 1, list(range(MUTANTS)), 1, tmp_path)
    said = [file.read_text(errors="replace") for file in tmp_path.glob("*/outcome.txt")]
    assert found["accepted"] + found["refused"] == MUTANTS, "\n".join(said)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("raise ValueError('no')", "traceback"),
        ("from wirepaint.errors import RunFailed; raise RunFailed('no')", "traceback"),
        ("x = bytes(2**30)", "too large"),
        ("import os; os.abort()", "too large"),
        ("import os; os._exit(0)", "traceback"),
        ("import time\nwhile True: pass", "too slow"),
        ("import os; os.open('pipe', os.O_RDONLY) if os.mkfifo('pipe') is None else 0", "too slow"),
        ("open('../x', 'w').close()", "traceback"),
        ("pass", "accepted"),
        ("from wirepaint.errors import UsageError; raise UsageError('a', 'b', 'c')", "refused"),
    ],
)
def test_what_goes_wrong_is_seen(mutate, code: str, outcome: str, tmp_path: Path, monkeypatch) -> None:
    """A reader that executes what it reads."""
    program = tmp_path / "reader.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(BENCHES)!r})\nimport mutate\n"
        "mutate.VERBS['trace'] = lambda path: iter(lambda: exec(path.read_text(), {}), None)\n"
        "sys.exit(mutate.read_all('trace'))\n"
    )
    originals, mutant = tmp_path / "originals", tmp_path / "work" / "mutant"
    originals.mkdir()
    mutant.mkdir(parents=True)
    (originals / "fine").write_text("pass")
    (mutant / "code").write_text(code)
    monkeypatch.setattr(mutate, "__file__", str(program))
    monkeypatch.setattr(mutate, "SECONDS", 0.5)
    reader = mutate.Reader("trace", originals, tmp_path / "work")
    try:
        assert reader.read(mutant / "code")[0] == outcome
    finally:
        reader.end()
