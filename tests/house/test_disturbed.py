"""What a failure counts for while the machine's CPU time is stolen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.mark.parametrize(
    ("folder", "allowed", "ended"),
    [("system", -1, "skipped"), ("system", 2, "failed"), ("house", -1, "failed")],
    ids=["disturbed", "calm", "not in real time"],
)
def test_a_failure_of_a_disturbed_machine_is_skipped_aloud(
    folder: str, allowed: int, ended: str, tmp_path: Path
) -> None:
    limit = f"from wirepaint.runners.testbed import validity\nvalidity.STEAL_SHARE = {allowed}\n"
    (tmp_path / "conftest.py").write_text(f"{limit}exec(open({str(CONFTEST)!r}).read())\n")
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "test_it.py").write_text("def test_it():\n    assert 'late' == 'in time'\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", str(tmp_path)]
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    assert f"1 {ended}" in said, said
    assert "assert 'late' == 'in time'" in said
    assert ("of the CPU time was stolen meanwhile" in said) is (ended == "skipped")
